import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import { type Profile as ProfileName, ROLES, type Role as RoleName, reaches } from '../../kernel/policy.ts'
import { iso, isoOrNull, PageSize, PageToken, Timestamp, text } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { nextNumber, slug, uniqueHandle } from '../handle.ts'
import { ProjectId } from '../ids.ts'
import { type AgentFacts, factsOf, sessionOf } from './about.ts'
import { REDEEM, tokenRow } from './identity.ts'
import {
  AgentId,
  AgentState,
  AgentView,
  agentInvited,
  PersonId,
  PersonView,
  Profile,
  personInvited,
  Role,
  Secret,
  TokenId,
  type TokenKind,
  TokenView,
  tokenEnded,
  tokenRotated,
} from './schema.ts'
import { newSecret } from './secret.ts'
import { type AgentRow, agentStore, type TokenRow } from './store.ts'
import '../../ports/owner-file.ts'

const HOUR_MS = 3_600_000

export const invite = defineTool({
  name: 'agent_invite',
  title: 'Invite an agent',
  description: 'Create an agent identity and its token. The token is shown once; assign a task with task_assign.',
  input: z.strictObject({
    role: Role,
    name: text(80).optional().describe('Shown to people; the handle derives from it'),
    profile: Profile.optional().describe('Default: what the role gives'),
    project_id: mention(ProjectId).optional().describe('It sees and changes this project alone; without one it sees all'),
    expires_in_hours: z.number().gt(0).max(8_760).optional(),
  }),
  output: z.strictObject({
    agent_id: AgentId,
    handle: z.string(),
    role: Role,
    profile: Profile,
    token: Secret,
    token_id: TokenId,
    expires_at: z.string().nullable(),
  }),
  example: { role: 'worker', name: 'Ann' },
  impact: 'write',
  profile: 'maintainer',
  by: 'person',
  async run(ctx, input) {
    const { id, handle, profile } = await createAgent(ctx, input)
    const expiresAt = input.expires_in_hours ? ctx.now + input.expires_in_hours * HOUR_MS : null
    const { token, token_id } = await mint(ctx, 'agent', id, expiresAt)
    return { agent_id: id, handle, role: input.role, profile, token, token_id, expires_at: isoOrNull(expiresAt) }
  },
})

export const invitePerson = defineTool({
  name: 'person_invite',
  title: 'Name a person',
  description: 'Let another person in under their own name and token. Only the owner can.',
  input: z.strictObject({ name: text(80), profile: Profile.default('maintainer') }),
  output: z.strictObject({ person_id: PersonId, handle: z.string(), profile: Profile, token: Secret, token_id: TokenId }),
  example: { name: 'Bea', profile: 'operator' },
  impact: 'write',
  profile: 'maintainer',
  by: 'owner',
  async run(ctx, input) {
    const store = agentStore(ctx.tx)
    const handle = await nextHandle(ctx, slug(input.name, 'person'))
    const id = ctx.id('person')
    await store.insertPerson({ id, handle, name: input.name, profile: input.profile, owner: 0, created_at: ctx.now })
    const minted = await mint(ctx, 'person', id, null)
    ctx.emit(personInvited({ subject: id, audience: 'people' }, { handle, profile: input.profile }))
    return { person_id: id, handle, profile: input.profile, ...minted }
  },
})

export const listPeople = defineTool({
  name: 'person_list',
  title: 'List people',
  description: 'The people who may sign in, oldest first.',
  input: z.strictObject({}),
  output: z.strictObject({ people: z.array(PersonView) }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  async look(ctx) {
    const rows = await agentStore(ctx.view).people()
    return { people: rows.map((row) => ({ ...row, owner: row.owner === 1, created_at: iso(row.created_at) })) }
  },
})

export const me = defineTool({
  name: 'agent_me',
  title: 'Who am I',
  description: 'Your proven identity: role, profile, state, current task and project.',
  input: z.strictObject({}),
  output: z.strictObject({
    id: z.string(),
    kind: z.enum(['person', 'agent', 'system']),
    handle: z.string(),
    name: z.string(),
    role: Role.nullable(),
    profile: Profile,
    state: AgentState.nullable(),
    project_id: z.string().nullable(),
    task_id: z.string().nullable(),
    epic_id: z.string().nullable(),
    worktree: z.string().nullable(),
    branch: z.string().nullable(),
    session_name: z.string().nullable().describe('What `signalbox attach` shows of you'),
    last_active_at: Timestamp.nullable().describe('When you called last, before this'),
    created_at: Timestamp.nullable(),
    updated_at: Timestamp.nullable(),
  }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  core: true,
  async look(ctx) {
    const { principal } = ctx
    const row = principal.kind === 'agent' ? await agentStore(ctx.view).agent(principal.id) : undefined
    const facts = row && (await factsOf(ctx, [row]))(row)
    return {
      id: principal.id,
      kind: principal.kind,
      handle: principal.handle,
      name: principal.name,
      role: principal.role ?? null,
      profile: principal.profile,
      state: row && facts ? await stateOf(ctx.view, row, facts, ctx.now) : null,
      project_id: row?.project_id ?? null,
      task_id: row?.task_id ?? null,
      epic_id: row?.epic_id ?? null,
      worktree: facts?.worktree ?? null,
      branch: facts?.branch ?? null,
      session_name: row && facts ? await sessionOf(ctx, row, facts) : null,
      last_active_at: isoOrNull(await agentStore(ctx.view).lastActive(principal.id)),
      created_at: isoOrNull(row?.created_at ?? null),
      updated_at: isoOrNull(row?.updated_at ?? null),
    }
  },
})

export const list = defineTool({
  name: 'agent_list',
  title: 'List agents',
  description: 'Agents with role, state and current task, oldest first.',
  input: z.strictObject({
    project_id: ProjectId.optional().describe('Those of this project, and those that have none'),
    limit: PageSize,
    after: PageToken.optional(),
  }),
  output: z.strictObject({ agents: z.array(AgentView), next: z.string().nullable() }),
  example: { limit: 20 },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, limit, after }) {
    const rows = await agentStore(ctx.view).agents(project_id, after ?? '', limit)
    const agents = []
    const facts = await factsOf(ctx, rows)
    for (const row of rows) agents.push(await agentView(ctx.view, row, facts(row), ctx.now))
    return { agents, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

export const tokens = defineTool({
  name: 'token_list',
  title: 'List tokens',
  description: 'Every token with its holder and state; never the secret.',
  input: z.strictObject({ limit: PageSize, after: PageToken.optional() }),
  output: z.strictObject({ tokens: z.array(TokenView), next: z.string().nullable() }),
  example: { limit: 20 },
  impact: 'read',
  profile: 'maintainer',
  by: 'person',
  async look(ctx, { limit, after }) {
    const rows = await agentStore(ctx.view).tokens(after ?? '', limit)
    const views = []
    for (const row of rows) views.push(await tokenView(ctx.view, row, ctx.now))
    return { tokens: views, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

export const revoke = defineTool({
  name: 'token_revoke',
  title: 'Revoke tokens',
  description: 'End one token, or all of an agent or person, with the next call. Below maintainer: your own token alone.',
  input: z
    .strictObject({ token_id: TokenId.optional(), agent_id: AgentId.optional(), person_id: PersonId.optional() })
    .refine((input) => Object.values(input).filter(Boolean).length === 1, 'name exactly one of token_id, agent_id, person_id'),
  output: z.strictObject({ revoked: z.int().min(0).max(10_000) }),
  example: { agent_id: 'ann' },
  impact: 'destructive',
  profile: 'viewer',
  by: 'person',
  async run(ctx, input) {
    if (!reaches(ctx.principal.profile, 'maintainer') && input.token_id !== ctx.principal.tokenId)
      return refuse('PERMISSION_DENIED', 'Below maintainer you end no token but the one that you call with.')
    const store = agentStore(ctx.tx)
    const living = input.token_id
      ? [await store.token(input.token_id)]
      : await store.livingTokens((input.agent_id ?? input.person_id) as string)
    let revoked = 0
    for (const token of living) {
      if (!token) continue
      await protectOwner(ctx, token)
      if (!(await store.endToken(token.id, 'revoked', ctx.now))) continue
      ctx.emit(tokenEnded({ subject: token.id, audience: 'people' }, { holder_id: token.principal, why: 'revoked' }))
      revoked++
    }
    return { revoked }
  },
})

export const link = defineTool({
  name: 'token_link',
  title: 'Make a sign-in link',
  description: 'A link that signs one browser in to the dashboard as you, once, within an hour.',
  input: z.strictObject({}),
  output: z.strictObject({ url_path: z.string().describe("Stands behind the daemon's address"), expires_at: Timestamp }),
  example: {},
  impact: 'write',
  // Above what a default connection reaches: what the browser gets is on the admin lane.
  profile: 'operator',
  by: 'person',
  async run(ctx) {
    await agentStore(ctx.tx).dropDeadLinks(ctx.now)
    const expiresAt = ctx.now + HOUR_MS
    const { token } = await mint(ctx, 'link', ctx.principal.id, expiresAt)
    return { url_path: `/#link=${token}`, expires_at: iso(expiresAt) }
  },
})

export const redeem = defineTool({
  name: REDEEM,
  title: 'Use a sign-in link',
  description: 'Called with the secret of a link as the token: ends it and gives a token for this browser.',
  input: z.strictObject({}),
  output: z.strictObject({ token: Secret, token_id: TokenId, expires_at: Timestamp }),
  example: {},
  impact: 'write',
  profile: 'viewer',
  by: 'person',
  async run(ctx) {
    const store = agentStore(ctx.tx)
    const used = ctx.principal.only === REDEEM ? ctx.principal.tokenId : undefined
    if (!used)
      return refuse('PERMISSION_DENIED', 'Only the secret of a sign-in link is redeemed.', { next_tool: 'token_link', next_arguments: {} })
    if (!(await store.endToken(used, 'used', ctx.now))) return refuse('AUTH_STALE_TOKEN', 'This link was used just now.')
    ctx.emit(tokenEnded({ subject: used, audience: 'people' }, { holder_id: ctx.principal.id, why: 'used' }))
    const expiresAt = ctx.now + ctx.setting<number>('dashboard.sign_in_days') * 24 * HOUR_MS
    return { ...(await mint(ctx, 'person', ctx.principal.id, expiresAt)), expires_at: iso(expiresAt) }
  },
})

export const rotate = defineTool({
  name: 'token_rotate',
  title: 'Rotate a token',
  description: 'Replace a token by a new secret, shown once. The old one ends at once.',
  input: z.strictObject({ token_id: TokenId }),
  output: z.strictObject({ token: Secret, token_id: TokenId }),
  example: { token_id: 'token_01jc80000000000000000000000000000000' },
  impact: 'destructive',
  profile: 'maintainer',
  by: 'person',
  async prepare(ctx, input) {
    const token = await agentStore(ctx.view).token(input.token_id)
    const secret = newSecret(token?.kind ?? 'agent')
    if (token?.kind === 'link')
      return refuse('INVALID_INPUT', 'A link is used once; make another.', { next_tool: 'token_link', next_arguments: {} })
    const ofOwner = token !== undefined && (await isOwnerFile(ctx.view, token))
    const ofAnother = token?.kind === 'person' && token.principal !== ctx.principal.id
    if (ofAnother && !ctx.principal.owner) return refuse('PERMISSION_DENIED', "Only the owner rotates another person's token.")
    if (ofOwner) await ctx.ports.ownerFile.stage(secret)
    return { secret, ofOwner }
  },
  async run(ctx, input, { secret, ofOwner }) {
    const store = agentStore(ctx.tx)
    const old = await store.token(input.token_id)
    if (!old || old.ended_at !== null || hasExpired(old, ctx.now))
      return refuse('CONFLICT', 'That token has already ended.', { hint: 'Invite the agent again.' })
    await store.endToken(old.id, 'rotated', ctx.now)
    if (old.kind === 'person' && old.expires_at === null) await endSignIns(ctx, old.principal)
    const id = ctx.id('token')
    await store.insertToken(tokenRow(id, secret, old.kind, old.principal, ctx.principal.id, ctx.now, old.expires_at))
    ctx.emit(tokenRotated({ subject: id, audience: 'people' }, { holder_id: old.principal, replaces: old.id, owner: ofOwner }))
    return { token: secret, token_id: id }
  },
})

/** Whoever had the secret may have made links with it, and signed browsers in; the one that asks stays, to see the new secret. */
async function endSignIns(ctx: RunContext, holder: string): Promise<void> {
  const store = agentStore(ctx.tx)
  for (const token of await store.livingTokens(holder)) {
    if (token.expires_at === null || token.id === ctx.principal.tokenId) continue
    await store.endToken(token.id, 'rotated', ctx.now)
    ctx.emit(tokenEnded({ subject: token.id, audience: 'people' }, { holder_id: holder, why: 'rotated' }))
  }
}

/** What lies in the state folder; a browser's token is the owner's too, but ends by itself. */
async function isOwnerFile(view: Tx, token: TokenRow): Promise<boolean> {
  return token.kind === 'person' && token.expires_at === null && token.principal === (await agentStore(view).owner())?.id
}

async function mint(ctx: RunContext, kind: TokenKind, principal: string, expiresAt: number | null) {
  const token = newSecret(kind)
  const token_id = ctx.id('token')
  await agentStore(ctx.tx).insertToken(tokenRow(token_id, token, kind, principal, ctx.principal.id, ctx.now, expiresAt))
  return { token, token_id }
}

/** An identity without a token: nobody can act as it yet. */
export async function createAgent(
  ctx: RunContext,
  wanted: { role: RoleName; name?: string; profile?: ProfileName; project_id?: string },
): Promise<AgentRow> {
  const { role, name } = wanted
  const row: AgentRow = {
    id: ctx.id('agent'),
    handle: name ? await nextHandle(ctx, slug(name, role)) : await numberedHandle(ctx, role),
    name: name ?? role,
    role,
    profile: wanted.profile ?? defaultProfile(ctx, role),
    project_id: wanted.project_id ?? null,
    task_id: null,
    epic_id: null,
    desired: 'running',
    created_at: ctx.now,
    updated_at: ctx.now,
  }
  await agentStore(ctx.tx).insertAgent(row)
  const { id, handle, profile, project_id } = row
  ctx.emit(agentInvited({ subject: id, project: project_id, audience: 'people' }, { handle, role, profile }))
  return row
}

/** Its holder has it from a file that was written before; only the hash comes here. */
export async function admitToken(ctx: RunContext, agentId: string, hash: string): Promise<string> {
  const store = agentStore(ctx.tx)
  const known = await store.tokenByHash(hash)
  if (known) return known.id
  const id = ctx.id('token')
  await store.insertToken({ ...tokenRow(id, '', 'agent', agentId, ctx.principal.id, ctx.now), hash })
  return id
}

/** With its next call it is refused. */
export async function endToken(ctx: RunContext, tokenId: string, why: string): Promise<void> {
  const store = agentStore(ctx.tx)
  const token = await store.token(tokenId)
  if (token && (await store.endToken(tokenId, why, ctx.now)))
    ctx.emit(tokenEnded({ subject: tokenId, audience: 'people' }, { holder_id: token.principal, why }))
}

/** People and agents share one space of handles: a letter to "ann" must not be ambiguous. */
function nextHandle(ctx: RunContext, base: string): Promise<string> {
  return uniqueHandle(base, (handle) => isTaken(ctx, handle))
}

/** `worker-1`, `worker-2`, …, past the numbers that somebody has taken as a name. */
async function numberedHandle(ctx: RunContext, role: RoleName): Promise<string> {
  for (;;) {
    const handle = `${role}-${await nextNumber(ctx.tx, role)}`
    if (!(await isTaken(ctx, handle))) return handle
  }
}

/** Names that stand for others: a letter from "system" must be one of Signalbox. */
const NOBODYS = ['human', 'system', 'signalbox']

async function isTaken(ctx: RunContext, handle: string): Promise<boolean> {
  if (NOBODYS.includes(handle)) return true
  const store = agentStore(ctx.tx)
  return Boolean((await store.agent(handle)) ?? (await store.person(handle)))
}

function defaultProfile(ctx: RunContext, role: RoleName): ProfileName {
  return ctx.setting<ProfileName | null>(`roles.${role}.profile`) ?? ROLES[role].profile
}

/** Without a living owner's token nobody could manage the daemon any more. */
async function protectOwner(ctx: RunContext, token: TokenRow): Promise<void> {
  const ofAnother = token.kind !== 'agent' && token.principal !== ctx.principal.id
  if (ofAnother && !ctx.principal.owner) throw refuse('PERMISSION_DENIED', "Only the owner ends another person's token.")
  if (!(await isOwnerFile(ctx.tx, token))) return
  throw refuse('PERMISSION_DENIED', "The owner's token cannot be revoked, only replaced.", {
    next_tool: 'token_rotate',
    next_arguments: { token_id: token.id },
  })
}

async function stateOf(view: Tx, row: AgentRow, { state }: AgentFacts, now: number): Promise<z.output<typeof AgentState>> {
  if (state) return state
  const living = await agentStore(view).livingTokens(row.id)
  if (living.every((token) => hasExpired(token, now))) return 'STOPPED'
  return row.task_id ? 'BUSY' : 'IDLE'
}

export async function agentView(view: Tx, row: AgentRow, facts: AgentFacts, now: number): Promise<z.output<typeof AgentView>> {
  const lastActive = await agentStore(view).lastActive(row.id)
  return {
    ...row,
    state: await stateOf(view, row, facts, now),
    managed: facts.managed,
    last_active_at: isoOrNull(lastActive),
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
  }
}

function hasExpired(token: TokenRow, now: number): boolean {
  return token.expires_at !== null && token.expires_at <= now
}

async function tokenView(view: Tx, row: TokenRow, now: number): Promise<z.output<typeof TokenView>> {
  const store = agentStore(view)
  const holder = row.kind === 'agent' ? await store.agent(row.principal) : await store.person(row.principal)
  return {
    id: row.id,
    kind: row.kind,
    holder_id: row.principal,
    holder: holder?.handle ?? row.principal,
    status: row.ended_at !== null ? 'ended' : hasExpired(row, now) ? 'expired' : 'active',
    created_at: iso(row.created_at),
    created_by: row.created_by,
    expires_at: isoOrNull(row.expires_at),
    ended_at: isoOrNull(row.ended_at),
    ended_why: row.ended_why,
  }
}
