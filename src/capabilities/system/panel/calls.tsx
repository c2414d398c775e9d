import { RefreshCw, ScrollText, Search } from 'lucide-react'
import { useCallback, useMemo } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { FilterSelect } from '../../../ui/kit/field.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { VirtualList } from '../../../ui/kit/virtual.tsx'
import { useEverybody, Who } from '../../../ui/kit/who.tsx'
import { usePages } from '../../../ui/live.tsx'
import type { Filter } from './activity.tsx'

type Call = Output<'audit_tail'>['calls'][number]
type Outcome = Call['outcome']

const OUTCOMES: Record<Outcome, { tone: Tone; meaning: string }> = {
  ok: { tone: 'green', meaning: 'Done' },
  replayed: { tone: 'blue', meaning: 'Asked for twice with one key, done once' },
  refused: { tone: 'amber', meaning: 'Not allowed, or not possible' },
  failed: { tone: 'red', meaning: 'Broke' },
}

interface Props {
  filter: Filter
  setFilter(change: Filter): void
}

export function Calls({ filter, setFilter }: Props) {
  const outcome = filter.outcome && filter.outcome in OUTCOMES ? (filter.outcome as Outcome) : undefined
  const read = usePages('audit_tail', { outcome, tool: filter.tool, principal: filter.who, limit: 100 }, 'before')
  const { hasNextPage, fetchNextPage } = read
  const more = useCallback(() => {
    if (hasNextPage) void fetchNextPage({ cancelRefetch: false })
  }, [hasNextPage, fetchNextPage])
  const pages = read.data?.pages
  const calls = useMemo(() => pages?.flatMap((page) => page.calls) ?? [], [pages])
  return (
    <>
      <Filters filter={filter} setFilter={setFilter} tools={[...new Set(calls.map((call) => call.tool))].sort()}>
        <Button icon={RefreshCw} busy={read.isRefetching} onClick={() => void read.refetch()}>
          Look again
        </Button>
      </Filters>
      <Loaded read={read}>
        {() =>
          calls.length ? (
            <VirtualList className="log card" label="Calls" items={calls} keyOf={(call) => call.id} estimate={41} onEnd={more}>
              {(call) => <CallRow call={call} />}
            </VirtualList>
          ) : (
            <Empty icon={ScrollText} title="No call fits the filter." />
          )
        }
      </Loaded>
    </>
  )
}

function Filters({ filter, setFilter, tools, children }: Props & { tools: string[]; children: React.ReactNode }) {
  const everybody = [...useEverybody().values()]
  return (
    <search className="filters">
      <FilterSelect label="Outcome" value={filter.outcome} onChange={(outcome) => setFilter({ outcome })}>
        <option value="">Any outcome</option>
        {Object.keys(OUTCOMES).map((outcome) => (
          <option key={outcome}>{outcome}</option>
        ))}
      </FilterSelect>
      <FilterSelect label="Who asked" value={filter.who} onChange={(who) => setFilter({ who })}>
        <option value="">Anybody</option>
        {everybody.map(({ id, handle }) => (
          <option key={id} value={handle}>
            {handle}
          </option>
        ))}
      </FilterSelect>
      {/* Applied with Enter: half a name is no tool's. */}
      <form
        className="search"
        onSubmit={(event) => {
          event.preventDefault()
          setFilter({ tool: String(new FormData(event.currentTarget).get('tool') ?? '').trim() })
        }}
      >
        <Search aria-hidden />
        <input
          key={filter.tool}
          className="input"
          type="search"
          name="tool"
          aria-label="Tool"
          placeholder="Tool ⏎"
          list="tools-seen"
          defaultValue={filter.tool}
        />
        <datalist id="tools-seen">
          {tools.map((tool) => (
            <option key={tool} value={tool} />
          ))}
        </datalist>
      </form>
      {children}
    </search>
  )
}

function CallRow({ call }: { call: Call }) {
  const { tone, meaning } = OUTCOMES[call.outcome]
  return (
    <details className="call">
      <summary className="log-row">
        <span className="event-line">
          <Who id={call.principal} />
          {call.acting_person && (
            <span className="muted">
              by <Who id={call.acting_person} />
            </span>
          )}
          <span className="mono call-tool">{call.tool}</span>
          <Badge tone={tone} title={meaning}>
            {call.code ?? call.outcome}
          </Badge>
          <span className="muted event-time">
            <span className="call-duration">{inWords(call.duration_ms)} · </span>
            <Time at={call.at} />
          </span>
        </span>
      </summary>
      <div className="call-body">
        <p className="muted">
          {meaning}, over {call.surface}
          {call.dialect && ` (${call.dialect})`}, {call.lane} lane, {new Date(call.at).toLocaleString()}
        </p>
        <Json title="Asked" value={call.input} />
        {call.output !== null && <Json title="Answered" value={call.output} />}
      </div>
    </details>
  )
}

function Json({ title, value }: { title: string; value: unknown }) {
  return (
    <section>
      <h3>{title}</h3>
      <pre className="block">{JSON.stringify(value, null, 2)}</pre>
    </section>
  )
}

function inWords(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
