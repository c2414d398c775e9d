import type { z } from 'zod'
import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'
import type { PullRequest } from './schema.ts'

type Source = (ctx: Reading, task: string, address: string) => Promise<z.output<typeof PullRequest> | undefined>

/** A pull request knows its work, not the other way round. */
export const workPullRequest = definePoint.one<Source>('work.pull_request', async () => undefined)
