import { randomBytes } from 'node:crypto'
import { type FileHandle, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Batch, Exit, Input, Runner, RunSpec, Started, StopReason } from '../../ports/runner.ts'
import { claim, replace } from '../../runner/files.ts'
import { type RunnerRecord, readRecord } from '../../runner/record.ts'
import { SPOOL, STOP, type Stop } from '../../runner/spec.ts'
import { BATCH_BYTES, parseFrames } from '../../runner/spool.ts'
import { signal as signalProcess } from '../../runner/tree.ts'
import { agentEnvironment, runnerEnvironment } from './environment.ts'
import { type Hidden, type Isolation, MARKER_ONLY, probeIsolation } from './isolation.ts'
import { launchRunner } from './launch.ts'
import { callRunner } from './line.ts'
import { openNews } from './news.ts'
import { checkKept, exitOf, lookAt, neverStarted, type Place, placeOf, settleUnstarted, startedOf } from './state.ts'

export interface RunnerOptions {
  /** Where each run has its folder, `<home>/runs`. */
  folder: string
  /** A short path, since a socket's has at most 100 bytes. Hidden from agents: the daemon's own socket is elsewhere. */
  sockets: string
  /** The built runner, `dist/runner.js`. */
  entry: string
  /** Makes a folder for us alone, and throws when somebody else has a hand in it. */
  privateFolder: (path: string) => void
  /** Of the daemon. Agents get a few names of it. */
  env: Record<string, string | undefined>
  /** `marker` where namespaces work but are not wanted: sudo does not work in one. */
  isolation?: 'auto' | 'marker'
  /** What an agent in a namespace does not see, but for its own folder and worktree; and other sockets than its daemon's. */
  hidden?: Pick<Hidden, 'home'>
}

const MAX_SOCKET_PATH = 100
/** What a runner needs beyond the grace to end a tree that does not want to. One that is itself stuck is killed then. */
const RUNNER_LATE_MS = 30_000
const ATTEMPTS = 3
const MOST_INPUT_BYTES = 4 * 1024 * 1024

export function createRunner(options: RunnerOptions): Runner {
  const at = (run: string) => placeOf(options.folder, run)
  let isolation: Promise<Isolation> | undefined
  const isolate = () => {
    isolation ??= options.isolation === 'marker' ? Promise.resolve(MARKER_ONLY) : probe(options).catch(tryAgain)
    return isolation
  }
  function tryAgain(error: Error): never {
    isolation = undefined
    throw error
  }
  async function folder(run: string): Promise<string> {
    const place = at(run)
    options.privateFolder(place.folder)
    return place.folder
  }
  return {
    folder,
    keep: async (run, name, make) => keepFile(await folder(run), name, make),
    async start(run, spec) {
      await folder(run)
      return start(at(run), spec, options, await isolate())
    },
    exposed: () =>
      isolate().then(
        ({ exposed }) => exposed,
        (error: Error) => `No agent can be started: ${error.message}`,
      ),
    look: async (run) => lookAt(at(run)),
    follow: (run, from, signal) => follow(at(run), from, signal),
    printed: (run, from) => printed(at(run), from),
    send: (run, input) => send(at(run), input),
    stop: (run, why, graceMs) => stop(at(run), why, graceMs),
    forget: (run) => forget(at(run)),
  }
}

async function probe({ folder, sockets, hidden, privateFolder, env }: RunnerOptions): Promise<Isolation> {
  privateFolder(folder)
  privateFolder(sockets)
  return probeIsolation(env.PATH, hidden && { ...hidden, sockets, folder })
}

async function keepFile(folder: string, name: string, make: () => string): Promise<string> {
  const path = join(folder, checkKept(name))
  const kept = await readFile(path, 'utf8').catch(() => undefined)
  if (kept !== undefined) return kept
  claim(path, make())
  return readFile(path, 'utf8')
}

async function start(place: Place, spec: RunSpec, options: RunnerOptions, { isolation, around }: Isolation): Promise<Started> {
  const { argv, cwd, stdin, wallClockMs, outputBytes, graceMs } = spec
  if (!readRecord(place.folder)) {
    const socket = socketIn(options)
    const env = agentEnvironment(place.run, options.env, spec)
    const kept = { isolation, around: around({ folder: place.folder, cwd, needs: needsOf(spec, env) }) }
    const secret = randomBytes(32).toString('hex')
    const whole = { run: place.run, socket, secret, argv, cwd, env, stdin, wallClockMs, outputBytes, graceMs, ...kept }
    await launchRunner(place.folder, options.entry, whole, runnerEnvironment(options.env))
  }
  return startedOf(recordOf(place))
}

/** Where one of these lies in the folder that is hidden, it stays open: an agent without its repository or its own settings is of no use. */
function needsOf({ repo }: RunSpec, { HOME }: Record<string, string>): string[] {
  return [repo, HOME, process.execPath].filter((path) => path !== undefined)
}

/** A new name for each: of two runners that are started for one run, the second must not take the first one's away. */
function socketIn({ sockets, privateFolder }: RunnerOptions): string {
  privateFolder(sockets)
  const path = join(sockets, `${randomBytes(8).toString('hex')}.sock`)
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new Error(`The socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes. Set XDG_RUNTIME_DIR to a shorter folder.`)
  return path
}

async function* follow(place: Place, from: number, signal: AbortSignal): AsyncGenerator<Batch> {
  let spool: FileHandle | undefined
  let offset = from
  try {
    for await (const exit of endOrMore(place, signal)) {
      spool ??= await open(join(place.folder, SPOOL)).catch(() => undefined)
      for (let batch = await read(spool, offset); batch.frames.length > 0; batch = await read(spool, offset)) {
        offset = batch.offset
        yield batch
        if (signal.aborted) return
      }
      if (exit) yield { frames: [], offset, exit }
    }
  } finally {
    await spool?.close()
  }
}

async function printed({ folder }: Place, from: number): Promise<Batch> {
  const spool = await open(join(folder, SPOOL)).catch(() => undefined)
  try {
    return await read(spool, from)
  } finally {
    await spool?.close()
  }
}

async function read(spool: FileHandle | undefined, offset: number): Promise<Batch> {
  if (!spool) return { frames: [], offset }
  // No more than there is: who keeps a frame keeps the whole buffer.
  const wanted = Math.min((await spool.stat()).size - offset, BATCH_BYTES)
  if (wanted <= 0) return { frames: [], offset }
  const { buffer, bytesRead } = await spool.read(Buffer.allocUnsafe(wanted), 0, wanted, offset)
  const { frames, length } = parseFrames(buffer.subarray(0, bytesRead))
  if (length === 0 && bytesRead === BATCH_BYTES) throw new Error(`No frame of the spool begins at ${offset}.`)
  return { frames, offset: offset + length }
}

/** Yields each time there may be more to read, at last with the exit: all that was printed is in the spool by then. */
async function* endOrMore(place: Place, signal: AbortSignal): AsyncGenerator<Exit | undefined> {
  const record = recordOf(place)
  const news = await openNews(place.folder, place.run, record, signal)
  try {
    while (!signal.aborted) {
      const piece = await news.next()
      if (signal.aborted) return
      const exit = piece === 'look' ? await exitOf(place, record) : undefined
      yield exit
      if (exit) return
    }
  } finally {
    news.close()
  }
}

async function send(place: Place, input: Input): Promise<boolean> {
  if (Buffer.byteLength(input.data ?? '') > MOST_INPUT_BYTES) throw new Error(`An input has at most ${MOST_INPUT_BYTES} bytes.`)
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const { state } = await lookAt(place)
    if (state !== 'running') return false
    const line = await callRunner(recordOf(place), place.run, () => {})
    const taken = await line?.send(input).finally(() => line.close())
    if (taken !== undefined) return taken
  }
  throw new Error(`The runner of ${place.run} does not answer on ${recordOf(place).socket}.`)
}

async function stop(place: Place, why: StopReason, graceMs: number): Promise<Exit> {
  const found = await lookAt(place)
  if (found.state === 'ended') return found.exit
  if (found.state === 'absent') return neverStarted(why)
  if (found.state === 'prepared') await settleUnstarted(place, why)
  const record = recordOf(place)
  try {
    replace(join(place.folder, STOP), JSON.stringify({ why, graceMs } satisfies Stop))
  } catch {
    // A full disk keeps no run alive: it ends as `stopped`, with the grace that it was started with.
  }
  await signalProcess(record, 'SIGTERM')
  return untilItsEnd(place, record, AbortSignal.timeout(graceMs + RUNNER_LATE_MS))
}

async function untilItsEnd(place: Place, record: RunnerRecord, late: AbortSignal): Promise<Exit> {
  for await (const exit of endOrMore(place, late)) if (exit) return exit
  await signalProcess(record, 'SIGKILL')
  return untilItsEnd(place, record, new AbortController().signal)
}

async function forget(place: Place): Promise<void> {
  let { state } = await lookAt(place)
  // One that was about to be started must not come up in a folder that is being taken away.
  if (state === 'prepared' && !(await settleUnstarted(place, 'stopped'))) ({ state } = await lookAt(place))
  if (state === 'running') throw new Error(`${place.run} is still running. Stop it first.`)
  await rm(place.folder, { recursive: true, force: true })
}

function recordOf({ run, folder }: Place): RunnerRecord {
  const record = readRecord(folder)
  if (!record) throw new Error(`${run} has not been started.`)
  return record
}
