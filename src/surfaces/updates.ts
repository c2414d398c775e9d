import { tokenEnded, tokenRotated } from '../capabilities/index.ts'
import type { Capability } from '../kernel/capability.ts'
import type { LoggedEvent } from '../kernel/event.ts'

/** What an event means to somebody who reads resources: which URIs to read again, and whether the list of tools changed. */
export interface Updates {
  uris(event: LoggedEvent): string[]
  toolsChanged(event: LoggedEvent): boolean
}

export function createUpdates(capabilities: Capability[]): Updates {
  const resources = capabilities.flatMap((c) => (c.resources ?? []).map((resource) => ({ uri: resource.uri, nouns: nounsOf(c) })))
  return {
    uris(event) {
      const noun = event.type.split('.')[0] as string
      return resources
        .filter((r) => r.nouns.has(noun))
        .flatMap(({ uri }) => (uri.includes('{id}') ? namesOf(event).map((name) => uri.replace('{id}', name)) : [uri]))
    },
    toolsChanged: (event) => event.type === 'setting.changed' && event.subject.startsWith('roles.'),
  }
}

/** A capability's resources change with its own events. */
function nounsOf(capability: Capability): Set<string> {
  return new Set((capability.events ?? []).map((event) => event.type.split('.')[0] as string))
}

/** A thing is read by its id or by its handle. */
function namesOf(event: LoggedEvent): string[] {
  const { handle } = event.data
  return [
    ...new Set([event.subject, event.task, typeof handle === 'string' ? handle : undefined].filter((name) => typeof name === 'string')),
  ]
}

/** The id of the token that this event ended: what was opened with it is told nothing more. */
export function endedToken(event: LoggedEvent): string | undefined {
  if (event.type === tokenEnded.type) return event.subject
  return event.type === tokenRotated.type ? (event.data.replaces as string) : undefined
}
