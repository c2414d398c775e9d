import './epics.css'
import { Link } from '@tanstack/react-router'
import { Milestone, Plus } from 'lucide-react'
import { useState } from 'react'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useAll, useMay } from '../../../ui/live.tsx'
import { NewEpic } from './new-epic.tsx'
import { Progress } from './progress.tsx'
import { type Epic, STATES } from './words.ts'

export function Epics() {
  const epics = useAll('epic_list', {}, 'after', { follows: ['epic', 'task'] })
  const may = useMay()
  const [making, setMaking] = useState(false)
  const add = may('epic_create') && (
    <Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>
      New epic
    </Button>
  )
  return (
    <Page title="Epics" subtitle="Larger work: a supervisor splits it into tasks, workers do them, on a branch of its own." actions={add}>
      <Loaded read={epics}>
        {(pages) => {
          const all = pages.flatMap((page) => page.epics)
          return all.length ? (
            <List epics={all} />
          ) : (
            <Empty icon={Milestone} title="No epic yet.">
              <p>Describe what you want. Its supervisor makes the tasks, and each gets a worker by itself.</p>
            </Empty>
          )
        }}
      </Loaded>
      <NewEpic open={making} onClose={() => setMaking(false)} />
    </Page>
  )
}

function List({ epics }: { epics: Epic[] }) {
  return (
    <Card>
      <Table
        label="Epics"
        rows={epics}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Epic',
            show: ({ handle, title }) => (
              <Link to="/epic/$epic" params={{ epic: handle }} className="epic-name">
                <span>{title}</span> <span className="mono muted">{handle}</span>
              </Link>
            ),
          },
          { title: 'State', show: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge> },
          { title: 'Progress', show: ({ progress }) => <Progress progress={progress} /> },
          {
            title: 'Since',
            show: ({ created_at }) => (
              <span className="muted">
                <Time at={created_at} />
              </span>
            ),
          },
        ]}
      />
    </Card>
  )
}
