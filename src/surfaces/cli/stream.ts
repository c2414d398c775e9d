import { setTimeout as pause } from 'node:timers/promises'
import { isBusy, openStream, type Reach, unreachable } from './call.ts'

const BETWEEN_TRIES_MS = 1_000

/** A part of the stream: where it is (also the first thing that a new connection says), or an event as JSON. */
interface Part {
  id?: string
  data?: string
}

/** What happens; after a restart of the daemon it goes on where it stopped. Ends with the signal, or with the process. */
export async function* follow(reach: Reach, onCut: () => void, signal?: AbortSignal): AsyncGenerator<Part> {
  for (let last: string | undefined; ; ) {
    let busy = false
    const response = await openStream(reach, last, signal).catch((error: unknown) => {
      busy = isBusy(error)
      if (!busy) throw error
    })
    if (signal?.aborted) return
    if (!response && !busy && last === undefined) unreachable(reach.daemon())
    if (response) {
      for await (const part of parts(response)) {
        last = part.id ?? last
        yield part
      }
    }
    if (signal?.aborted) return
    onCut()
    await pause(BETWEEN_TRIES_MS, undefined, { signal })
  }
}

async function* parts(response: Response): AsyncGenerator<Part> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(chunk, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('id: ')) yield { id: line.slice(4) }
        if (line.startsWith('data: ')) yield { data: line.slice(6) }
      }
    }
  } catch {
    // The daemon went away in the middle; the last id says where to go on.
  }
}
