import { type Refusal, refuse } from '../../kernel/error.ts'
import type { Principal } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import { lastMergedInto } from '../pr/index.ts'
import type { EpicFacts } from '../task/index.ts'
import { type EpicState, epicMoved } from './schema.ts'
import { type EpicRow, epicStore } from './store.ts'

/**
 * | from                       | to          | by                                    |
 * |----------------------------|-------------|---------------------------------------|
 * | PLANNING                   | IN_PROGRESS | operator, or its supervisor           |
 * | IN_PROGRESS                | PLANNING    | operator, or its supervisor           |
 * | IN_PROGRESS                | REVIEW      | epic_finish                           |
 * | REVIEW                     | IN_PROGRESS | operator, or its supervisor           |
 * | REVIEW                     | COMPLETED   | a person, once it is merged           |
 * | PLANNING, IN_PROGRESS, REVIEW | CANCELLED | a person                             |
 */
const MOVES: Record<EpicState, EpicState[]> = {
  PLANNING: ['IN_PROGRESS', 'CANCELLED'],
  IN_PROGRESS: ['PLANNING', 'CANCELLED'],
  REVIEW: ['IN_PROGRESS', 'COMPLETED', 'CANCELLED'],
  COMPLETED: [],
  CANCELLED: [],
}
const ENDS: EpicState[] = ['COMPLETED', 'CANCELLED']

export function checkMove(principal: Principal, epic: EpicRow, to: EpicState): Refusal | undefined {
  if (ENDS.includes(to) && principal.kind !== 'person')
    return refuse('PERMISSION_DENIED', `Only a person says that an epic is ${to}.`, {
      hint: 'Hand it in with epic_finish, or write to the human.',
    })
  const could = MOVES[epic.state]
  if (could.includes(to)) return undefined
  const finish = (to === 'REVIEW' || to === 'COMPLETED') && epic.state === 'IN_PROGRESS'
  return refuse('INVALID_TRANSITION', `${epicHandle(epic)} is ${epic.state}; it cannot become ${to}${finish ? ' in this way' : ''}.`, {
    ...(finish ? { next_tool: 'epic_finish', next_arguments: { epic_id: epicHandle(epic) } } : {}),
    hint: finish
      ? 'Hand it in with epic_finish; it is COMPLETED when it is merged.'
      : could.length
        ? `From here it can become ${could.join(' or ')}.`
        : 'It is over.',
    suggestions: could,
  })
}

export function isOver({ state }: Pick<EpicRow, 'state'>): boolean {
  return ENDS.includes(state)
}

/** The only writer of an epic's row after it was made. */
export async function saveEpic(ctx: RunContext, epic: EpicRow, changes: Partial<EpicRow>): Promise<EpicRow> {
  const next = { ...epic, ...changes, version: epic.version + 1, updated_at: Math.max(ctx.now, epic.updated_at + 1) }
  if (!(await epicStore(ctx.tx).update(epic, next)))
    throw refuse('CONFLICT', `${epicHandle(epic)} changed in the meantime.`, { hint: 'Read it again and repeat.' })
  if (next.state !== epic.state)
    ctx.emit(epicMoved(aboutEpic(epic), { handle: epicHandle(epic), version: next.version, from: epic.state, to: next.state }))
  return next
}

/** The caller's own one, when none is named. */
export async function requireEpic(tx: Tx, id: string | undefined): Promise<EpicRow> {
  const epic = id ? await epicStore(tx).find(id) : undefined
  if (epic) return epic
  throw id
    ? refuse('RESOURCE_NOT_FOUND', `There is no epic "${id}".`, { next_tool: 'epic_list', next_arguments: {} })
    : refuse('INVALID_INPUT', 'Which epic? You are in none: give epic_id.', { next_tool: 'epic_list', next_arguments: {} })
}

/** How its agents are started. */
export interface Launch {
  harness?: string
  model?: string
}

export function launchOf(epic: EpicRow, who: 'supervisor' | 'worker'): Launch {
  return JSON.parse(who === 'supervisor' ? epic.supervisor_launch : epic.worker_launch) as Launch
}

export function epicHandle(epic: { number: number }): string {
  return `E-${epic.number}`
}

export function aboutEpic(epic: EpicRow) {
  return { subject: epic.id, project: epic.project_id }
}

/** For those who work on its tasks. */
export async function epicFacts({ view: tx }: Reading, id: string): Promise<EpicFacts | undefined> {
  const epic = await epicStore(tx).find(id)
  if (!epic) return undefined
  const { project_id, repo_id, branch, base_branch, supervisor_id } = epic
  const open = epic.state === 'PLANNING' || epic.state === 'IN_PROGRESS'
  const branch_from = (await lastMergedInto(tx, epic.id)) ?? base_branch
  return { id: epic.id, handle: epicHandle(epic), project_id, repo_id, branch, base_branch, branch_from, open, supervisor_id }
}
