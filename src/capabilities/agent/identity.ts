import type { Identity } from '../../kernel/invoke.ts'
import { actingFor, type Principal } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { TokenKind } from './schema.ts'
import { hashOf, newSecret, sameHash } from './secret.ts'
import { agentStore, type HeldToken, type TokenRow } from './store.ts'

/** What a link is good for. */
export const REDEEM = 'token_redeem'

/** A living token with the one that it stands for. */
interface Known {
  token: TokenRow
  principal: Principal
}

type VersionOf = (tables: readonly string[]) => number | undefined

/**
 * Who calls comes from here and from nowhere else. What was found is kept until one of the tables changes, where that can be
 * known; on a shared database another daemon may end a token at any moment, so every call asks again.
 */
export function createIdentity(now: () => number, versionOf?: VersionOf): Identity {
  const kept = new Kept(versionOf)

  async function byHash(view: Tx, hash: string): Promise<Known | undefined> {
    const known = kept.find(hash)
    if (known) return known
    const version = kept.version()
    const token = await agentStore(view).heldToken('hash', hash)
    if (!token || !sameHash(token.hash, hash)) return undefined
    const principal = principalOf(token)
    if (!principal) return undefined
    kept.keep(version, { token, principal })
    return { token, principal }
  }

  /** In a transaction nothing is kept: what it sees may be taken back. */
  async function byId(tx: Tx, tokenId: string): Promise<Known | undefined> {
    const known = kept.find(tokenId)
    if (known) return known
    const token = await agentStore(tx).heldToken('id', tokenId)
    const principal = token && principalOf(token)
    return principal && { token, principal }
  }

  return {
    async authenticate(view, secret) {
      const found = await byHash(view, hashOf(secret))
      return found && { principal: found.principal, stale: whyStale(found.token, now()) }
    },

    async refresh(tx, principal) {
      const found = principal.tokenId === undefined ? undefined : await byId(tx, principal.tokenId)
      if (!found || whyStale(found.token, now())) return undefined
      if (!principal.by) return found.principal
      const agent = await agentStore(tx).agent(principal.id)
      return agent && actingFor(agentPrincipal(agent), found.principal)
    },

    async agent(view, ref) {
      const agent = await agentStore(view).agent(ref)
      return agent && agentPrincipal(agent)
    },
  }
}

const TABLES = ['tokens', 'people', 'agents'] as const
const MOST_KEPT = 10_000

/** By the hash of the secret and by the token's id, for as long as the tables stay as they are. */
class Kept {
  readonly #versionOf: VersionOf | undefined
  readonly #found = new Map<string, Known>()
  #version: number | undefined

  constructor(versionOf: VersionOf | undefined) {
    this.#versionOf = versionOf
  }

  version(): number | undefined {
    return this.#versionOf?.(TABLES)
  }

  find(key: string): Known | undefined {
    return this.#version !== undefined && this.version() === this.#version ? this.#found.get(key) : undefined
  }

  /** `version` is that from before the rows were read: with a later one, a change in between would be missed for ever. */
  keep(version: number | undefined, known: Known): void {
    if (version === undefined || version !== this.version()) return
    if (version !== this.#version || this.#found.size >= MOST_KEPT) this.#found.clear()
    this.#version = version
    this.#found.set(known.token.hash, known).set(known.token.id, known)
  }
}

function whyStale(token: TokenRow, now: number): string | undefined {
  if (token.ended_at !== null) return `was ${token.ended_why} at ${new Date(token.ended_at).toISOString()}`
  if (token.expires_at !== null && token.expires_at <= now) return `expired at ${new Date(token.expires_at).toISOString()}`
  return undefined
}

function principalOf({ agent, person, ...token }: HeldToken): Principal | undefined {
  const expiresAt = token.expires_at ?? undefined
  if (token.kind === 'agent') return agent && { ...agentPrincipal(agent, token.id), expiresAt }
  const only = token.kind === 'link' ? REDEEM : undefined
  return person && { ...personPrincipal(person, token.id), expiresAt, only }
}

function personPrincipal(row: NonNullable<HeldToken['person']>, tokenId: string): Principal {
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

function agentPrincipal(row: NonNullable<HeldToken['agent']>, tokenId?: string): Principal {
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
