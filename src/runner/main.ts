import { closeSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Agent, type HowItEnded, startAgent } from './agent.ts'
import { createDesk, type Desk } from './desk.ts'
import { type Asked, at, createHalt, type Halt, haltOnSignals } from './ending.ts'
import { reserve } from './files.ts'
import { createKeeper, type Keeper } from './keeper.ts'
import { createPipes, type Pipes } from './pipes.ts'
import { claimRun } from './record.ts'
import { listen } from './socket.ts'
import { type Ending, EXIT, READY_FD, SPEC_FD, SPOOL, type Spec } from './spec.ts'
import { createSpool, type Spool } from './spool.ts'
import { endTree } from './tree.ts'

/** Somebody who left the tree without the marker may hold the agent's output open for ever. */
const DRAIN_MS = 5_000
/** It must fit into what is set aside for a full disk. */
const MOST_DETAIL = 1_000
const UNKNOWN: HowItEnded = { code: null, signal: null }

await main(process.argv[2] as string)

async function main(folder: string): Promise<void> {
  const spec = readSpec()
  const halt = createHalt()
  haltOnSignals(halt, folder, spec.graceMs)

  const desk = createDesk()
  let spool: Spool | undefined
  // Before the record, so that whoever finds the record can connect.
  const line = await listen(spec.socket, { run: spec.run, secret: spec.secret, size: () => spool?.size ?? 0 }, desk.take)
  if (await claimRun(folder, spec)) {
    const exit = reserve(join(folder, EXIT))
    spool = createSpool(join(folder, SPOOL))
    sayReady()
    const ending = await live(folder, spec, createKeeper(spec, spool, line, halt), halt, desk)
    desk.close()
    spool.close()
    exit.write(JSON.stringify(ending))
  } else sayReady()
  line.close()
  // What an agent left open here and there holds nobody up.
  process.exit()
}

/** Node quotes what it cannot parse, and that holds the agent's environment. */
function readSpec(): Spec {
  const text = readFileSync(SPEC_FD, 'utf8')
  closeSync(SPEC_FD)
  try {
    return JSON.parse(text) as Spec
  } catch {
    throw new Error(`the daemon was cut off after ${text.length} characters of what to run`)
  }
}

/** The daemon may be gone by now, which is of no matter. */
function sayReady(): void {
  try {
    writeSync(READY_FD, '\n')
  } catch {}
  closeSync(READY_FD)
}

async function live(folder: string, spec: Spec, keeper: Keeper, halt: Halt, desk: Desk): Promise<Ending> {
  const started = await begin(folder, spec, keeper).catch((error: Error) => error)
  if (started instanceof Error) return { reason: 'spawn_failed', ...UNKNOWN, detail: started.message.slice(0, MOST_DETAIL), at: Date.now() }
  desk.open(started.agent, started.pipes.in, spec, keeper)
  return toItsEnd(started.agent, started.pipes.drained, spec, halt)
}

async function begin(folder: string, spec: Spec, keeper: Keeper): Promise<{ agent: Agent; pipes: Pipes }> {
  const pipes = createPipes(folder, spec.stdin !== 'closed', keeper.printed)
  return { agent: await startAgent(spec, pipes), pipes }
}

async function toItsEnd(agent: Agent, drained: Promise<unknown>, spec: Spec, halt: Halt): Promise<Ending> {
  if (spec.wallClockMs !== null) {
    const detail = `It ran for the ${spec.wallClockMs / 1000} s that it may.`
    at(performance.now() + spec.wallClockMs, () => halt.ask({ reason: 'wall_clock', detail }, spec.graceMs))
  }
  await Promise.race([agent.ended, halt.asked])
  const asked = halt.why()
  if (asked && spec.isolation === 'namespace') await endNamespace(agent, halt)
  // What it leaves behind gets the same time as it would have had itself.
  const latest = performance.now() + spec.graceMs
  const stuck = await endTree({ run: spec.run, root: agent.root }, () => Math.min(halt.killAt(), latest))
  const how = stuck.length > 0 ? UNKNOWN : await agent.ended
  await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, DRAIN_MS))])
  const why = asked ?? aboutItsOutput(halt.why())
  const left = stuck.length > 0 ? ` These could not be ended: ${stuck.map((one) => one.pid).join(', ')}.` : ''
  return { reason: why?.reason ?? 'exited', ...how, detail: `${why?.detail ?? ''}${left}`.trim().slice(0, MOST_DETAIL), at: Date.now() }
}

/** A stop that comes when the agent has ended by itself did not end it; that its last words are cut short must be known all the same. */
function aboutItsOutput(late: Asked | undefined): Asked | undefined {
  return late?.reason === 'output_limit' || late?.reason === 'spool_failed' ? late : undefined
}

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
