import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { mailAcked, mailRead, mailSent } from './schema.ts'
import { mailStore } from './store.ts'
import { ack, inbox, read, reply, send, thread } from './tools.ts'

const Letters = z.int().min(1).max(1_000_000)

export const mail = defineCapability({
  name: 'mail',
  tools: [inbox, read, ack, send, reply, thread],
  migrations,
  events: [mailSent, mailRead, mailAcked],
  settings: {
    'mail.per_minute': setting(Letters, 60, 'Letters a minute that one token may send in the long run'),
    'mail.burst': setting(Letters, 30, 'Letters that one token may send at once after a pause'),
  },
  things: [
    {
      kind: 'mail',
      async find(tx, ref) {
        const row = await mailStore(tx).find(ref)
        return row && { id: row.id, within: {} }
      },
    },
    {
      kind: 'thread',
      async find(tx, ref) {
        return (await mailStore(tx).thread(ref)) && { id: ref, within: {} }
      },
    },
  ],
  resources: [{ uri: 'signalbox://inbox', name: 'inbox', description: 'Your unread letters', tool: 'mail_inbox' }],
})

export { HUMAN, mailSent, SYSTEM_SENDER } from './schema.ts'
export { type Letter, sendLetter } from './send.ts'
export type { LetterRow } from './store.ts'
