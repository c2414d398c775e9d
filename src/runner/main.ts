import { closeSync, readFileSync, writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type Agent, type HowItEnded, startAgent } from './agent.ts'
import { at, createHalt, type Halt, haltOnSignals } from './ending.ts'
import { reserve } from './files.ts'
import { createPipes, type Pipes } from './pipes.ts'
import { claimRun } from './record.ts'
import { type Input, type Line, listen } from './socket.ts'
import { type Ending, EXIT, READY_FD, SPEC_FD, SPOOL, type Spec } from './spec.ts'
import { createSpool, type Spool, type Stream } from './spool.ts'
import { endTree } from './tree.ts'

/** Somebody who left the tree without the marker may hold the agent's output open for ever. */
const DRAIN_MS = 5_000
/** More than this and the agent does not read what it is sent. */
const MOST_UNREAD_BYTES = 64 * 1024 * 1024

interface Run {
  spec: Spec
  halt: Halt
  spool: Spool
  line: Line
}

await main(process.argv[2] as string)

async function main(folder: string): Promise<void> {
  const spec = JSON.parse(readFileSync(SPEC_FD, 'utf8')) as Spec
  closeSync(SPEC_FD)
  const halt = createHalt()
  haltOnSignals(halt, folder, spec.graceMs)

  const desk = inputDesk()
  let spool: Spool | undefined
  // Before the record, so that whoever finds the record can connect.
  const line = await listen(spec.socket, { run: spec.run, size: () => spool?.size ?? 0 }, desk.take)
  if (await claimRun(folder, spec.socket)) {
    const exit = reserve(join(folder, EXIT))
    spool = createSpool(join(folder, SPOOL))
    sayReady()
    const ending = await live(folder, { spec, halt, spool, line }, desk)
    desk.close()
    spool.close()
    exit.write(JSON.stringify(ending))
  } else sayReady()
  line.close()
  // What an agent left open here and there holds nobody up.
  process.exit()
}

/** The daemon may be gone by now, which is of no matter. */
function sayReady(): void {
  try {
    writeSync(READY_FD, '\n')
  } catch {}
  closeSync(READY_FD)
}

async function live(folder: string, run: Run, desk: Desk): Promise<Ending> {
  const started = await begin(folder, run).catch((error: Error) => error)
  if (started instanceof Error) return { reason: 'spawn_failed', code: null, signal: null, detail: started.message, at: Date.now() }
  const { agent, pipes, drained } = started
  desk.open(agent, pipes.in, run)
  return toItsEnd(agent, drained, run)
}

async function begin(folder: string, run: Run): Promise<{ agent: Agent; pipes: Pipes; drained: Promise<unknown> }> {
  const pipes = createPipes(folder, run.spec.stdin !== 'closed')
  const drained = keepOutput(pipes, run)
  return { agent: await startAgent(run.spec, pipes), pipes, drained }
}

async function toItsEnd(agent: Agent, drained: Promise<unknown>, { spec, halt }: Run): Promise<Ending> {
  if (spec.wallClockMs !== null) {
    const detail = `It ran for the ${spec.wallClockMs / 1000} s that it may.`
    at(performance.now() + spec.wallClockMs, () => halt.ask({ reason: 'wall_clock', detail }, spec.graceMs))
  }
  await Promise.race([agent.ended, halt.asked])
  if (halt.why() && spec.isolation === 'namespace') await endNamespace(agent, halt)
  // What it leaves behind gets the same time as it would have had itself.
  const latest = performance.now() + spec.graceMs
  const stuck = await endTree({ run: spec.run, root: agent.root }, () => Math.min(halt.killAt(), latest))
  const how = stuck.length > 0 ? UNKNOWN : await agent.ended
  await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref())])
  const why = halt.why()
  const left = stuck.length > 0 ? ` These could not be ended: ${stuck.map((one) => one.pid).join(', ')}.` : ''
  return { reason: why?.reason ?? 'exited', ...how, detail: `${why?.detail ?? ''}${left}`.trim(), at: Date.now() }
}

const UNKNOWN: HowItEnded = { code: null, signal: null }

async function endNamespace(agent: Agent, halt: Halt): Promise<void> {
  if (await agent.signal('SIGTERM')) {
    const overdue = new Promise<void>((resolve) => {
      const wait = () => at(halt.killAt(), resolve)
      halt.onHaste(wait)
      wait()
    })
    await Promise.race([agent.ended, overdue])
  }
  await agent.killNamespace()
  await agent.ended
}

/** Written before more is read: an agent that prints faster than the disk takes it is slowed by its own pipe. */
function keepOutput(pipes: Pipes, { spec, halt, spool, line }: Run): Promise<unknown> {
  let left = spec.outputBytes
  function keep(stream: Stream, chunk: Buffer): void {
    if (left < 0) return
    const kept = chunk.subarray(0, left)
    left = chunk.length > left ? -1 : left - chunk.length
    try {
      spool.append(stream, kept)
    } catch (error) {
      left = -1
      halt.ask({ reason: 'spool_failed', detail: `What it printed could not be kept: ${(error as Error).message}` }, spec.graceMs)
      return
    }
    line.grew()
    if (left < 0) halt.ask({ reason: 'output_limit', detail: `It printed more than ${spec.outputBytes} bytes.` }, spec.graceMs)
  }
  const streams = [
    { name: 'out', socket: pipes.out },
    { name: 'err', socket: pipes.err },
  ] as const
  return Promise.all(
    streams.map(({ name, socket }) => {
      socket.on('data', (chunk: Buffer) => keep(name, chunk))
      socket.on('error', () => socket.destroy())
      return new Promise((resolve) => socket.once('close', resolve))
    }),
  )
}

/** Takes what is sent to the agent, in order, each once. */
interface Desk {
  take(input: Input): Promise<boolean>
  open(agent: Agent, stdin: Socket | undefined, run: Run): void
  close(): void
}

function inputDesk(): Desk {
  const seen = new Map<number, Promise<boolean>>()
  let hand: ((input: Input) => Promise<boolean>) | undefined
  let opened!: () => void
  const ready = new Promise<void>((resolve) => {
    opened = resolve
  })
  return {
    async take(input) {
      await ready
      const before = seen.get(input.seq)
      if (before) return before
      const taken = hand?.(input) ?? Promise.resolve(false)
      seen.set(input.seq, taken)
      return taken
    },
    open(agent, stdin, { spec, spool, line }) {
      let writable = stdin !== undefined
      stdin?.on('error', () => {
        writable = false
      })
      const write = (data: string, seq?: number) => {
        spool.append('in', Buffer.from(data), seq)
        line.grew()
        stdin?.write(data)
      }
      const end = () => {
        writable = false
        stdin?.end()
      }
      if (typeof spec.stdin === 'object') {
        write(spec.stdin.text)
        end()
      }
      hand = async ({ seq, data, close, signal }) => {
        const wantsPipe = data !== undefined || close
        if (wantsPipe && (!writable || (stdin?.writableLength ?? 0) > MOST_UNREAD_BYTES)) return false
        if (data !== undefined) write(data, seq)
        if (close) end()
        return signal ? agent.signal(signal) : true
      }
      opened()
    },
    close() {
      hand = undefined
      opened()
    },
  }
}
