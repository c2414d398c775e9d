import { z } from 'zod'
import { defineEffect } from '../../kernel/effect.ts'
import { definePoint } from '../../kernel/point.ts'
import { redactText } from '../../kernel/redact.ts'
import { iso } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { presenceOf, tellAgent } from '../job/index.ts'
import { nameOf } from './names.ts'
import { type LetterRow, mailStore } from './store.ts'
import '../../ports/harness.ts'
import '../../ports/notifier.ts'

/** Somebody who does not read is not told for ever: each time costs tokens. */
const MOST_NOTICES = 3
/** A notice that should have been given so long ago will not be: its effect was dropped. */
const OVERDUE_MS = 600_000
const MANY = 100
const MOST_ATTEMPTS = 8
const SHOWN = 2_000

/** Makes an idle agent of ours run, to read its letters: when, or undefined when it will not. */
export type Wake = (ctx: RunContext, agent: string, unread: number) => Promise<'soon' | undefined>

/** An agent that nobody wakes reads its letters in its next run. */
export const wake = definePoint.first<Wake>('mail.wake', async () => undefined)

/** One notice for all letters that come before it is given. Bodies stay where they are. */
export async function tellSoon(ctx: RunContext, agent: string): Promise<void> {
  const found = await presenceOf(ctx.tx, agent)
  // In a window of its own it waits for the event.
  if (!found) return
  const store = mailStore(ctx.tx)
  const { due_at, given_at } = await store.holdNotice(agent)
  if (due_at !== null && due_at + OVERDUE_MS > ctx.now) return
  const due = Math.max(ctx.now, given_at + ctx.setting<number>('mail.notice_seconds') * 1_000)
  await store.putNotice({ agent_id: agent, due_at: due, given_at })
  ctx.enqueue(giveNotice({ agent_id: agent }, { delayMs: due - ctx.now }))
}

/** A run that begins, or has ended with letters unread: those that were left, and those that came too late for it. */
export async function presenceChanged(ctx: RunContext, agent: string): Promise<void> {
  if (await mailStore(ctx.tx).unread([agent])) await tellSoon(ctx, agent)
}

/** Told twice it says the same once: what was told of is marked with the run. */
export const giveNotice = defineEffect({
  type: 'mail.notice',
  payload: z.strictObject({ agent_id: z.string() }),
  attempts: MANY,
  async do(ctx, { agent_id }) {
    const found = await presenceOf(ctx.view, agent_id)
    const hears = found?.presence === 'running' && ctx.ports.harnesses.get(found.run.harness)?.can.message === true
    await ctx.report(notice, { agent_id, hears })
  },
})

export const notice = defineTool({
  name: 'mail_notice',
  title: 'Tell an agent of its letters',
  description: 'One line to one that runs; one that is idle is woken, where somebody can.',
  input: z.strictObject({ agent_id: z.string(), hears: z.boolean() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { agent_id, hears }) {
    const store = mailStore(ctx.tx)
    const { given_at } = await store.holdNotice(agent_id)
    const found = await presenceOf(ctx.tx, agent_id)
    // One that is coming is told when it is there.
    const isReached = (found?.presence === 'running' && hears) || found?.presence === 'idle'
    const when = found && (found.presence === 'idle' ? `after ${found.run.id}` : found.run.id)
    const isNews = isReached && when !== undefined && (await store.hasNews(agent_id, when, MOST_NOTICES))
    const tells = isNews && found?.presence === 'running'
    const wakes = isNews && !tells && (await ctx.ask(wake, agent_id, await store.unread([agent_id]))) !== undefined
    if (tells) await tellAgent(ctx, found.run, await inOneLine(ctx, agent_id))
    if (tells || wakes) await store.markNoticed(agent_id, when as string, MOST_NOTICES)
    await store.putNotice({ agent_id, due_at: null, given_at: tells ? ctx.now : given_at })
    return {}
  },
})

/** Nothing in it was written by others: names are handles. */
async function inOneLine(ctx: RunContext, agent: string): Promise<string> {
  const store = mailStore(ctx.tx)
  const unread = await store.unread([agent])
  const newest = await store.inbox([agent], 'unread', undefined, 20)
  const from = [...new Set(newest.map((letter) => letter.from_id))].slice(0, 3)
  const names = await Promise.all(from.map((id) => nameOf(ctx.tx, id)))
  const urgent = newest.some((letter) => letter.importance === 'urgent') ? ', some of it urgent' : ''
  const what = unread === 1 ? 'an unread letter' : `${unread} unread letters`
  return `Signalbox: you have ${what}, from ${names.join(', ')}${urgent}. mail_inbox lists what is unread; mail_read, mail_ack and mail_reply take it from there.`
}

const Told = z.strictObject({ mail_id: z.string() })

/** Told twice is told twice: whoever must not hear it again goes by the id. */
export const runCommand = defineEffect({
  type: 'mail.command',
  payload: Told.extend({ argv: z.array(z.string()) }),
  attempts: MOST_ATTEMPTS,
  async do(ctx, { mail_id, argv }) {
    const facts = await factsOf(ctx, mail_id)
    if (facts) await ctx.ports.notifier.run(argv, `${JSON.stringify(facts)}\n`, ctx.signal)
  },
})

export const postWebhook = defineEffect({
  type: 'mail.webhook',
  // The address is a secret, and stays out of what can be listed; one that was enqueued by an older version has it.
  payload: Told.extend({ url: z.string().optional() }),
  attempts: MOST_ATTEMPTS,
  async do(ctx, { mail_id }) {
    const url = await ctx.setting<string>('mail.notify_webhook')
    const facts = url && (await factsOf(ctx, mail_id))
    if (facts) await ctx.ports.notifier.post(url, facts, mail_id, ctx.signal)
  },
})

export function tellPeople(ctx: RunContext, { id: mail_id }: LetterRow): void {
  const argv = ctx.setting<string[]>('mail.notify_command')
  const url = ctx.setting<string>('mail.notify_webhook')
  if (argv.length) ctx.enqueue(runCommand({ mail_id, argv }))
  if (url) ctx.enqueue(postWebhook({ mail_id }))
}

/** Undefined when somebody has read it by now. */
async function factsOf({ view }: Pick<Parameters<typeof runCommand.do>[0], 'view'>, id: string) {
  const letter = await mailStore(view).find(id)
  if (!letter || letter.read_at !== null) return undefined
  const { thread_id, importance, from_id, to_id, project_id, epic_id, task_id } = letter
  const [from, to] = [await nameOf(view, from_id), await nameOf(view, to_id)]
  const [subject, body] = [redactText(letter.subject), redactText(letter.body).slice(0, SHOWN).toWellFormed()]
  return { mail_id: id, thread_id, from, to, subject, body, importance, sent_at: iso(letter.created_at), project_id, epic_id, task_id }
}
