import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { PROFILES, ROLE_NAMES, ROLES } from '../../kernel/policy.ts'
import { migrations } from './migrations.ts'
import { prompts } from './prompts.ts'
import { AgentView, agentInvited, personInvited, TokenKindName, tokenEnded, tokenRotated } from './schema.ts'
import { agentStore } from './store.ts'
import { invite, invitePerson, link, list, listPeople, me, redeem, revoke, rotate, tokens } from './tools.ts'

const Globs = z.array(z.string().min(1).max(60)).max(100)

const roleSettings = Object.fromEntries(
  ROLE_NAMES.flatMap((role) => [
    [`roles.${role}.profile`, setting(z.enum(PROFILES), ROLES[role].profile, `Profile that a new ${role} gets`)],
    [`roles.${role}.allow`, setting(Globs, ROLES[role].allow, `Tools that a ${role} may call, as globs`)],
    [`roles.${role}.deny`, setting(Globs, ROLES[role].deny, `Tools that a ${role} may not call; wins over allow`)],
  ]),
)

export const agent = defineCapability({
  name: 'agent',
  tools: [me, list, invite, listPeople, invitePerson, tokens, link, redeem, revoke, rotate],
  migrations,
  values: {
    people: { profile: PROFILES },
    agents: { role: ROLE_NAMES, profile: PROFILES, desired: AgentView.shape.desired.options },
    tokens: { kind: TokenKindName.options },
  },
  prompts,
  settings: {
    ...roleSettings,
    'dashboard.sign_in_days': setting(z.int().min(1).max(365), 30, 'How long a browser stays signed in to the dashboard'),
  },
  events: [agentInvited, personInvited, tokenEnded, tokenRotated],
  things: [
    {
      kind: 'agent',
      async find(tx, ref) {
        const row = await agentStore(tx).agent(ref)
        if (!row) return undefined
        const within: Record<string, string> = { agent: row.id }
        if (row.project_id) within.project = row.project_id
        if (row.task_id) within.task = row.task_id
        if (row.epic_id) within.epic = row.epic_id
        return { id: row.id, within }
      },
    },
    {
      kind: 'person',
      async find(tx, ref) {
        const row = await agentStore(tx).person(ref)
        return row && { id: row.id, within: {} }
      },
    },
    {
      kind: 'token',
      async find(tx, ref) {
        const row = await agentStore(tx).token(ref)
        return row && { id: row.id, within: {} }
      },
    },
  ],
  resources: [{ uri: 'signalbox://me', name: 'me', description: 'Your identity, scope and current task', tool: 'agent_me' }],
})

export { type AgentFacts, agentFacts, agentTerminal, factsOf } from './about.ts'
export { bindToEpic, bindToTask, freeFromTask, wantAgent } from './binding.ts'
export { createIdentity, ensureOwner } from './identity.ts'
export { callFor, HUMAN, IMPORTANCES, type Importance, type Letter, letters, SYSTEM_SENDER, sendLetter } from './letters.ts'
export { AgentView, tokenEnded, tokenRotated } from './schema.ts'
export { hashOf, newSecret } from './secret.ts'
export { type AgentRow, agentStore } from './store.ts'
export { admitToken, agentView, createAgent, endToken } from './tools.ts'
