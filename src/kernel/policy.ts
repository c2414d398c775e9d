import { type Refusal, refuse } from './error.ts'
import type { LoggedEvent } from './event.ts'
import type { Whereabouts } from './id.ts'
import type { Tool } from './tool.ts'

/** Each step includes the ones before it. */
export const PROFILES = ['viewer', 'planner', 'pair_worker', 'operator', 'maintainer'] as const
export type Profile = (typeof PROFILES)[number]

export const ROLE_NAMES = ['supervisor', 'orchestrator', 'worker', 'reviewer', 'planner'] as const
export type Role = (typeof ROLE_NAMES)[number]

/** A connection's own ceiling: the default lane tops out at pair_worker, the admin lane must be asked for. */
export type Lane = 'default' | 'admin'
const DEFAULT_LANE_CEILING: Profile = 'pair_worker'

export interface RoleRules {
  allow: string[]
  deny: string[]
}

/**
 * Globs narrow a profile, they never extend it. `bound` is the scope that an agent of the role must have before it may
 * write at all; the others write inside their project when they have one.
 */
export const ROLES: Record<Role, RoleRules & { profile: Profile; bound?: 'task' | 'epic' }> = {
  supervisor: { profile: 'operator', allow: ['*'], deny: [], bound: 'epic' },
  orchestrator: { profile: 'operator', allow: ['*'], deny: [] },
  worker: {
    profile: 'pair_worker',
    allow: ['*'],
    // Previews are for those who look at the work; its worker has ports of its own.
    deny: ['plan_*', 'issue_*', 'audit_*', 'preview_*', 'need_*', 'review_decide', 'review_feedback'],
    bound: 'task',
  },
  reviewer: {
    profile: 'pair_worker',
    allow: ['*'],
    deny: ['plan_*', 'issue_*', 'audit_*', 'need_*', 'task_move', 'review_request'],
    bound: 'task',
  },
  planner: { profile: 'planner', allow: ['*'], deny: [] },
}

export interface Principal {
  kind: 'person' | 'agent' | 'system'
  id: string
  name: string
  handle: string
  profile: Profile
  /** Agents only. */
  role?: Role
  /** The person who installed this daemon. */
  owner?: boolean
  tokenId?: string
  /** When that token ends by itself. */
  expiresAt?: number
  /** Where an agent may write. */
  scope: Whereabouts
  /** The one tool that its token is for: a link signs a browser in, and does nothing else. */
  only?: string
  /** The person behind this call, when a person acts for an agent. */
  by?: string
}

export const SYSTEM: Principal = {
  kind: 'system',
  id: 'system',
  name: 'Signalbox',
  handle: 'system',
  profile: 'maintainer',
  scope: {},
}

export function reaches(profile: Profile, needed: Profile): boolean {
  return PROFILES.indexOf(profile) >= PROFILES.indexOf(needed)
}

/** People are capped by the lane of their connection, also when they act for an agent; an agent's own profile was granted to it explicitly. */
export function onLane(principal: Principal, lane: Lane): Principal {
  const aPerson = principal.kind === 'person' || principal.by !== undefined
  return aPerson && lane === 'default' ? { ...principal, profile: lower(principal.profile, DEFAULT_LANE_CEILING) } : principal
}

/** The agent as a person drives it: nobody gains by acting for another, so the lower of the two profiles holds. */
export function actingFor(agent: Principal, person: Principal): Principal {
  return { ...agent, profile: lower(agent.profile, person.profile), tokenId: person.tokenId, only: person.only, by: person.id }
}

function lower(a: Profile, b: Profile): Profile {
  return reaches(a, b) ? b : a
}

/** `*` stands for any run of characters; the pattern is anchored at both ends. */
export function globMatches(glob: string, name: string): boolean {
  if (glob === '*') return true
  let pattern = patterns.get(glob)
  if (!pattern) {
    if (patterns.size >= MOST_PATTERNS) patterns.clear()
    pattern = patternOf(glob)
    patterns.set(glob, pattern)
  }
  return pattern.test(name)
}

/** Globs come from settings: a few, asked for at every call. */
const MOST_PATTERNS = 1_000
const patterns = new Map<string, RegExp>()

function patternOf(glob: string): RegExp {
  const source = glob
    .split('*')
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*')
  return new RegExp(`^${source}$`)
}

export interface PermissionQuestion {
  principal: Principal
  lane: Lane
  tool: Tool
  /** The name that the rules are written over: a dialect's globs mean its own names. */
  name: string
  /** The name that the caller used, for the message. */
  calledAs: string
  rules?: RoleRules
}

/** The whole answer to "may this identity call this tool at all?"; scope is asked later, with the ids at hand. */
export function mayCall({ principal, lane, tool, name, calledAs, rules }: PermissionQuestion): Refusal | undefined {
  if (principal.kind === 'system') return undefined
  if (tool.internal) return refuse('TOOL_NOT_FOUND', `There is no tool "${calledAs}".`)
  if (principal.only !== undefined && principal.only !== tool.name)
    return denied(principal, calledAs, `this token is for ${principal.only} alone`)
  if (tool.by !== undefined && principal.kind !== 'person')
    return denied(principal, calledAs, `only a person may call it, whatever the role`)
  if (tool.across === 'projects' && onlyProject(principal) !== undefined)
    return denied(principal, calledAs, 'it shows what belongs to every project, and you have one of your own')
  if (tool.by === 'owner' && !principal.owner) return denied(principal, calledAs, 'only the owner of this daemon may call it')
  const { profile } = onLane(principal, lane)
  if (!reaches(profile, tool.profile)) return tooLow(principal, profile, lane, tool, calledAs)
  if (!principal.role) return undefined
  const role = rules ?? ROLES[principal.role]
  if (role.deny.some((glob) => globMatches(glob, name))) return denied(principal, calledAs, `the role ${principal.role} is denied it`)
  if (!role.allow.some((glob) => globMatches(glob, name)))
    return denied(principal, calledAs, `the role ${principal.role} does not include it`)
  return undefined
}

function denied(principal: Principal, name: string, why: string): Refusal {
  return refuse('PERMISSION_DENIED', `You may not call ${name}: ${why}.`, asked(principal, name))
}

/** Tells a refusal of the tool itself from one of what it was to act on. */
function asked({ role }: Principal, tool: string): { details?: Record<string, unknown> } {
  return role ? { details: { tool, role } } : {}
}

function tooLow(principal: Principal, profile: Profile, lane: Lane, tool: Tool, name: string): Refusal {
  const hint =
    principal.kind === 'person' && lane === 'default' && reaches(principal.profile, tool.profile)
      ? 'This connection is on the default lane. Ask for the admin lane: `signalbox mcp --admin`.'
      : `Ask a person to call it, or to give you the profile ${tool.profile}.`
  return refuse('PERMISSION_DENIED', `${name} needs the profile ${tool.profile}; this connection has ${profile}.`, {
    hint,
    ...asked(principal, name),
  })
}

/** Whether an agent may act on a thing that lies at `within`. People act everywhere. */
export function inScope(principal: Principal, kind: string, id: string, within: Whereabouts): Refusal | undefined {
  if (principal.kind !== 'agent' || id === principal.id) return undefined
  const bound = principal.role && ROLES[principal.role].bound
  if (bound && !principal.scope[bound]) {
    return refuse('PERMISSION_DENIED', `As a ${principal.role} you act on your own ${bound} only, and you have none.`, {
      hint:
        bound === 'epic'
          ? 'Ask a person to let you lead one (epic_update).'
          : 'Ask a person or a supervisor to assign you one (task_assign).',
    })
  }
  const limits = bound ? { [bound]: principal.scope[bound] } : principal.scope
  for (const [scope, own] of Object.entries(limits)) {
    if (own === undefined || within[scope] === own) continue
    return refuse('PERMISSION_DENIED', `That ${kind} lies outside your ${scope}.`, {
      hint: `You act only inside your own ${scope}.`,
    })
  }
  return undefined
}

/** The only project that this caller sees. Undefined: all of them, for people and for agents that were given none in particular. */
export function onlyProject({ kind, scope }: Principal): string | undefined {
  return kind === 'agent' ? scope.project : undefined
}

/** Whether an agent may name a thing that lies at `within`, for whatever purpose. */
export function maySee(principal: Principal, kind: string, id: string, within: Whereabouts): Refusal | undefined {
  const own = onlyProject(principal)
  if (!own || !within.project || within.project === own || id === principal.id) return undefined
  return refuse('PERMISSION_DENIED', `That ${kind} lies outside your project.`, { hint: 'You see your own project only.' })
}

/** One rule for tail, waits and streams. */
export function mayRead(principal: Principal, event: LoggedEvent): boolean {
  if (principal.kind !== 'agent') return true
  if (event.audience === 'people') return false
  if (typeof event.audience === 'object') return event.audience.only === principal.id
  const project = onlyProject(principal)
  return !project || !event.project || event.project === project
}
