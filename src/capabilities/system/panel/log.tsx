import { History } from 'lucide-react'
import { useCallback, useMemo, useState } from 'react'
import type { ToolName } from '../../../ui/client.ts'
import { FilterSelect } from '../../../ui/kit/field.tsx'
import { Empty, Loaded, Skeleton } from '../../../ui/kit/states.tsx'
import { VirtualList } from '../../../ui/kit/virtual.tsx'
import { useEvents, usePages, useReplaced, useTool } from '../../../ui/live.tsx'
import { EventLine } from '../../../ui/shell/event-line.tsx'
import type { LiveEvent } from '../../../ui/stream.ts'
import type { Filter } from './activity.tsx'
import { newestFirst, withNew } from './log-data.ts'

type Noun = ToolName extends `${infer N}_${string}` ? N : never

const NOUNS: Noun[] = [
  'task',
  'plan',
  'project',
  'repo',
  'agent',
  'person',
  'token',
  'setting',
  'decision',
  'effect',
  'job',
  'run',
  'review',
  'budget',
]

interface Props {
  filter: Filter
  setFilter(change: Filter): void
}

export function Log({ filter, setFilter }: Props) {
  const projects = useTool('project_list', { limit: 200 }).data?.projects
  const replaced = useReplaced()
  const project = projects?.find(({ handle }) => handle === filter.project)?.id
  return (
    <>
      <search className="filters">
        <FilterSelect label="About what" value={filter.noun} onChange={(noun) => setFilter({ noun })}>
          <option value="">Everything</option>
          {NOUNS.map((noun) => (
            <option key={noun} value={noun}>
              {noun}
            </option>
          ))}
        </FilterSelect>
        <FilterSelect label="Project" value={filter.project} onChange={(project) => setFilter({ project })}>
          <option value="">All projects</option>
          {projects?.map(({ handle, name }) => (
            <option key={handle} value={handle}>
              {name}
            </option>
          ))}
        </FilterSelect>
      </search>
      {filter.project && !projects ? (
        <Skeleton />
      ) : (
        // Another filter, or another log, begins anew: what the stream told is worth only together with what was read after it.
        <Events
          key={`${replaced} ${filter.noun} ${filter.project}`}
          noun={filter.noun}
          project={filter.project ? (project ?? filter.project) : undefined}
        />
      )}
    </>
  )
}

/** Every few lines of an agent are one: they are shown to whoever asks for runs. */
const TOO_MANY = 'run.progressed'

/** What the stream tells is put on top of what was read; the first page is asked for while the stream is listened to already. */
function Events({ noun, project }: { noun: string | undefined; project: string | undefined }) {
  const [told, setTold] = useState<LiveEvent[]>([])
  useEvents((events) => {
    const fitting = events.filter((event) => fits(event, noun, project))
    if (fitting.length) setTold((before) => withNew(before, fitting))
  })
  const read = usePages('event_list', { types: noun ? [`${noun}.*`] : [`!${TOO_MANY}`], project_id: project, limit: 100 }, 'before')
  const { hasNextPage, fetchNextPage } = read
  const more = useCallback(() => {
    if (hasNextPage) void fetchNextPage({ cancelRefetch: false })
  }, [hasNextPage, fetchNextPage])
  const pages = read.data?.pages
  const events = useMemo(() => newestFirst(told, pages?.flatMap((page) => page.events) ?? []), [told, pages])
  return (
    <Loaded read={read}>
      {() =>
        events.length ? (
          <VirtualList className="log card" label="Activity" items={events} keyOf={(event) => event.cursor} estimate={41} onEnd={more}>
            {(event) => (
              <div className="log-row" data-cursor={event.cursor}>
                <EventLine event={event} />
              </div>
            )}
          </VirtualList>
        ) : (
          <Empty icon={History} title="Nothing like that happened yet.">
            <p>What anybody does is written here the moment it is done.</p>
          </Empty>
        )
      }
    </Loaded>
  )
}

function fits(event: LiveEvent, noun: string | undefined, project: string | undefined): boolean {
  return (noun ? event.type.startsWith(`${noun}.`) : event.type !== TOO_MANY) && (!project || event.project_id === project)
}
