import { type Lane, mayCall, onLane, PROFILES, type Principal, ROLE_NAMES, ROLES } from '../../kernel/policy.ts'
import type { Registry } from '../../kernel/registry.ts'
import type { Tool } from '../../kernel/tool.ts'
import { code, codes, page, table } from './markdown.ts'
import { callersOf, isScoped } from './tools.ts'

export interface Column {
  name: string
  principal: Principal
  lane: Lane
}

const nobody = { id: '', name: '', handle: '', scope: {} }
const person = (more: Partial<Principal>): Principal => ({ ...nobody, kind: 'person', profile: 'maintainer', ...more })
const agent = (more: Partial<Principal>): Principal => ({ ...nobody, kind: 'agent', profile: 'maintainer', ...more })

/** An agent of the role that nothing is denied to: only its profile and its kind decide. */
const UNRESTRICTED = 'orchestrator'

export const BY_PROFILE: Column[] = [
  { name: 'owner', principal: person({ owner: true }), lane: 'admin' },
  { name: 'owner, default lane', principal: person({ owner: true }), lane: 'default' },
  ...PROFILES.map((profile): Column => ({ name: `person ${profile}`, principal: person({ profile }), lane: 'admin' })),
  ...PROFILES.map((profile): Column => ({ name: `agent ${profile}`, principal: agent({ profile, role: UNRESTRICTED }), lane: 'admin' })),
]

export const BY_ROLE: Column[] = ROLE_NAMES.map((role) => ({
  name: role,
  principal: agent({ role, profile: ROLES[role].profile }),
  lane: 'admin',
}))

/** The policy's own answer; policy.test.ts asks the same at the door, with real tokens. */
export function allows({ principal, lane }: Column, tool: Tool): boolean {
  return mayCall({ principal, lane, tool, name: tool.name, calledAs: tool.name }) === undefined
}

export function permissionsPage({ tools }: Registry): string {
  const open = tools.filter((tool) => !tool.internal)
  const ceiling = onLane(person({}), 'default').profile
  return page(
    'Permissions',
    `Who calls is proven by a token. Whether they may is asked in this order:`,
    `1. the **profile**, a ladder on which each step includes those before it: ${PROFILES.map(code).join(', ')};
2. the **role** of an agent, whose globs narrow its profile and never extend it;
3. the **scope** of an agent: where it may write.`,
    'What only a person or only the owner may do, no role, glob or profile gives to an agent.',
    `On the default **lane** a person reaches ${code(ceiling)} at most; the admin lane must be asked for (\`signalbox mcp --admin\`) and is recorded.
An agent's own profile is the same on both.`,
    '## Roles',
    `The defaults; [settings](settings.md) change them. Deny wins, then allow, else refused. A role that is bound to something acts on
nothing else, and on nothing at all before it has one; the others act inside their project, if they have one. Reads are not
bound, but the log and waits show an agent only its own project and what belongs to none.`,
    table(
      ['role', 'profile', 'allowed', 'denied', 'bound to'],
      ROLE_NAMES.map((role) => {
        const { profile, allow, deny, bound } = ROLES[role]
        return [role, code(profile), codes(allow), codes(deny), bound ? `its own ${bound}` : '']
      }),
    ),
    '## Tools and profiles',
    `*Scoped*: what an agent's call acts on must lie in its scope; people act everywhere. The agents here have the role \`${UNRESTRICTED}\`.`,
    matrix(open, BY_PROFILE, [
      ['needs', (tool) => code(tool.profile)],
      ['called by', callersOf],
      ['scoped', (tool) => (isScoped(tool) ? 'yes' : '')],
    ]),
    '## Tools and roles',
    'With the default profile and globs of each role.',
    matrix(open, BY_ROLE, []),
  )
}

function matrix(tools: Tool[], columns: Column[], facts: [string, (tool: Tool) => string][]): string {
  return table(
    ['tool', ...facts.map(([name]) => name), ...columns.map(({ name }) => name)],
    tools.map((tool) => [
      `[${tool.name}](tools.md#${tool.name})`,
      ...facts.map(([, of]) => of(tool)),
      ...columns.map((column) => (allows(column, tool) ? 'yes' : '')),
    ]),
  )
}
