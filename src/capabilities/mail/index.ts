import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { IMPORTANCES, letters } from '../agent/index.ts'
import { needs } from '../need/index.ts'
import { presenceChanges } from '../run/index.ts'
import { migrations } from './migrations.ts'
import { unreadLetters } from './needs.ts'
import { giveNotice, notice, postWebhook, presenceChanged, runCommand } from './notice.ts'
import { mailAcked, mailRead, mailSent } from './schema.ts'
import { storeLetter } from './send.ts'
import { mailStore } from './store.ts'
import { ack, inbox, read, reply, send, thread } from './tools.ts'

/** Elsewhere a letter would travel in the open. */
function isWebhook(url: string): boolean {
  if (url === '') return true
  if (!URL.canParse(url)) return false
  const { protocol, hostname, username, password } = new URL(url)
  const isHere = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
  return !username && !password && (protocol === 'https:' || (protocol === 'http:' && isHere))
}

const Letters = z.int().min(1).max(1_000_000)

export const mail = defineCapability({
  name: 'mail',
  tools: [inbox, read, ack, send, reply, thread, notice],
  migrations,
  values: { letters: { importance: IMPORTANCES } },
  events: [mailSent, mailRead, mailAcked],
  effects: [giveNotice, runCommand, postWebhook],
  answers: [
    answer(presenceChanges, presenceChanged),
    answer(needs, unreadLetters),
    answer(letters, async (ctx, letter) => void (await storeLetter(ctx, letter))),
  ],
  settings: {
    'mail.per_minute': setting(Letters, 60, 'Letters a minute that one token may send in the long run'),
    'mail.burst': setting(Letters, 30, 'Letters that one token may send at once after a pause'),
    'mail.notice_seconds': setting(
      z.number().min(0).max(3_600),
      15,
      'How long after a notice a working agent is told of further letters; until then they are collected',
    ),
    'mail.notify_command': setting(
      z.array(z.string().min(1).max(200)).max(50),
      [],
      'Program and arguments that are run for each letter to a person, with the letter as JSON on standard input; no shell reads them',
    ),
    'mail.notify_webhook': setting(
      z
        .string()
        .max(2_000)
        .refine(isWebhook, 'an https URL, or an http URL of this machine, without a name and password in it; or nothing'),
      '',
      'Where each letter to a person is posted as JSON',
      // For most services whoever knows the address may post there.
      { secret: true },
    ),
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

export { type Wake, wake } from './notice.ts'
export { mailSent } from './schema.ts'
export { type LetterRow, mailStore } from './store.ts'
