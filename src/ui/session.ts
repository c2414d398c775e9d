import { drafts } from './drafts.ts'
import { storage } from './storage.ts'

/** Who is signed in, kept per origin; never a cookie, which every port of this machine would get. */
export interface Session {
  token: string
  /** Known when a link made it; a pasted token is not ours to end. */
  token_id?: string
}

const KEY = 'signalbox.session'
const LINK = '#link='

let now: Session | undefined = stored()
let reason: string | undefined
let link = linkInAddress()
const listeners = new Set<() => void>()

export const session = {
  current: () => now,
  /** Why somebody was signed out, for the page that asks them to sign in again. */
  whyEnded: () => reason,
  /** The secret of the sign-in link that the page was opened with or that was pasted since, once: a second use is refused. */
  takeLink(): string | undefined {
    const taken = link
    link = undefined
    return taken
  },
  begin(next: Session) {
    storage.set(KEY, JSON.stringify(next))
    tell(next, undefined)
  },
  end(why?: string) {
    storage.remove(KEY)
    tell(undefined, why)
  },
  subscribe(listener: () => void) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

// Another tab signed in or out.
window.addEventListener('storage', (event) => {
  if (event.key === KEY) tell(stored(), undefined)
})

// A link that is pasted into a tab which is here already loads no page.
window.addEventListener('hashchange', () => {
  const fresh = linkInAddress()
  if (fresh === undefined) return
  link = fresh
  for (const listener of listeners) listener()
})

/** Taken out of the address, so that neither history nor a screenshot keeps it. */
function linkInAddress(): string | undefined {
  if (!location.hash.startsWith(LINK)) return undefined
  const secret = location.hash.slice(LINK.length)
  history.replaceState(null, '', location.pathname + location.search)
  return secret
}

function tell(next: Session | undefined, why: string | undefined): void {
  // Who leaves on purpose must not be let in again by the link that they came with.
  if (!next && why === undefined) {
    link = undefined
    drafts.dropAll()
  }
  now = next
  reason = why
  for (const listener of listeners) listener()
}

function stored(): Session | undefined {
  try {
    const found = JSON.parse(storage.get(KEY) ?? 'null') as Session | null
    return typeof found?.token === 'string' ? found : undefined
  } catch {
    return undefined
  }
}
