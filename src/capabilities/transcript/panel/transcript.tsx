import './transcript.css'
import { MessagesSquare } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Card } from '../../../ui/kit/page.tsx'
import { SearchInput } from '../../../ui/kit/search.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { TailList } from '../../../ui/kit/tail-list.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useReplaced, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { EntryView } from './entry.tsx'
import { Found } from './found.tsx'
import { type Row, rowsOf } from './rows.ts'
import { useTranscript } from './use-transcript.ts'

/** What the agents of a task say and do, while they do it. */
export function Transcript({ task }: { task: TaskOnPage }) {
  const [words, setWords] = useState('')
  const replaced = useReplaced()
  return (
    <Card
      className="transcript"
      title="Transcript"
      actions={
        <search>
          <SearchInput
            label="Search the transcript"
            placeholder="Search"
            maxLength={200}
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
        </search>
      }
    >
      {words.trim() ? <Found task={task.id} words={words.trim()} /> : <Entries key={`${replaced} ${task.id}`} task={task.id} />}
    </Card>
  )
}

function Entries({ task }: { task: string }) {
  const { pages, entries, readOlder } = useTranscript(task)
  const rows = useMemo(() => rowsOf(entries), [entries])
  // Drawn or not: what somebody opened is open when they scroll back to it.
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const toggle = (key: string, open: boolean) =>
    setOpened((before) => (open ? new Set(before).add(key) : new Set([...before].filter((other) => other !== key))))
  return (
    <Loaded read={pages}>
      {() =>
        rows.length ? (
          <TailList className="transcript-list" label="Transcript" items={rows} keyOf={({ key }) => key} estimate={36} onStart={readOlder}>
            {(row) => <RowView row={row} task={task} open={opened.has(row.key)} onOpen={(open) => toggle(row.key, open)} />}
          </TailList>
        ) : (
          <Empty icon={MessagesSquare} title="Nothing was said yet.">
            <p>When an agent works on this task, everything that it says and does appears here at once.</p>
          </Empty>
        )
      }
    </Loaded>
  )
}

function RowView({ row, task, open, onOpen }: { row: Row; task: string; open: boolean; onOpen(open: boolean): void }) {
  if (row.is === 'run') return <RunHead task={task} id={row.run_id} />
  if (row.is === 'turn')
    return (
      <h4 className="turn-head">
        <span>Turn {row.turn}</span>
      </h4>
    )
  return <EntryView entry={row.entry} result={row.result} open={open} onOpen={onOpen} />
}

function RunHead({ task, id }: { task: string; id: string }) {
  const runs = useTool('run_list', { task_id: task, limit: 200 }, { follows: ['run', 'job'], about: task, rests: 500 }).data?.runs
  const run = runs?.find((one) => one.id === id)
  return (
    <h3 className="run-head">
      {run ? (
        <>
          {run.kind === 'checks' ? 'Checks' : `Life ${run.life}`}
          <span className="muted">
            {run.kind === 'agent' && `${run.harness}, `}
            <Time at={run.created_at} />
          </span>
        </>
      ) : (
        'A run'
      )}
    </h3>
  )
}
