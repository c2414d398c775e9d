import { useEffect, useSyncExternalStore } from 'react'

/** A word on a line of a difference. */
export interface LineComment {
  path: string
  /** Of the file as it was, or as it is. */
  side: 'before' | 'after'
  line: number
  /** What stands there: a line that was changed meanwhile is another one. */
  quoted: string
  body: string
}

/** What somebody wrote about the work of a task, and has not sent. */
export interface Draft {
  text: string
  comments: LineComment[]
}

const PREFIX = 'signalbox.draft.'
const NOTHING: Draft = { text: '', comments: [] }
const known = new Map<string, Draft>()
const listeners = new Set<() => void>()

/** Kept for this tab, also when the page is loaded anew. */
export const drafts = {
  of(task: string): Draft {
    const draft = known.get(task) ?? stored(task)
    known.set(task, draft)
    return draft
  },
  change(task: string, change: (draft: Draft) => Partial<Draft>): void {
    const before = drafts.of(task)
    known.set(task, { ...before, ...change(before) })
    keep(() => sessionStorage.setItem(PREFIX + task, JSON.stringify(known.get(task))))
    tell()
  },
  drop(task: string): void {
    known.set(task, NOTHING)
    keep(() => sessionStorage.removeItem(PREFIX + task))
    tell()
  },
  /** The next one who signs in here is somebody else. */
  dropAll(): void {
    known.clear()
    keep(() => {
      for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key)
    })
    tell()
  },
  subscribe(listener: () => void) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

export function useDraft(task: string): Draft {
  return useSyncExternalStore(drafts.subscribe, () => drafts.of(task))
}

let sought: LineComment | undefined

/** Somebody wants to go on with it: its field takes the focus as soon as it is on the page. */
export function seek(comment: LineComment): void {
  sought = comment
  tell()
}

/** Whether it is this one; true once. */
export function useSought(at: Omit<LineComment, 'body'>): boolean {
  const wanted = useSyncExternalStore(drafts.subscribe, () => sought !== undefined && isSame(sought, at))
  useEffect(() => {
    if (wanted) sought = undefined
  }, [wanted])
  return wanted
}

export function isSame(a: LineComment, b: Omit<LineComment, 'body'>): boolean {
  return a.path === b.path && a.side === b.side && a.line === b.line && a.quoted === b.quoted
}

/** Begun with nothing; written over when it is there. */
export function comment(task: string, at: Omit<LineComment, 'body'>, body: string): void {
  drafts.change(task, ({ comments }) => ({
    comments: comments.some((one) => isSame(one, at))
      ? comments.map((one) => (isSame(one, at) ? { ...one, body } : one))
      : [...comments, { ...at, body }],
  }))
}

export function uncomment(task: string, at: Omit<LineComment, 'body'>): void {
  drafts.change(task, ({ comments }) => ({ comments: comments.filter((one) => !isSame(one, at)) }))
}

function tell(): void {
  for (const listener of listeners) listener()
}

/** A browser that keeps nothing has it as long as the page is open. */
function keep(act: () => void): void {
  try {
    act()
  } catch {
    // Full, or forbidden.
  }
}

function stored(task: string): Draft {
  try {
    const found = JSON.parse(sessionStorage.getItem(PREFIX + task) ?? 'null') as Draft | null
    return typeof found?.text === 'string' && Array.isArray(found.comments) ? found : NOTHING
  } catch {
    return NOTHING
  }
}
