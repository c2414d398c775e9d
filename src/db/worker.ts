import { parentPort, workerData } from 'node:worker_threads'
import { backupFile, checkFile } from './maintenance.ts'

const job = workerData as { task: 'check' | 'backup'; path: string; target: string }
try {
  parentPort?.postMessage({ value: job.task === 'check' ? checkFile(job.path) : backupFile(job.path, job.target) })
} catch (error) {
  parentPort?.postMessage({ error: (error as Error).message })
}
