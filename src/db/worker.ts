import type { LongAnswer, LongJob } from './beside.ts'
import type { CheckResult } from './engine.ts'
import { backupFile, checkFile, strangeValuesIn } from './maintenance.ts'

const { task, path, target, values } = JSON.parse(process.argv[2] as string) as LongJob
const answer = (message: LongAnswer) => process.send?.(message)
try {
  answer({ value: task === 'check' ? check() : backupFile(path, target as string) })
} catch (error) {
  answer({ error: (error as Error).message })
}

function check(): CheckResult {
  const sound = checkFile(path)
  const problems = sound.ok ? strangeValuesIn(path, values ?? {}) : sound.problems
  return { ok: problems.length === 0, problems }
}
