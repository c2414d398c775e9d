import './activity.css'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { OctagonAlert } from 'lucide-react'
import { Page } from '../../../ui/kit/page.tsx'
import { Tabs } from '../../../ui/kit/tabs.tsx'
import { useTool } from '../../../ui/live.tsx'
import { Calls } from './calls.tsx'
import { Log } from './log.tsx'
import { Verify } from './verify.tsx'

export interface Filter {
  tab?: string
  noun?: string
  project?: string
  outcome?: string
  tool?: string
  who?: string
}

export function Activity() {
  const filter = useSearch({ strict: false }) as Filter
  const navigate = useNavigate()
  const setFilter = (change: Filter) => void navigate({ to: '/activity', search: clean({ ...filter, ...change }), replace: true })
  return (
    <Page title="Activity" subtitle="What happened, who asked for it, and the proof that nobody rewrote it." actions={<Stuck />}>
      <Tabs
        label="Activity"
        open={filter.tab ?? 'events'}
        onOpen={(tab) => setFilter({ tab: tab === 'events' ? undefined : tab })}
        tabs={[
          { id: 'events', title: 'Events', content: <Log filter={filter} setFilter={setFilter} /> },
          { id: 'calls', title: 'Calls', content: <Calls filter={filter} setFilter={setFilter} /> },
          { id: 'verify', title: 'Verify the audit', content: <Verify /> },
        ]}
      />
    </Page>
  )
}

/** Work on the outside world that waits for a person; most days there is none. */
function Stuck() {
  const counts = useTool('effect_list', { limit: 1 }).data?.counts
  const stuck = counts ? counts.dead + counts.unknown : 0
  if (!stuck) return null
  return (
    <Link to="/effects" className="button button-danger">
      <OctagonAlert aria-hidden /> {stuck === 1 ? 'One effect is stuck' : `${stuck} effects are stuck`}
    </Link>
  )
}

/** An empty field is no filter, and does not stand in the address. */
function clean(filter: Filter): Filter {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value))
}
