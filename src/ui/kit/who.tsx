import { Bot, Cog, User } from 'lucide-react'
import { useAll, useTool } from '../live.tsx'

export interface Known {
  id: string
  handle: string
  name: string
  kind: 'person' | 'agent' | 'system'
  owner?: boolean
}

/** Everybody who can be the author of something, by id. */
export function useEverybody(): Map<string, Known> {
  // Names alone: what an agent works on changes with every task, and is read by the page that shows it.
  const agents = useAll('agent_list', { limit: 200 }, 'after', { follows: ['agent'] }).data?.flatMap((page) => page.agents) ?? []
  const people = useTool('person_list', {}).data?.people ?? []
  return new Map<string, Known>([
    ['system', { id: 'system', handle: 'system', name: 'Signalbox', kind: 'system' }],
    ...people.map((person) => [person.id, { ...person, kind: 'person' }] as const),
    ...agents.map((agent) => [agent.id, { ...agent, kind: 'agent' }] as const),
  ])
}

const ICONS = { person: User, agent: Bot, system: Cog }

export function Who({ id }: { id: string }) {
  const known = useEverybody().get(id)
  const Icon = ICONS[known?.kind ?? 'agent']
  return (
    <span className="who" title={known?.name ?? id}>
      <Icon aria-hidden />
      <span>{known?.handle ?? id}</span>
    </span>
  )
}
