import {
  type InfiniteData,
  type Query,
  type QueryClient,
  type QueryKey,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import { type CallError, call, type Input, type Output, permitted, read, type ToolName } from './client.ts'
import { showError, showSuccess } from './kit/toasts.tsx'
import { EventStream, type LiveEvent, type StreamState } from './stream.ts'

type Listener = (events: LiveEvent[]) => void

interface Connection {
  state: StreamState
  /** How often the log was replaced by another one since the page was opened. */
  replaced: number
  subscribe(listener: Listener): () => void
  /** Something of this kind was changed here: read again what shows it, also while the stream is cut. */
  changed(noun: string): void
}

const Live = createContext<Connection | undefined>(undefined)

/** The connection of the page. What is below it is drawn once the stream is open: rows that are read then can only be repeated by it. */
export function LiveProvider({ token, onRefused, children }: { token: string; onRefused(): void; children: ReactNode }) {
  const queries = useQueryClient()
  const [refresher] = useState(() => new Refresher(queries))
  const [state, setState] = useState<StreamState>('connecting')
  const [replaced, setReplaced] = useState(0)
  const listeners = useRef(new Set<Listener>())
  const refused = useRef(onRefused)
  refused.current = onRefused

  useEffect(() => {
    const ended = new AbortController()
    const stream = new EventStream(token, {
      events(events) {
        for (const listener of listeners.current) listener(events)
        refresher.changed(events)
      },
      state(next) {
        setState(next)
        if (next === 'refused') refused.current()
      },
      resumed(generation) {
        void refresher.askAgain()
        const compared = read('task_list', { limit: 1 }, ended.signal).then(({ cursor }) => stream.compare(generation, cursor))
        compared.catch(() => {})
      },
      reset() {
        setReplaced((times) => times + 1)
        // Not only out of date: a row of the old log may have the higher version.
        void queries.resetQueries()
      },
    })
    return () => {
      ended.abort()
      stream.close()
    }
  }, [token, queries, refresher])

  const [subscribe] = useState(() => (listener: Listener) => {
    listeners.current.add(listener)
    return () => void listeners.current.delete(listener)
  })
  const changed = (noun: string) => refresher.changed([{ type: noun }])
  return <Live value={{ state, replaced, subscribe, changed }}>{children}</Live>
}

export function useStreamState(): StreamState {
  return useContext(Live)?.state ?? 'connecting'
}

/** Another number, another log: what a screen gathered from the stream is of no use any more. */
export function useReplaced(): number {
  return useContext(Live)?.replaced ?? 0
}

/** Called with what just happened, in the order in which it happened. */
export function useEvents(listener: Listener): void {
  const live = useContext(Live)
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => live?.subscribe((events) => latest.current(events)), [live])
}

interface ReadOptions {
  /** Nouns whose events change the answer; default: the tool's own. */
  follows?: string[]
  /** Of this task alone: what the agents of others do changes nothing here. */
  about?: string
  /** From one reading to the next, for what changes with every line that an agent prints. */
  rests?: number
  enabled?: boolean
}

/** What a read tool answers, kept fresh by the stream. */
export function useTool<N extends ToolName>(tool: N, input: Input<N>, { follows, about, rests, enabled }: ReadOptions = {}) {
  return useQuery<Output<N>, CallError>({
    queryKey: [tool, input],
    queryFn: ({ signal }) => read(tool, input, signal),
    meta: { follows: follows ?? [nounOf(tool)], about, rests },
    enabled,
  })
}

/** Whether whoever is signed in may call a tool; undefined while that is not known. What may not be done is not offered. */
export function useMay(): (tool: ToolName) => boolean | undefined {
  const { data, isError } = useQuery<string[], CallError>({
    queryKey: ['tools'],
    queryFn: ({ signal }) => permitted(signal),
    meta: { follows: ['person', 'setting'] },
  })
  return (tool) => data?.includes(tool) ?? (isError ? false : undefined)
}

/** A read that takes its time: made when somebody asks for it, and not again by itself. */
export function useLook<N extends ToolName>(tool: N) {
  return useMutation<Output<N>, CallError, Input<N>>({ mutationFn: (input) => call(tool, input) })
}

type PagedTool = { [N in ToolName]: Output<N> extends { next: string | null } ? N : never }[ToolName]
type Page<N extends PagedTool> = Output<N> & { next: string | null }

/** The name under which a tool takes `next` of the page before. */
type PageField<N extends PagedTool> = keyof Input<N> & ('after' | 'before')

/** All pages of a read tool: for lists that people keep short, and want whole. */
export function useAll<N extends PagedTool>(tool: N, input: Input<N>, by: PageField<N>, { follows, rests, enabled }: ReadOptions = {}) {
  return useQuery<Page<N>[], CallError>({
    queryKey: [tool, input, 'all'],
    async queryFn({ signal }) {
      const pages: Page<N>[] = []
      let from: string | null = null
      do {
        const page: Page<N> = await readPage(tool, { ...(input as object), limit: 200 }, by, from, signal)
        pages.push(page)
        from = page.next
      } while (from !== null)
      return pages
    },
    meta: { follows: follows ?? [nounOf(tool)], rests },
    enabled,
  })
}

/** Page after page of a read tool, as somebody scrolls. It is forgotten when they leave: the log has gone on by then. */
export function usePages<N extends PagedTool>(tool: N, input: Input<N>, by: PageField<N>) {
  return useInfiniteQuery<Page<N>, CallError, InfiniteData<Page<N>>, QueryKey, string | null>({
    queryKey: [tool, input, 'pages'],
    queryFn: ({ signal, pageParam }) => readPage(tool, input as object, by, pageParam, signal),
    initialPageParam: null,
    getNextPageParam: (page) => page.next,
    meta: { follows: [] },
    gcTime: 0,
  })
}

function readPage<N extends PagedTool>(tool: N, input: object, by: string, from: string | null, signal: AbortSignal): Promise<Page<N>> {
  return read(tool, { ...input, ...(from === null ? {} : { [by]: from }) } as Input<N>, signal) as Promise<Page<N>>
}

interface ActionOptions<N extends ToolName> {
  onSuccess?(output: Output<N>, input: Input<N>): void
  onError?(error: CallError, input: Input<N>): void
  /** Said when it is done; default: nothing, because the page shows it. */
  said?(output: Output<N>): string
  /** The caller shows the refusal itself. */
  quiet?: boolean
}

/** A tool that changes something. One that is tried again after a lost answer has the same key, so it is done once. */
export function useAction<N extends ToolName>(tool: N, options: ActionOptions<N> = {}) {
  const live = useContext(Live)
  const pending = useRef<{ input: string; key: string }>(undefined)
  return useMutation<Output<N>, CallError, Input<N>>({
    mutationFn(input) {
      const text = JSON.stringify(input)
      if (pending.current?.input !== text) pending.current = { input: text, key: newKey() }
      return call(tool, input, { key: pending.current.key })
    },
    onSuccess(output, input) {
      pending.current = undefined
      live?.changed(nounOf(tool))
      if (options.said) showSuccess(options.said(output))
      options.onSuccess?.(output, input)
    },
    onError(error, input) {
      if (error.body.code !== 'DISCONNECTED') pending.current = undefined
      if (!options.quiet) showError(error)
      options.onError?.(error, input)
    },
  })
}

/** Not randomUUID, which a page has only over https or on this very machine. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * Whatever is on the screen and could be another by now is read again: each query one reading at a time. Under a storm of
 * events each new one would otherwise cut off the reading that the one before began, and the screen would stand still.
 */
class Refresher {
  readonly #queries: QueryClient
  /** Being read, and whether something happened since that reading began. */
  readonly #reading = new Map<string, boolean>()

  constructor(queries: QueryClient) {
    this.#queries = queries
  }

  changed(changes: Change[]): void {
    for (const query of this.#queries.getQueryCache().findAll({ predicate: ({ queryKey, meta }) => follows(queryKey, meta, changes) })) {
      if (this.#reading.has(query.queryHash)) this.#reading.set(query.queryHash, true)
      else void this.#read(query)
    }
  }

  async #read({ queryHash, queryKey, meta }: Query): Promise<void> {
    do {
      this.#reading.set(queryHash, false)
      const rested = rest(Number(meta?.rests ?? 0))
      await this.#queries.invalidateQueries({ queryKey, exact: true })
      await rested
    } while (this.#reading.get(queryHash))
    this.#reading.delete(queryHash)
  }

  /** What was under way over a connection that is gone. */
  async askAgain(): Promise<void> {
    const asked = new Set(this.#queries.getQueryCache().findAll({ fetchStatus: 'fetching' }))
    const predicate = (query: Query) => asked.has(query)
    await this.#queries.cancelQueries({ predicate })
    await this.#queries.refetchQueries({ predicate, type: 'active' })
  }
}

const rest = (ms: number) => new Promise<void>((resolve) => (ms ? setTimeout(resolve, ms) : resolve()))

/** An event, or a noun of which it is not known what of it changed. */
interface Change {
  type: string
  task_id?: string | null
}

function follows(key: QueryKey, meta: Record<string, unknown> | undefined, changes: Change[]): boolean {
  const followed = (meta?.follows as string[] | undefined) ?? [nounOf(String(key[0]))]
  const ignored = (meta?.ignores as string[] | undefined) ?? []
  const about = meta?.about
  return changes.some(
    ({ type, task_id }) =>
      followed.includes(nounOf(type)) && !ignored.includes(type) && (about === undefined || task_id === undefined || task_id === about),
  )
}

/** `task` of `task_move` and of `task.moved`. */
function nounOf(name: string): string {
  return name.split(/[_.]/)[0] as string
}
