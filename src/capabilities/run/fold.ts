import type { z } from 'zod'
import { redactText } from '../../kernel/redact.ts'
import type { RunContext } from '../../kernel/tool.ts'
import type { HarnessEvent } from '../../ports/harness.ts'
import type { Question } from '../approval/index.ts'
import type { Said } from '../transcript/index.ts'
import { MICROS } from './schema.ts'
import type { RunRow, TurnUsage } from './store.ts'

const MINUTE_MS = 60_000

export interface Resets {
  /** When a provider is asked again that does not say. */
  unknown: number
  /** One that names a time of the past would be asked without end. */
  soonest: number
}

export function resetsOf(ctx: RunContext): Resets {
  return {
    unknown: ctx.now + ctx.setting<number>('runs.quota_retry_minutes') * MINUTE_MS,
    soonest: ctx.now + ctx.setting<number>('runs.quota_least_seconds') * 1_000,
  }
}

export interface Folded {
  changes: Partial<RunRow>
  said: Said[]
  /** What it asks permission for, and still did at the end of these events. */
  asked: Question[]
  /** Of what it asked before, these are not asked any more; `all` at the end of a turn. */
  gone: Set<string> | 'all'
  /** By turn. */
  used: Map<number, TurnUsage>
}

/** What events do to a run's row, and what of them is kept besides. */
export function fold(run: RunRow, events: z.output<typeof HarnessEvent>[], resets: Resets): Folded {
  const changed = { ...run }
  const said: Said[] = []
  const used: Folded['used'] = new Map()
  let asked: Question[] = []
  let gone: Folded['gone'] = new Set()
  for (const event of events) {
    switch (event.type) {
      case 'ready':
        changed.session = event.session
        break
      case 'turn_started':
        changed.turns++
        changed.paused = 0
        asked = []
        gone = 'all'
        break
      case 'text':
        said.push({ turn: changed.turns, kind: event.from, body: event.text })
        break
      case 'tool_call':
        changed.open_calls++
        said.push({ turn: changed.turns, kind: 'tool_call', name: event.name, body: event.input })
        break
      case 'tool_result':
        changed.open_calls = Math.max(0, changed.open_calls - 1)
        asked = asked.filter(({ id }) => id !== event.id)
        if (gone !== 'all') gone.add(event.id)
        said.push({ turn: changed.turns, kind: 'tool_result', body: event.ok ? event.output : `Failed. ${event.output}` })
        break
      case 'usage':
        used.set(changed.turns, usedBefore(used.get(changed.turns), event))
        changed.input_tokens += event.input_tokens
        changed.output_tokens += event.output_tokens
        changed.cached_tokens += event.cached_tokens
        changed.cost_micros += Math.round((event.cost_usd ?? 0) * MICROS)
        if (event.estimated) changed.estimated = 1
        break
      case 'limit_reached':
        changed.failure = redactText(event.message)
        changed.resets_at = Math.max(event.resets_at ?? resets.unknown, resets.soonest)
        said.push({ turn: changed.turns, kind: 'signalbox', body: event.message })
        break
      case 'failed':
        changed.failure ??= redactText(event.reason)
        said.push({ turn: changed.turns, kind: 'signalbox', body: event.reason })
        break
      case 'exited':
        changed.ok = event.ok ? 1 : 0
        if (!event.ok) changed.failure ??= redactText(event.reason)
        break
      case 'turn_ended':
        changed.paused = event.how === 'interrupted' ? 1 : 0
        asked = []
        gone = 'all'
        break
      case 'approval_asked':
        asked.push(event)
        said.push({
          turn: changed.turns,
          kind: 'signalbox',
          name: event.name,
          body: `It asks for permission: ${event.name}\n${event.input}`,
        })
        break
    }
  }
  const { session, turns, open_calls, paused, input_tokens, output_tokens, cached_tokens, cost_micros, estimated, failure, resets_at, ok } =
    changed
  return {
    said,
    asked,
    gone,
    used,
    changes: {
      session,
      turns,
      open_calls,
      paused,
      input_tokens,
      output_tokens,
      cached_tokens,
      cost_micros,
      estimated,
      failure,
      resets_at,
      ok,
    },
  }
}

function usedBefore(before: TurnUsage | undefined, event: Extract<z.output<typeof HarnessEvent>, { type: 'usage' }>): TurnUsage {
  return {
    input_tokens: (before?.input_tokens ?? 0) + event.input_tokens,
    output_tokens: (before?.output_tokens ?? 0) + event.output_tokens,
    cached_tokens: (before?.cached_tokens ?? 0) + event.cached_tokens,
    cost_micros: (before?.cost_micros ?? 0) + Math.round((event.cost_usd ?? 0) * MICROS),
    estimated: before?.estimated || event.estimated ? 1 : 0,
  }
}
