import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from '../e2e/support.ts'
import { said, startWith } from './agents.ts'
import type { Visitor } from './support.ts'

/** What the tour needs to know of the data. */
export interface Sights {
  /** An open task with notes and history. */
  task: string
  /** Of a project without tasks. */
  emptyProject: string
}

/** Tasks by how it stands with their agent. */
export interface AgentSights {
  none: string
  working: string
  parked: string
  handedIn: string
}

/** Tasks by what became of their merge. */
export interface MergeSights {
  toReview: string
  landed: string
  red: string
  waiting: string
}

const LINK_USED = '/#link=sbx_link_0000000000000000000000000000000000000000000'

/**
 * Every screen and everything that opens on one; yields the name of what is to be seen now. The screens are those that the
 * page itself offers, so a new one is on the tour by itself.
 */
export async function* tour(visitor: Visitor, { task, emptyProject }: Sights): AsyncGenerator<string> {
  const { page } = visitor
  const close = () => closed(visitor)
  await visitor.signIn()
  for (const path of await visitor.screens()) {
    await visitor.walk(path)
    yield path.slice(1)
  }
  await visitor.visit('/projects?new=true')
  await page.getByRole('dialog').waitFor()
  yield 'new-project'
  await close()
  await visitor.walk('/agents')
  await page.getByRole('button', { name: 'Invite an agent' }).click()
  await page.getByRole('dialog').waitFor()
  yield 'invite-agent'
  await close()
  await visitor.walk('/mail')
  // Whoever takes the tour a second time has read it.
  await page.getByRole('button', { name: 'Show what was read' }).click()
  await page.getByRole('list', { name: 'Letters' }).getByRole('link').filter({ hasNotText: 'Nothing lands on' }).first().click()
  await page.getByRole('button', { name: 'Acknowledge' }).waitFor()
  yield 'letters'
  await visitor.walk('/mail')
  await page.getByRole('button', { name: 'Write a letter' }).click()
  await page.getByRole('dialog').waitFor()
  yield 'write-letter'
  await close()
  await visitor.walk('/epics')
  await page.getByRole('button', { name: 'New epic' }).click()
  await page.getByRole('dialog').waitFor()
  yield 'new-epic'
  await close()
  await page.getByRole('table', { name: 'Epics' }).getByRole('link').first().click()
  await page
    .getByRole('button', { name: /^Approve and merge T-/ })
    .first()
    .waitFor()
  yield 'epic'
  await visitor.walk('/activity')
  await page.getByRole('tab', { name: 'Calls' }).click()
  await page.locator('details.call').first().waitFor()
  yield 'calls'
  await page.getByRole('tab', { name: 'Verify the audit' }).click()
  await page.getByRole('tabpanel').waitFor()
  yield 'verify'
  await visitor.walk('/effects')
  yield 'effects'

  await visitor.walk('/board')
  await page.locator('[data-task]').first().waitFor()
  await page.keyboard.press('c')
  await page.getByRole('dialog', { name: 'New task' }).waitFor()
  yield 'new-task'
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('A task needs a title.').waitFor()
  yield 'new-task-refused'
  await close()
  await page.locator('.task-card-menu').first().click()
  await page.getByRole('menu').waitFor()
  yield 'move-menu'
  await close()
  await page.keyboard.press('Control+k')
  await page.locator('.palette-item').nth(1).waitFor()
  yield 'palette'
  await close()
  await page.keyboard.press('Shift+Slash')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  yield 'keys-help'
  await close()
  await page.locator('.account').click()
  await page.getByRole('menu').waitFor()
  yield 'account-menu'
  await close()
  await visitor.visit('/board?q=nothing+is+called+this')
  await page.getByText('No task fits the filter.').waitFor()
  yield 'board-nothing-fits'
  await visitor.visit(`/board?project=${emptyProject}`)
  await page.getByText('No task yet.').waitFor()
  yield 'board-no-task'

  await visitor.walk(`/task/${task}`)
  yield 'task'
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog').waitFor()
  yield 'edit-task'
  await close()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('dialog').waitFor()
  yield 'close-task'
  await close()
  await page.getByRole('button', { name: 'Delete the task' }).click()
  await page.getByRole('alertdialog').waitFor()
  yield 'delete-task'
  await close()
  visitor.expects(/status of 4\d\d .*task_(context|move)/, /(ERR_FAILED|status of 400) .*api\/events/)
  await visitor.walk('/board')
  const backlog = visitor.column('Backlog').locator('.task-card-menu').first()
  await backlog.click()
  await page.getByRole('menuitem', { name: 'Review' }).click()
  await page.locator('.toast').first().waitFor()
  yield 'refused'
  await visitor.walk('/task/T-987654')
  await page.getByRole('alert').waitFor()
  yield 'no-such-task'
  await visitor.walk('/no/such/page')
  yield 'no-such-page'
  // A stream that opens, ends, and does not come back.
  let opened = false
  await page.route('**/api/events', (route) => {
    if (opened) return route.abort()
    opened = true
    return route.fulfill({ contentType: 'text/event-stream', body: 'id: 0\n\n' })
  })
  await page.goto(`${visitor.daemon.url}/board`)
  await page.getByText('The connection to Signalbox is lost.').waitFor()
  await page.locator('[data-task]').first().waitFor()
  yield 'lost'
  await page.unroute('**/api/events')
}

async function closed({ page }: Visitor): Promise<void> {
  await page.keyboard.press('Escape')
  await page.locator('.dialog, .menu').first().waitFor({ state: 'detached' })
}

/** What there is to see of agents at work. */
export async function* agentTour(visitor: Visitor, agents: AgentSights): AsyncGenerator<string> {
  const { page } = visitor
  const close = () => closed(visitor)
  await visitor.signIn(`/task/${agents.none}`)
  await page.getByRole('button', { name: 'Start agent' }).click()
  await page.getByRole('dialog').getByRole('radio').first().waitFor()
  await page.getByText('Limits of this run').click()
  yield 'start-agent'
  await close()
  await visitor.visit(`/task/${agents.working}?tab=Transcript`)
  await page.getByText('Shall I round up').waitFor()
  await page.getByRole('button', { name: /^run / }).click()
  yield 'task-running'
  await page.getByLabel('Search the transcript').fill('hours')
  await page.locator('.hit').first().waitFor()
  yield 'transcript-found'
  await page.locator('.agent').getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('alertdialog').waitFor()
  yield 'stop-agent'
  await close()
  await page.getByRole('tab', { name: 'Usage' }).click()
  await page.locator('.budget meter').first().waitFor()
  yield 'task-usage'
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('dialog').waitFor()
  yield 'budget'
  await close()
  await visitor.visit(`/task/${agents.working}?tab=Changes`)
  yield 'task-changes'
  await visitor.visit(`/task/${agents.parked}`)
  await page.getByText('Parked').waitFor()
  yield 'task-parked'
  await visitor.visit(`/task/${agents.handedIn}?tab=Reviews`)
  await page.locator('.rounds').waitFor()
  yield 'task-reviews'
}

/** What there is to see of merges. */
export async function* mergeTour(visitor: Visitor, merges: MergeSights): AsyncGenerator<string> {
  const { page } = visitor
  await visitor.signIn('/merges')
  await page.getByText('is 1 behind').waitFor()
  await page.locator('.merge', { hasText: 'conflict' }).locator('.merge-files', { hasText: 'label.txt' }).waitFor()
  await page.locator('.merge', { hasText: merges.red }).getByText('The end of what').click()
  yield 'merge-lines'
  for (const [name, task] of [
    ['landed', merges.landed],
    ['red', merges.red],
    ['waiting', merges.waiting],
  ] as const) {
    await visitor.visit(`/task/${task}?tab=Reviews`)
    await page.locator('.merge-of').waitFor()
    await page.locator('.pull-request').waitFor()
    yield `task-merge-${name}`
  }
  await visitor.visit(`/task/${merges.toReview}?tab=Changes`)
  const patch = page.getByRole('region', { name: 'Changes of src/slot.ts' })
  await patch.getByRole('button', { name: 'Comment on line 7' }).click()
  await patch.getByLabel('Your comment on line 7', { exact: true }).fill('The day on which the clocks change has 23 hours.')
  await page.locator('.decide').getByText('One comment, not sent yet').waitFor()
  await page.locator('h1').scrollIntoViewIfNeeded()
  yield 'task-decide'
  await patch.getByLabel('Your comment on line 7', { exact: true }).scrollIntoViewIfNeeded()
  yield 'task-line-comment'
}

/** What somebody sees before there is anything. */
export async function* firstVisit(visitor: Visitor): AsyncGenerator<string> {
  const { page, daemon } = visitor
  await page.goto(daemon.url)
  await page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
  await page.getByText('I was given a token').click()
  yield 'sign-in'
  visitor.expects(/status of 401/)
  await page.goto(`${daemon.url}${LINK_USED}`)
  await page.reload()
  await page.goto('about:blank')
  await page.goto(`${daemon.url}${LINK_USED}`)
  await page.getByRole('alert').waitFor()
  yield 'sign-in-refused'
  await visitor.signIn()
  for (const path of await visitor.screens()) {
    await visitor.walk(path)
    yield `first-${path.slice(1)}`
  }
}

const TASKS: [project: number, title: string, to: string, more?: object][] = [
  [
    0,
    'Log in with a passkey',
    'REVIEW',
    { priority: 'high', acceptance_criteria: ['A passkey signs in', 'A wrong one is refused', 'Works without a phone'] },
  ],
  [0, 'Reset a forgotten password by mail', 'IN_PROGRESS', { priority: 'high' }],
  [0, 'Keep the basket when somebody signs in', 'IN_PROGRESS'],
  [0, 'Show delivery times before the checkout', 'BACKLOG', { priority: 'high' }],
  [0, 'Search finds words with a typo, in titles and descriptions, and says what it looked for instead', 'BACKLOG'],
  [0, 'Pictures load when they come into view', 'BACKLOG', { priority: 'low' }],
  [0, 'Gift cards', 'BACKLOG', { task_type: 'PAIR' }],
  [0, 'Move the checkout to one page', 'REVIEW', { task_type: 'PAIR' }],
  [0, 'Prices with and without tax', 'DONE'],
  [0, 'Cookie banner', 'DONE', { priority: 'low' }],
  [0, 'Export orders as CSV', 'DONE'],
  [1, 'Refund part of an order', 'IN_PROGRESS', { priority: 'high' }],
  [1, 'Webhook signatures are checked', 'REVIEW', { priority: 'high' }],
  [1, 'Retry a failed payment three times', 'BACKLOG'],
  [1, 'Second payment provider', 'BACKLOG', { priority: 'low' }],
  [1, 'Amounts as integers of cents', 'DONE', { priority: 'high' }],
  [1, 'Ledger entries are never changed', 'DONE'],
  [2, 'Push notification when a parcel leaves', 'IN_PROGRESS'],
  [2, 'Dark mode', 'REVIEW', { priority: 'low' }],
  [2, 'Crash when the address book is empty', 'IN_PROGRESS', { priority: 'high', task_type: 'PAIR' }],
  [2, 'Smaller download', 'BACKLOG'],
  [2, 'Biometric sign-in', 'BACKLOG', { priority: 'high' }],
  [2, 'Offline basket', 'BACKLOG', { priority: 'low' }],
  [2, 'Tablet layout', 'DONE'],
]
const NOTES = [
  'The library wants a *user handle* of at most 64 bytes; ours is a UUID, so that fits.\n\n```ts\nconst handle = new TextEncoder().encode(user.id)\n```',
  'Tried on Firefox, Safari and Chrome. Two things are open:\n\n- the fallback for browsers without it\n- the wording of the error\n\nSee https://www.w3.org/TR/webauthn-3/ for the codes.',
  'Ready for review. `npm test` is green, 14 new tests.',
]

/** A shop with three projects in mid-work. */
const LETTERS = [
  { subject: 'Which port do the tests expect?', body: 'The documentation says **3000**, the tests 3001.', importance: 'high' },
  { subject: 'The refund is done', body: 'All checks pass; have a look when you can.', importance: 'low' },
  {
    subject: 'I cannot reach the package registry',
    body: 'Every install fails:\n\n```\nECONNREFUSED\n```',
    importance: 'urgent',
    needs_ack: true,
  },
]

export async function demo(daemon: TestDaemon): Promise<Sights> {
  const call = (tool: string, input: object, token?: string) => daemon.call(tool, input as Record<string, unknown>, token)
  const projects: string[] = []
  for (const [name, description] of [
    ['Web shop', 'What customers see.'],
    ['Payments', 'Cards, refunds and the ledger.'],
    ['Phone app', 'iOS and Android.'],
    ['Warehouse', 'Not started.'],
  ])
    projects.push((await call('project_create', { name, description })).handle)
  const agents: { agent_id: string; token: string; handle: string }[] = []
  for (const [name, role] of [
    ['Ada', 'worker'],
    ['Grace', 'worker'],
    ['Linus', 'worker'],
    ['Barbara', 'reviewer'],
    ['Edsger', 'planner'],
    ['Margaret', 'orchestrator'],
  ])
    agents.push((await call('agent_invite', { name, role })) as never)
  const made: { handle: string; to: string }[] = []
  for (const [project, title, to, more] of TASKS) {
    const { handle } = await call('task_create', {
      project_id: projects[project],
      title,
      description: `As a customer I want this: ${title.toLowerCase()}.\n\nIt must work on **every** screen.`,
      ...more,
    })
    made.push({ handle, to })
  }
  const named = (title: string) => made[TASKS.findIndex((row) => row[1].startsWith(title))]?.handle as string
  const task = named('Log in')
  await call('task_update', { task_id: named('Biometric'), blocked_by: [task, named('Crash')] })
  await call('task_update', { task_id: named('Second'), blocked_by: [named('Retry')] })
  await call('task_update', { task_id: named('Gift'), blocked_by: [named('Refund')] })
  const workers = agents.slice(0, 3)
  for (const [title, index] of [
    ['Reset', 0],
    ['Refund', 1],
    ['Push', 2],
  ] as const)
    await call('task_assign', { task_id: named(title), agent_id: workers[index]?.agent_id })
  for (const { handle, to } of made) {
    if (to === 'IN_PROGRESS' || to === 'REVIEW') await call('task_move', { task_id: handle, status: 'IN_PROGRESS' })
    if (to === 'REVIEW') await call('task_move', { task_id: handle, status: 'REVIEW' })
    if (to === 'DONE') await call('task_close', { task_id: handle, reason: 'Merged by hand' })
  }
  for (const [index, body] of NOTES.entries())
    await call('task_note', { task_id: task, body }, index === 1 ? daemon.token : agents.at(-1)?.token)
  for (const [index, letter] of LETTERS.entries()) await call('mail_send', { to_human: true, ...letter }, agents[index]?.token)
  const epic = { title: 'Sell in three countries', description: 'Prices, taxes and words for **each** of them.', start: false }
  const { epic_id } = await call('epic_create', { project_id: projects[0], ...epic })
  for (const [title, to] of PARTS) {
    const { task_id } = await call('task_create', { epic_id, title })
    if (to !== 'BACKLOG') await call('task_move', { task_id, status: 'IN_PROGRESS' })
    if (to === 'REVIEW') await call('review_request', { task_id, summary: 'Rounds as the tax office does; the table has **27** rates.' })
    if (to === 'DONE') await call('task_close', { task_id, reason: 'Merged by hand' })
  }
  await call('setting_update', { key: 'dashboard.sign_in_days', value: 14 })
  return { task, emptyProject: projects[3] as string }
}

const PARTS = [
  ['Prices in the currency of the country', 'DONE'],
  ['Taxes by the country of the customer', 'REVIEW'],
  ['Words of the checkout in three languages', 'IN_PROGRESS'],
  ['Addresses as each country writes them', 'BACKLOG'],
] as const

/** A project with real agents in it: one that waits for an answer, one without quota, one that is done. */
export async function demoAgents(daemon: TestDaemon): Promise<AgentSights> {
  const { project_id } = await daemon.call('project_create', { name: 'Delivery', description: 'From the door to the door.' })
  await daemon.call('repo_add', { path: repository(), project_id, checks: 'npm test' })
  const made = async (title: string) => (await daemon.call('task_create', { project_id, title })).handle as string
  const working = await made('Show delivery times before the checkout')
  const parked = await made('Pictures load when they come into view')
  const handedIn = await made('Search finds words with a typo')
  await daemon.call('budget_set', { task_id: working, cost_usd: 2, minutes: 90 })
  await startWith(daemon, working, ...SCRIPTS.working)
  await startWith(daemon, parked, ...SCRIPTS.parked)
  await startWith(daemon, handedIn, ...SCRIPTS.handedIn)
  await said(daemon, working, 'Shall I round up')
  await said(daemon, parked, 'limit')
  await said(daemon, handedIn, 'is green')
  return { none: await made('Sort the reviews by date'), working, parked, handedIn }
}

/** Two lines: one in which something landed, failed and conflicted, and one that is held. */
export async function demoMerges(daemon: TestDaemon): Promise<MergeSights> {
  const [parcels, scales] = [await mergeGround(daemon, 'Parcels'), await mergeGround(daemon, 'Scales')]
  const [landed, conflict, red, later, toReview, waiting] = await Promise.all([
    parcels.handIn('Print the label of a parcel', 'label.txt', 'label\n'),
    parcels.handIn('Print the label twice', 'label.txt', 'label label\n'),
    parcels.handIn('Round slots to the full hour', 'broken.txt', 'x\n'),
    parcels.handIn('Weigh before printing', 'weigh.txt', 'x\n'),
    parcels.handIn('Show the slot of a parcel', 'src/slot.ts', DELIVERY),
    scales.handIn('Refuse a parcel that is too heavy', 'heavy.txt', 'x\n'),
  ])
  const approve = (task_id: string) => daemon.call('review_decide', { task_id, decision: 'approve' })
  for (const task of [landed, conflict, red]) await approve(task)
  // Somebody works in the checkout: the branch does not follow.
  writeFileSync(join(parcels.repo, 'label.txt'), 'mine\n')
  await approve(later)

  writeFileSync(join(scales.repo, 'broken.txt'), 'x\n')
  git(scales.repo, 'add', '.')
  git(scales.repo, 'commit', '--quiet', '--message=broken')
  await daemon.call('merge_submit', { task_id: waiting })
  const held = async () => (await daemon.call('merge_status', { task_id: waiting })).lines[0].held
  await until(held, 'a line that is held')
  return { toReview, landed, red, waiting }
}

async function mergeGround(daemon: TestDaemon, name: string) {
  const { project_id } = await daemon.call('project_create', { name })
  const repo = repository()
  const checks = `if test -e broken.txt; then seq -f 'ok %g - a slot' 40; echo 'not ok 41 - the last slot of the day'; exit 1; fi`
  await daemon.call('repo_add', { path: repo, project_id, checks })
  const summary = 'Slots are of **two hours**, in the time of the customer.\n\n- summer time is tried\n- `npm test` is green'
  const woken = { if_resumed: { steps: [{ sleep: { ms: 36_000_000 } }] } }
  const handIn = async (title: string, path: string, text: string): Promise<string> => {
    const { handle } = await daemon.call('task_create', { project_id, title })
    await startWith(daemon, handle, woken, { write: { path, text } }, { commit: { message: title } }, { review: { summary } })
    await until(async () => (await daemon.call('task_get', { task_id: handle })).task.status === 'REVIEW', `${handle} in review`)
    return handle
  }
  return { repo, handIn }
}

const DELIVERY = [
  'export interface Slot {',
  '  from: Date',
  '  to: Date',
  '}',
  '',
  '/** The first slot in which the parcel can arrive. */',
  'export function firstSlot(ordered: Date, hours: number): Slot {',
  '  const from = new Date(ordered.getTime() + hours * 3_600_000)',
  '  return { from, to: new Date(from.getTime() + 2 * 3_600_000) }',
  '}',
  '',
].join('\n')

const SCRIPTS = {
  working: [
    { say: 'I read the checkout first. The delivery service answers in hours, the page shows days.' },
    { think: 'The conversion belongs into one place. checkout.ts has two callers, both on the server.' },
    { run: { argv: ['git', 'log', '--oneline'] } },
    { write: { path: 'src/delivery.ts', text: DELIVERY } },
    { write: { path: 'README.md', text: '# Shop\n\nDelivery times are in `src/delivery.ts`.\n' } },
    { usage: { input_tokens: 48_200, output_tokens: 3_100, cost_usd: 0.61 } },
    { turn: {} },
    { say: 'The function is there, with a slot of two hours.\nShall I round up to the next full hour?' },
    { wait_message: { timeout_seconds: 36_000 } },
  ],
  parked: [
    { say: 'I look for the pictures that are loaded at once.' },
    { usage: { input_tokens: 9_000, output_tokens: 700, cost_usd: 0.08 } },
    { limit: { message: 'The usage limit of your plan is reached.', resets_in_seconds: 7_200 } },
  ],
  handedIn: [
    { write: { path: 'search.ts', text: 'export const distance = 2\n' } },
    { commit: { message: 'search: forgive a typo' } },
    {
      review: {
        summary:
          'Words with **up to two** wrong letters are found:\n\n- titles and descriptions are searched\n- what was looked for instead is said above the results\n\n`npm test` is green.',
      },
    },
  ],
}
