import { join } from 'node:path'
import { claim, readJson } from './files.ts'
import { RECORD, type Spec } from './spec.ts'
import { bootId, isThere, processAt } from './system.ts'

/** Who runs a run. The process and the boot may be long gone: see `livesStill`. */
export interface RunnerRecord {
  pid: number
  started: string
  boot: string
  socket: string
  /** Absent where a version that knew none started it. */
  secret?: string
}

export function readRecord(folder: string): RunnerRecord | undefined {
  return readJson<RunnerRecord>(join(folder, RECORD))
}

/** False when the run has its runner already: two starts of one run are one. */
export async function claimRun(folder: string, { socket, secret }: Pick<Spec, 'socket' | 'secret'>): Promise<boolean> {
  const self = await processAt(process.pid)
  if (!self) throw new Error('the system does not say when this process was started')
  const record: RunnerRecord = { pid: self.pid, started: self.started, boot: await bootId(), socket, secret }
  return claim(join(folder, RECORD), JSON.stringify(record))
}

/** Nobody can start it after this. False when somebody has. */
export async function claimForNobody(folder: string): Promise<boolean> {
  const record: RunnerRecord = { pid: 0, started: '0', boot: await bootId(), socket: '' }
  return claim(join(folder, RECORD), JSON.stringify(record))
}

export async function isOfThisBoot(record: RunnerRecord): Promise<boolean> {
  return record.boot === (await bootId())
}

export async function livesStill(record: RunnerRecord): Promise<boolean> {
  return (await isOfThisBoot(record)) && (await isThere(record))
}
