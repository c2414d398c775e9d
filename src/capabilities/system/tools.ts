import { z } from 'zod'
import { calledAs } from '../../kernel/audit.ts'
import type { SettingDefinition } from '../../kernel/capability.ts'
import { refuse } from '../../kernel/error.ts'
import { defineEvent, type EventFilter } from '../../kernel/event.ts'
import { REDACTED } from '../../kernel/redact.ts'
import {
  CursorText,
  EventView,
  eventView,
  iso,
  isoOrNull,
  PageSize,
  PageToken,
  TimeoutSeconds,
  Timestamp,
  text,
} from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { ProjectId, TaskId } from '../ids.ts'
import { projectOfTask } from '../task/index.ts'
import { principalId } from './names.ts'
import { type CallRow, systemStore } from './store.ts'
import '../../ports/daemon.ts'
import '../../ports/runner.ts'

export const settingChanged = defineEvent('setting.changed', z.strictObject({ value: z.unknown() }))
export const decisionLogged = defineEvent('decision.logged', z.strictObject({ title: z.string() }))

export const health = defineTool({
  name: 'system_health',
  title: 'Health',
  description: 'How the daemon is: version, database, waiting calls, notices. `deep` reads every page of the database.',
  input: z.strictObject({ deep: z.boolean().default(false) }),
  output: z.strictObject({
    ok: z.boolean(),
    version: z.string(),
    uptime_seconds: z.number(),
    database: z.strictObject({
      engine: z.string(),
      size_bytes: z.number(),
      queued_writes: z.number(),
      commits: z.number(),
      committed_calls: z.number(),
      events_held_back_ms: z.number(),
    }),
    waiting_calls: z.number(),
    event_readers: z.number(),
    mcp_sessions: z.number(),
    notices: z.array(z.string()),
  }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { deep }) {
    const exposed = await ctx.ports.runner.exposed()
    const health = ctx.ports.daemon.health()
    const now = { ...health, notices: [...health.notices, ...(exposed ? [exposed] : [])] }
    if (!deep) return now
    const { ok, problems } = await ctx.ports.daemon.check()
    return { ...now, ok: now.ok && ok, notices: [...now.notices, ...problems] }
  },
})

export const decide = defineTool({
  name: 'decision_log',
  title: 'Log a decision',
  description: 'Record a decision and its reason in the log.',
  input: z.strictObject({ title: text(200), body: text(10_000), task_id: TaskId.optional() }),
  output: z.strictObject({ log_id: z.string(), timestamp: Timestamp }),
  example: { title: 'SQLite first', body: 'One machine is enough for now.' },
  impact: 'write',
  profile: 'pair_worker',
  async run(ctx, input) {
    const id = ctx.id('log')
    const task = input.task_id ?? ctx.principal.scope.task ?? null
    await systemStore(ctx.tx).insertDecision({
      id,
      author: ctx.principal.id,
      task_id: task,
      title: input.title,
      body: input.body,
      at: ctx.now,
    })
    const project = (task && (await projectOfTask(ctx.tx, task))) ?? ctx.principal.scope.project ?? null
    // Of no project it concerns the people alone: other projects' agents must not read it.
    ctx.emit(decisionLogged({ subject: id, task, project, audience: project ? 'everyone' : 'people' }, { title: input.title }))
    return { log_id: id, timestamp: iso(ctx.now) }
  },
})

const CallView = z.strictObject({
  id: z.string(),
  at: Timestamp,
  principal: z.string(),
  acting_person: z.string().nullable(),
  lane: z.string(),
  surface: z.string(),
  dialect: z.string().nullable(),
  tool: z.string(),
  called_as: z.string().describe('The name that the caller used'),
  outcome: z.enum(['ok', 'replayed', 'refused', 'failed']),
  code: z.string().nullable(),
  input: z.unknown(),
  output: z.unknown(),
  duration_ms: z.number(),
})

export const audit = defineTool({
  name: 'audit_tail',
  title: 'Read the audit',
  description: 'Calls, newest first: who asked what and how it ended. Agents see their own.',
  input: z.strictObject({
    principal: text(64).optional().describe('Id or handle of an agent or a person'),
    tool: text(40).optional(),
    outcome: z.enum(['ok', 'replayed', 'refused', 'failed']).optional(),
    limit: PageSize,
    before: PageToken.regex(/^[0-9]{1,15}$/, 'not a page of audit_tail').optional(),
  }),
  output: z.strictObject({ calls: z.array(CallView), next: z.string().nullable() }),
  example: { tool: 'task_move', limit: 20 },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, input) {
    const own = ctx.principal.kind === 'agent' ? ctx.principal.id : undefined
    const asked = input.principal && (await principalId(ctx.view, input.principal))
    if (own && asked && asked !== own) return refuse('PERMISSION_DENIED', 'You see your own calls only.')
    const filter = { principal: own ?? asked, tool: input.tool, outcomes: input.outcome && [input.outcome] }
    const rows = await systemStore(ctx.view).calls(filter, Number(input.before ?? Number.MAX_SAFE_INTEGER), input.limit)
    return { calls: rows.map(callView), next: rows.length === input.limit ? String(rows.at(-1)?.seq) : null }
  },
})

const SettingValue = z
  .union([z.string().max(2_000), z.number(), z.boolean(), z.array(z.string().max(200)).max(100), z.null()])
  .describe('null goes back to the default')

const SettingView = z.strictObject({
  key: z.string(),
  value: z.unknown(),
  default: z.unknown(),
  description: z.string(),
  changed_at: Timestamp.nullable(),
  changed_by: z.string().nullable(),
})

/** The definitions come from the whole registry, which is complete only after every capability was loaded. */
export function settingTools(definitions: () => Record<string, SettingDefinition>) {
  const define = (key: string) => {
    const found = Object.hasOwn(definitions(), key) ? definitions()[key] : undefined
    if (!found)
      throw refuse('INVALID_INPUT', `There is no setting "${key}".`, {
        hint: 'setting_get without a key lists them all.',
        next_tool: 'setting_get',
        next_arguments: {},
      })
    return found
  }

  const isSecret = (key: unknown) => typeof key === 'string' && Object.hasOwn(definitions(), key) && definitions()[key]?.secret === true
  /** Whether it is set may be known. */
  const masked = (key: string, value: unknown) => (isSecret(key) && value !== define(key).default ? REDACTED : value)

  const get = defineTool({
    name: 'setting_get',
    title: 'Read settings',
    description: 'Settings with their values, defaults and meaning; one, or all.',
    input: z.strictObject({ key: text(100).optional() }),
    output: z.strictObject({ settings: z.array(SettingView) }),
    example: { key: 'limits.agent_burst' },
    impact: 'read',
    profile: 'viewer',
    async look(ctx, { key }) {
      if (key) define(key)
      const changed = new Map((await systemStore(ctx.view).settings()).map((row) => [row.key, row]))
      const keys = key ? [key] : Object.keys(definitions()).sort()
      return {
        settings: keys.map((k) => ({
          key: k,
          value: ctx.principal.owner ? ctx.setting(k) : masked(k, ctx.setting(k)),
          default: define(k).default,
          description: define(k).description,
          changed_at: isoOrNull(changed.get(k)?.changed_at ?? null),
          changed_by: changed.get(k)?.changed_by ?? null,
        })),
      }
    },
  })

  const update = defineTool({
    name: 'setting_update',
    title: 'Change a setting',
    description: 'Change one setting. It is in force for the next call; nothing restarts.',
    input: z.strictObject({ key: text(100), value: SettingValue }),
    output: z.strictObject({ key: z.string(), value: z.unknown(), previous: z.unknown() }),
    example: { key: 'limits.agent_burst', value: 200 },
    impact: 'write',
    profile: 'maintainer',
    by: 'person',
    unrecorded: ({ key }) => (isSecret(key) ? ['value'] : []),
    async run(ctx, { key, value }) {
      const definition = define(key)
      const parsed = definition.schema.safeParse(value ?? definition.default)
      if (!parsed.success)
        return refuse('INVALID_INPUT', `${key}: ${parsed.error.issues[0]?.message ?? 'not a valid value'}`, {
          hint: definition.description,
        })
      if (value === null) await systemStore(ctx.tx).dropSetting(key)
      else await systemStore(ctx.tx).putSetting(key, parsed.data, ctx.principal.id, ctx.now)
      ctx.emit(settingChanged({ subject: key, audience: 'people' }, { value: masked(key, parsed.data) }))
      return { key, value: masked(key, parsed.data), previous: masked(key, ctx.setting(key)) }
    },
  })
  return [get, update]
}

const EventTypes = z
  .array(text(60))
  .max(50)
  .optional()
  .describe('Like task.moved, or task.* for all of them; with ! before it what is left out')

export const listEvents = defineTool({
  name: 'event_list',
  title: 'List events',
  description: 'What happened, newest first; `cursor` is where to go on with event_wait.',
  input: z.strictObject({
    types: EventTypes,
    project_id: ProjectId.optional(),
    task_id: TaskId.optional(),
    limit: PageSize,
    before: CursorText.optional().describe('`next` of the page before'),
  }),
  output: z.strictObject({ events: z.array(EventView), next: z.string().nullable(), cursor: z.string() }),
  example: { types: ['task.*'], limit: 20 },
  impact: 'read',
  profile: 'viewer',
  across: 'log',
  async look(ctx, { types, project_id, task_id, limit, before }) {
    const cursor = await ctx.cursor()
    const events = await ctx.recent(before, { types, project: project_id, task: task_id }, limit)
    return { events: events.map(eventView), next: events.length === limit ? (events.at(-1)?.cursor ?? null) : null, cursor }
  },
})

export const waitForEvents = defineTool({
  name: 'event_wait',
  title: 'Wait for events',
  description: 'Return when something happens after the cursor; without one, after now. Call again with the cursor you get.',
  input: z.strictObject({
    cursor: CursorText.optional(),
    types: EventTypes,
    project_id: ProjectId.optional(),
    task_id: TaskId.optional(),
    timeout_seconds: TimeoutSeconds.optional().describe('Default 900'),
    limit: PageSize,
  }),
  output: z.strictObject({
    events: z.array(EventView),
    cursor: z.string(),
    code: z.enum(['EVENTS', 'WAIT_TIMEOUT', 'WAIT_INTERRUPTED']),
    resume: z.boolean().describe('The time you asked for is not over: call again with the cursor'),
  }),
  example: { types: ['task.*'], timeout_seconds: 60 },
  impact: 'read',
  profile: 'viewer',
  across: 'log',
  core: true,
  async watch(ctx, input) {
    const cursor = input.cursor ?? (await ctx.cursor())
    const filter: EventFilter = { types: input.types, project: input.project_id, task: input.task_id }
    const { events, ended } = await ctx.waitFor(cursor, filter, Math.min(input.timeout_seconds ?? 900, 86_400) * 1_000)
    const shown = events.slice(0, input.limit)
    const code = ended === 'events' ? 'EVENTS' : ended === 'interrupted' ? 'WAIT_INTERRUPTED' : 'WAIT_TIMEOUT'
    return {
      events: shown.map(eventView),
      cursor: shown.at(-1)?.cursor ?? cursor,
      code,
      resume: ended === 'hold' || ended === 'interrupted',
    } as const
  },
})

function callView(row: CallRow): z.output<typeof CallView> {
  const { id, principal, acting_person, lane, surface, tool, code, duration_ms } = row
  const { dialect, name: called_as } = calledAs(row)
  const outcome = row.outcome as z.output<typeof CallView>['outcome']
  const payload = { input: JSON.parse(row.input) as unknown, output: JSON.parse(row.output) as unknown }
  return { id, at: iso(row.at), principal, acting_person, lane, surface, dialect, tool, called_as, outcome, code, ...payload, duration_ms }
}
