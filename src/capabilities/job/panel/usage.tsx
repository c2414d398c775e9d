import './usage.css'
import { Gauge, Pencil } from 'lucide-react'
import { type FormEvent, useEffect, useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd } from '../../../ui/kit/field.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { costOf, METER, METERS } from './amounts.ts'
import { type Run, useRuns } from './data.ts'
import { limitsOf, MeterFields, type MeterTexts, NO_LIMITS } from './meter-fields.tsx'
import { programOf, TurnsCard, tokens } from './usage-page.tsx'

export function Usage({ task }: { task: TaskOnPage }) {
  const runs = useRuns(task.id)
  const newest = runs.data?.runs.find(({ kind }) => kind === 'agent')
  return (
    <>
      <BudgetCard task={task} />
      <Card title="Runs">
        <Loaded read={runs}>{({ runs: list }) => (list.length ? <Runs runs={list} /> : <NoRuns />)}</Loaded>
      </Card>
      {newest && <TurnsCard key={newest.id} run={newest.id} />}
    </>
  )
}

function NoRuns() {
  return (
    <Empty icon={Gauge} title="No run yet.">
      <p>Every life of an agent is listed here with what it used.</p>
    </Empty>
  )
}

function Runs({ runs }: { runs: Run[] }) {
  return (
    <Table
      label="Runs"
      rows={runs}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Life', show: ({ kind, life }) => (kind === 'checks' ? 'checks' : life) },
        { title: 'Program', show: (row) => programOf(row) },
        { title: 'Turns', show: ({ turns }) => turns },
        { title: 'Tokens', show: (row) => tokens(row) },
        { title: 'Cost', show: (row) => costOf(row) },
        { title: 'Began', show: ({ created_at }) => <Time at={created_at} /> },
        {
          title: 'Outcome',
          show: ({ outcome, state }) => <span className="run-outcome">{outcome === null ? state : visible(outcome)}</span>,
        },
      ]}
    />
  )
}

/** The budget is about all runs of the task together; also while one of them spends it. */
function BudgetCard({ task }: { task: TaskOnPage }) {
  const [editing, setEditing] = useState(false)
  const may = useMay()
  const read = useTool('budget_get', { task_id: task.id }, { follows: ['budget', 'run'], about: task.id, rests: 1_000 })
  return (
    <Card
      title="Budget"
      actions={
        may('budget_set') && (
          <Button kind="quiet" icon={Pencil} onClick={() => setEditing(true)}>
            Change
          </Button>
        )
      }
    >
      <Loaded read={read}>
        {(found) => (
          <>
            <Meters {...found} />
            <EditBudget task={task} budget={found.budget} open={editing} onClose={() => setEditing(false)} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

function Meters({ budget, spent }: Output<'budget_get'>) {
  return (
    <dl className="card-body budget">
      {METERS.map((meter) => {
        const { label, show } = METER[meter]
        const limit = budget[meter]
        return (
          <div key={meter}>
            <dt>{label}</dt>
            <dd>
              <strong>{show(spent[meter])}</strong> <span className="muted">{limit === undefined ? 'no limit' : `of ${show(limit)}`}</span>
              {limit !== undefined && <meter aria-label={label} min={0} max={limit} high={limit * 0.8} optimum={0} value={spent[meter]} />}
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

interface EditProps {
  task: TaskOnPage
  budget: Output<'budget_get'>['budget']
  open: boolean
  onClose(): void
}

function EditBudget({ task, budget, open, onClose }: EditProps) {
  const [texts, setTexts] = useState<MeterTexts>(NO_LIMITS)
  const save = useAction('budget_set', { quiet: true, onSuccess: onClose })
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed must not be lost when somebody else changes it meanwhile
  useEffect(() => {
    if (!open) return
    setTexts(textsOf(budget))
    save.reset()
  }, [open])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const given = limitsOf(texts)
    save.mutate({ task_id: task.id, ...Object.fromEntries(METERS.map((meter) => [meter, given[meter] ?? null])) })
  }
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={`Budget of ${task.handle}`}
      description="What all runs of this task may use together. An empty field is no limit."
    >
      <form className="form" onSubmit={submit}>
        <MeterFields value={texts} onChange={setTexts} />
        <FormEnd error={save.error} busy={save.isPending} submit="Save" onCancel={onClose} />
      </form>
    </Dialog>
  )
}

function textsOf(budget: EditProps['budget']): MeterTexts {
  return {
    ...NO_LIMITS,
    ...Object.fromEntries(METERS.flatMap((meter) => (budget[meter] === undefined ? [] : [[meter, String(budget[meter])]]))),
  }
}
