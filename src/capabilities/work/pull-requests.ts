import type { z } from 'zod'
import { definePoint } from '../../kernel/point.ts'
import type { Reading } from '../../kernel/tool.ts'
import type { PullRequest } from './schema.ts'

type Source = (ctx: Reading, tasks: string[], address: string) => Promise<Map<string, z.output<typeof PullRequest>>>

/** By task. A pull request knows its work, not the other way round. */
export const workPullRequests = definePoint.one<Source>('work.pull_requests', async () => new Map())
