import type { LongAnswer, LongJob } from './beside.ts'
import { backupFile, checkFile } from './maintenance.ts'

const { task, path, target } = JSON.parse(process.argv[2] as string) as LongJob
const answer = (message: LongAnswer) => process.send?.(message)
try {
  answer({ value: task === 'check' ? checkFile(path) : backupFile(path, target as string) })
} catch (error) {
  answer({ error: (error as Error).message })
}
