import { z } from 'zod'
import { calledAs } from '../../kernel/audit.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { type AgentRow, agentStore, HUMAN, type Letter, SYSTEM_SENDER, sendLetter } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { escalationStore } from './store.ts'

const CRITICAL = '⚠️ CRITICAL'
/** One failing tool in a loop would else fill an inbox faster than anybody reads. */
const SAME_AGAIN_MS = 60_000
const LONGEST_STACK = 10_000

const Failure = z.strictObject({ call_id: z.string(), critical: z.boolean() })

/** Called later, with the audit row of the call that failed. That it was told is a row of its own, so telling again changes nothing. */
export const escalate = defineTool({
  name: 'escalation_send',
  title: 'Tell of a failed call',
  description: 'Writes to those who must know that a call of an agent failed.',
  input: Failure,
  output: z.strictObject({ letters: z.int() }),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  later: 'call.escalate',
  async run(ctx, { call_id, critical }) {
    const store = escalationStore(ctx.tx)
    const call = await store.call(call_id)
    const agent = call && (await agentStore(ctx.tx).agent(call.principal))
    if (!call || !agent) return { letters: 0 }
    await takeTurn(ctx.tx, `escalation:${agent.id}`)
    const alike = { agent_id: agent.id, tool: calledAs(call).name, code: call.code ?? '' }
    const last = await store.lastTold(alike)
    const told = last === null || call.at - last >= SAME_AGAIN_MS
    const missed = told ? await store.takeUntold(alike) : 0
    if (!(await store.insert({ call_id, ...alike, at: call.at, told: told ? 1 : 0 })) || !told) return { letters: 0 }
    const letters = lettersAbout(agent, await supervisorOf(ctx, agent), critical, alike.tool, bodyOf(agent, alike.tool, call, missed))
    for (const letter of letters) await sendLetter(ctx, letter)
    return { letters: letters.length }
  },
})

async function supervisorOf(ctx: RunContext, agent: AgentRow): Promise<string | undefined> {
  const supervisor = agent.epic_id ? await escalationStore(ctx.tx).supervisorOf(agent.epic_id) : undefined
  return supervisor === agent.id ? undefined : supervisor
}

/** To whoever leads the epic, else to the human; what is critical reaches the human always. */
function lettersAbout(agent: AgentRow, supervisor: string | undefined, critical: boolean, tool: string, body: string): Letter[] {
  const subject = `${agent.handle}: ${tool} failed`
  const about = { project_id: agent.project_id, epic_id: agent.epic_id, task_id: agent.task_id }
  const letter = { from: SYSTEM_SENDER, body, about }
  const toHuman: Letter = critical
    ? { ...letter, to: HUMAN, subject: `${CRITICAL} ${subject}`, importance: 'urgent' }
    : { ...letter, to: HUMAN, subject, importance: 'high' }
  if (!supervisor) return [toHuman]
  return [{ ...letter, to: supervisor, subject, importance: 'high' }, ...(critical ? [toHuman] : [])]
}

/** What was given to the call stays with its caller: it may be a letter to somebody else. */
function bodyOf(agent: AgentRow, tool: string, call: { id: string; code: string | null; output: string }, missed: number): string {
  const { message, stack } = JSON.parse(call.output) as { message?: string; stack?: string }
  const again = missed ? `\n\nIt has failed in the same way ${missed === 1 ? 'once' : `${missed} times`} since the last letter.` : ''
  const trace = stack ? `\n\n${stack.slice(0, LONGEST_STACK)}` : ''
  return `A call of ${agent.handle} (${agent.role}) failed.\n\nTool: ${tool}\nCode: ${call.code}\nError: ${message ?? call.output}\nCall: ${call.id}${again}${trace}`
}
