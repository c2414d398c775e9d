import './usage.css'
import { Link } from '@tanstack/react-router'
import { Gauge } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { FilterSelect } from '../../../ui/kit/field.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useTool } from '../../../ui/live.tsx'
import { costOf, tokensIn, UNTOLD } from './amounts.ts'

type Usage = Output<'usage_get'>
/** An agent that prints much changes its figures with every line. */
const REST_MS = 1_000
const SHOWN_RUNS = 50

/** What the agents of all tasks, or of a project's, have used. */
export function UsagePage() {
  const [project, setProject] = useState('')
  const projects = useTool('project_list', { limit: 200 }).data?.projects ?? []
  const usage = useTool('usage_get', { project_id: project || undefined, limit: SHOWN_RUNS }, { follows: ['run', 'job'], rests: REST_MS })
  return (
    <Page
      title="Usage"
      subtitle="Tokens and cost of the agents. What a program does not report itself is marked with ≈."
      actions={
        <FilterSelect label="Project" value={project} onChange={setProject}>
          <option value="">All projects</option>
          {projects.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </FilterSelect>
      }
    >
      <Loaded read={usage}>
        {(found) =>
          found.total.runs ? (
            <Figures {...found} />
          ) : (
            <Empty icon={Gauge} title="No agent has worked yet.">
              <p>What each one uses is added up here.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

function Figures({ total, programs, runs, limits, next }: Usage) {
  return (
    <>
      <Card title="Altogether">
        <dl className="card-body budget">
          {Object.entries(totals(total)).map(([label, amount]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                <strong>{amount}</strong>
              </dd>
            </div>
          ))}
        </dl>
      </Card>
      {limits.length > 0 && (
        <Card title="Out of quota">
          <Table
            label="Out of quota"
            rows={limits}
            keyOf={({ harness, model }) => `${harness} ${model}`}
            columns={[
              { title: 'Program', show: (row) => programOf(row) },
              { title: 'Goes on', show: ({ resets_at }) => <Time at={resets_at} /> },
              { title: 'Jobs that wait', show: ({ jobs }) => jobs },
              { title: 'Reason', show: ({ message }) => <span className="run-outcome">{visible(message ?? '')}</span> },
            ]}
          />
        </Card>
      )}
      <Card title="By program">
        <Table
          label="By program"
          rows={programs}
          keyOf={({ harness, model }) => `${harness} ${model}`}
          columns={[
            { title: 'Program', show: (row) => programOf(row) },
            { title: 'Runs', show: (row) => row.runs },
            { title: 'Turns', show: ({ turns }) => turns },
            { title: 'Tokens', show: (row) => tokens(row) },
            { title: 'Cost', show: (row) => costOf(row) },
          ]}
        />
      </Card>
      <Card title={next === null ? 'Runs' : `The last ${runs.length} runs`}>
        <Table
          label="Runs"
          rows={runs}
          keyOf={({ run_id }) => run_id}
          columns={[
            { title: 'Began', show: ({ created_at }) => <Time at={created_at} /> },
            {
              title: 'Task',
              show: ({ task }) => (
                <Link to="/task/$task" params={{ task }} search={{ tab: 'Usage' }}>
                  {task}
                </Link>
              ),
            },
            { title: 'Program', show: (row) => programOf(row) },
            { title: 'Turns', show: ({ turns }) => turns },
            { title: 'Tokens', show: (row) => tokens(row) },
            { title: 'Cost', show: (row) => costOf(row) },
          ]}
        />
      </Card>
    </>
  )
}

function totals(total: Usage['total']): Record<string, string> {
  return {
    Runs: String(total.runs),
    Turns: String(total.turns),
    'Tokens in': tokensIn(total.input_tokens),
    'Tokens out': tokensIn(total.output_tokens),
    Cost: costOf(total),
  }
}

export const programOf = ({ harness, model }: { harness: string; model: string | null }) => (model ? `${harness} ${model}` : harness)

type Tokens = Pick<Usage['total'], 'input_tokens' | 'output_tokens' | 'cached_tokens'> & Partial<Pick<Usage['total'], 'untold'>>

export function tokens({ input_tokens, output_tokens, cached_tokens, untold }: Tokens): string {
  if (untold?.includes('tokens') && !input_tokens && !output_tokens) return UNTOLD
  const kept = cached_tokens ? ` (${tokensIn(cached_tokens)} cached)` : ''
  return `${tokensIn(input_tokens)} in${kept}, ${tokensIn(output_tokens)} out`
}

/** The newest run, turn by turn. */
export function TurnsCard({ run }: { run: string }) {
  const usage = useTool('usage_get', { run_id: run, limit: 1 }, { follows: ['run'], rests: REST_MS })
  const turns = usage.data?.turns ?? []
  if (!turns.length) return null
  return (
    <Card title="Turns of the newest run">
      <Table
        label="Turns of the newest run"
        rows={turns}
        keyOf={({ turn }) => turn}
        columns={[
          { title: 'Turn', show: ({ turn }) => turn },
          { title: 'Tokens', show: (row) => tokens(row) },
          { title: 'Cost', show: (row) => costOf(row) },
        ]}
      />
    </Card>
  )
}
