import { z } from 'zod'
import { defineEvent } from '../../kernel/event.ts'
import { PROFILES, ROLE_NAMES } from '../../kernel/policy.ts'
import { Timestamp } from '../../kernel/schema.ts'
import { AgentId, PersonId, TokenId } from '../ids.ts'

export const Role = z.enum(ROLE_NAMES)
export const Profile = z.enum(PROFILES)
export const AgentState = z.enum(['STARTING', 'IDLE', 'BUSY', 'WAITING_REVIEW', 'PAUSED', 'STOPPED', 'CRASHED'])

export const AgentView = z.strictObject({
  id: AgentId,
  handle: z.string(),
  name: z.string(),
  role: Role,
  profile: Profile,
  state: AgentState,
  desired: z.enum(['running', 'stopped']).describe('What is wanted of one that Signalbox runs'),
  managed: z.boolean().describe('Signalbox runs it; else it is in a window of its own'),
  project_id: z.string().nullable(),
  task_id: z.string().nullable(),
  epic_id: z.string().nullable(),
  last_active_at: Timestamp.nullable(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

/** `link`: signs a browser in as this person, once. */
export const TokenKindName = z.enum(['person', 'agent', 'link'])
export type TokenKind = z.output<typeof TokenKindName>

export const PersonView = z.strictObject({
  id: PersonId,
  handle: z.string(),
  name: z.string(),
  profile: Profile,
  owner: z.boolean(),
  created_at: Timestamp,
})

export const TokenView = z.strictObject({
  id: TokenId,
  kind: TokenKindName,
  holder_id: z.string(),
  holder: z.string(),
  status: z.enum(['active', 'expired', 'ended']),
  created_at: Timestamp,
  created_by: z.string(),
  expires_at: Timestamp.nullable(),
  ended_at: Timestamp.nullable(),
  ended_why: z.string().nullable(),
})

/** The secret is shown once. A replay of the same idempotency_key gives null here: use token_rotate when it was lost. */
export const Secret = z.string().nullable().describe('Shown once; null when an idempotent call is replayed')

export const agentInvited = defineEvent('agent.invited', z.strictObject({ handle: z.string(), role: Role, profile: Profile }))
export const personInvited = defineEvent('person.invited', z.strictObject({ handle: z.string(), profile: Profile }))
export const tokenEnded = defineEvent('token.ended', z.strictObject({ holder_id: z.string(), why: z.string() }))
export const tokenRotated = defineEvent('token.rotated', z.strictObject({ holder_id: z.string(), replaces: TokenId, owner: z.boolean() }))

export { AgentId, PersonId, TokenId }
