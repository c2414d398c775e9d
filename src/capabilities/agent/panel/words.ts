import type { Input, Output } from '../../../ui/client.ts'
import type { Tone } from '../../../ui/kit/badge.tsx'

export type Agent = Output<'agent_list'>['agents'][number]
export type Token = Output<'token_list'>['tokens'][number]
export type Role = Input<'agent_invite'>['role']
export type Profile = Agent['profile']

export const ROLES: Record<Role, string> = {
  worker: 'Worker: does one task',
  reviewer: 'Reviewer: judges one task',
  planner: 'Planner: proposes tasks',
  orchestrator: 'Orchestrator: hands out work in a project',
  supervisor: 'Supervisor: leads one epic',
}

/** Each may do what the ones above it may. */
export const PROFILES: Record<Profile, string> = {
  viewer: 'Viewer: reads',
  planner: 'Planner: proposes plans',
  pair_worker: 'Pair worker: works on a task',
  operator: 'Operator: creates and hands out tasks',
  maintainer: 'Maintainer: manages everything',
}

export const STATES: Record<Agent['state'], { tone: Tone; text: string }> = {
  STARTING: { tone: 'blue', text: 'starting' },
  IDLE: { tone: 'neutral', text: 'idle' },
  BUSY: { tone: 'green', text: 'busy' },
  WAITING_REVIEW: { tone: 'amber', text: 'waits for review' },
  PAUSED: { tone: 'amber', text: 'paused' },
  STOPPED: { tone: 'neutral', text: 'stopped' },
  CRASHED: { tone: 'red', text: 'crashed' },
}

export const KINDS: Record<Token['kind'], string> = { agent: 'agent', person: 'person', link: 'sign-in link' }

/** Lines for a terminal that connect a client as the holder of the token. */
export function connectLines(origin: string, token: string): [client: string, line: string][] {
  const address = `${origin}/mcp`
  const header = `--header "Authorization: Bearer ${token}"`
  return [
    ['Claude Code', `claude mcp add --transport http signalbox ${address} ${header}`],
    ['Gemini CLI', `gemini mcp add --transport http ${header} signalbox ${address}`],
    ['Codex', `export SIGNALBOX_TOKEN=${token}; codex mcp add signalbox --url ${address} --bearer-token-env-var SIGNALBOX_TOKEN`],
  ]
}
