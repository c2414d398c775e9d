import { z } from 'zod'
import { defineEffect } from '../../kernel/effect.ts'

/** A daemon that is killed in the middle of it does not count. */
const MANY = 100

/** A program that waits for ever does no work, and holds a place that others could have. */
export const expireApproval = defineEffect({
  type: 'approval.expire',
  payload: z.strictObject({ approval_id: z.string() }),
  attempts: MANY,
  recognise: async () => 'not_done',
  async do(ctx, { approval_id }) {
    await ctx.report('approval_expire', { approval_id })
  },
})
