import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { decodeCursor } from '../../src/db/engine.ts'
import type { TestDaemon } from '../../src/testing/daemon.ts'

interface Backup {
  /** How many events were acknowledged when it was begun, and how many it has. */
  due: number
  events: number
  hash: string
}

/** Copies that are taken while everybody writes. Each must be sound, and a beginning of the log as it is in the end. */
export class Backups {
  readonly taken: Backup[] = []
  readonly problems: string[] = []

  async take(daemon: TestDaemon): Promise<void> {
    const file = join(daemon.home, `copy-${this.taken.length}.db`)
    const due = decodeCursor((await daemon.call('task_list', { limit: 1 })).cursor)?.seq ?? 0
    for (const verb of ['backup', 'check']) {
      const { code, stdout, stderr } = await daemon.cli(['db', verb, file])
      if (code !== 0) return void this.problems.push(`db ${verb} ended with ${code}: ${stdout}${stderr}`)
    }
    const [whole] = fingerprints(file, [Number.POSITIVE_INFINITY])
    this.taken.push({ due, ...(whole as Fingerprint) })
    rmSync(file)
  }

  compare(file: string): void {
    const prefixes = fingerprints(
      file,
      this.taken.map((backup) => backup.events),
    )
    this.taken.forEach(({ due, events, hash }, i) => {
      if (events < due) this.problems.push(`a backup has ${events} events; ${due} were acknowledged before it was begun`)
      if (prefixes[i]?.hash !== hash) this.problems.push(`a backup of ${events} events is not the beginning of the log`)
    })
  }
}

interface Fingerprint {
  events: number
  hash: string
}

/** What the log's first n events are, for each n; the numbers must rise. */
function fingerprints(file: string, counts: number[]): Fingerprint[] {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const hash = createHash('sha256')
    const found: Fingerprint[] = []
    let events = 0
    const note = () => found.push({ events, hash: hash.copy().digest('hex') })
    for (const row of db.prepare('SELECT seq, at, type, subject, actor, call_id, data FROM events ORDER BY seq').iterate()) {
      while (counts[found.length] === events) note()
      hash.update(JSON.stringify(row))
      events++
    }
    while (found.length < counts.length) note()
    return found
  } finally {
    db.close()
  }
}
