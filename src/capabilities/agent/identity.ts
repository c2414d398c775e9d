import type { Identity } from '../../kernel/invoke.ts'
import { actingFor, type Principal } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { TokenKind } from './schema.ts'
import { hashOf, newSecret, sameHash } from './secret.ts'
import { type AgentRow, agentStore, type PersonRow, type TokenRow } from './store.ts'

/** What a link is good for. */
export const REDEEM = 'token_redeem'

/** Who calls comes from here and from nowhere else. */
export function createIdentity(now: () => number): Identity {
  return {
    async authenticate(view, secret) {
      const hash = hashOf(secret)
      const token = await agentStore(view).tokenByHash(hash)
      if (!token || !sameHash(token.hash, hash)) return undefined
      const principal = await principalOf(view, token)
      return principal && { principal, stale: whyStale(token, now()) }
    },

    async refresh(tx, principal) {
      const token = principal.tokenId && (await agentStore(tx).token(principal.tokenId))
      if (!token || whyStale(token, now())) return undefined
      const holder = await principalOf(tx, token)
      if (!principal.by || !holder) return holder
      const agent = await agentStore(tx).agent(principal.id)
      return agent && actingFor(agentPrincipal(agent), holder)
    },

    async agent(view, ref) {
      const agent = await agentStore(view).agent(ref)
      return agent && agentPrincipal(agent)
    },
  }
}

function whyStale(token: TokenRow, now: number): string | undefined {
  if (token.ended_at !== null) return `was ${token.ended_why} at ${new Date(token.ended_at).toISOString()}`
  if (token.expires_at !== null && token.expires_at <= now) return `expired at ${new Date(token.expires_at).toISOString()}`
  return undefined
}

async function principalOf(view: Tx, token: TokenRow): Promise<Principal | undefined> {
  const store = agentStore(view)
  if (token.kind === 'agent') {
    const agent = await store.agent(token.principal)
    return agent && { ...agentPrincipal(agent, token.id), expiresAt: token.expires_at ?? undefined }
  }
  const person = await store.person(token.principal)
  const only = token.kind === 'link' ? REDEEM : undefined
  return person && { ...personPrincipal(person, token.id), expiresAt: token.expires_at ?? undefined, only }
}

function personPrincipal(row: PersonRow, tokenId: string): Principal {
  return {
    kind: 'person',
    id: row.id,
    name: row.name,
    handle: row.handle,
    profile: row.profile,
    owner: row.owner === 1,
    tokenId,
    scope: {},
  }
}

function agentPrincipal(row: AgentRow, tokenId?: string): Principal {
  const { id, name, handle, profile, role } = row
  const scope: Record<string, string> = {}
  if (row.project_id) scope.project = row.project_id
  if (row.task_id) scope.task = row.task_id
  if (row.epic_id) scope.epic = row.epic_id
  return { kind: 'agent', id, name, handle, profile, role, tokenId, scope }
}

/**
 * At every start: the first secret on disk that is still the owner's stays; with none, a new one replaces them all. A
 * rotation that committed but did not reach its file is completed by this, one that did not commit is dropped. On a shared
 * database every state folder has a secret of its own: a new one must not lock the owner out of the other daemons.
 */
export async function ensureOwner(
  tx: Tx,
  onDisk: string[],
  make: { id(prefix: string): string; now: number; shared: boolean },
): Promise<string> {
  const store = agentStore(tx)
  let owner = await store.owner()
  if (!owner) {
    owner = { id: make.id('person'), handle: 'owner', name: 'Owner', profile: 'maintainer', owner: 1, created_at: make.now }
    await store.insertPerson(owner)
  }
  for (const secret of onDisk) {
    const known = await store.tokenByHash(hashOf(secret))
    if (known?.principal === owner.id && known.ended_at === null) return secret
  }
  if (!make.shared) for (const token of await store.livingTokens(owner.id)) await store.endToken(token.id, 'replaced', make.now)
  const secret = newSecret('person')
  await store.insertToken(tokenRow(make.id('token'), secret, 'person', owner.id, owner.id, make.now))
  return secret
}

export function tokenRow(
  id: string,
  secret: string,
  kind: TokenKind,
  principal: string,
  by: string,
  now: number,
  expiresAt: number | null = null,
): TokenRow {
  return {
    id,
    hash: hashOf(secret),
    kind,
    principal,
    created_at: now,
    created_by: by,
    expires_at: expiresAt,
    ended_at: null,
    ended_why: null,
  }
}
