import './agent.css'
import { ListChecks, Pause, Play, RotateCcw, Square, X } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { costOf, tokensIn, tokensOf } from './amounts.ts'
import { type Job, type Run, useJobs, useRuns } from './data.ts'
import { MessageBox } from './message-box.tsx'
import { headline, isOpen, type Standing, standingOf, TONES } from './standing.ts'
import { StartDialog } from './start-dialog.tsx'

interface Props {
  task: TaskOnPage
  openTab(tab: string): void
}

/** How it stands with the agent of the task, and what can be done about it now. */
export function Agent({ task, openTab }: Props) {
  const jobs = useJobs(task.id)
  const runs = useRuns(task.id)
  if (!jobs.data?.jobs.length && (task.task_type === 'PAIR' || task.status === 'DONE')) return null
  return (
    <Loaded read={{ ...jobs, data: jobs.data && runs.data && { jobs: jobs.data.jobs, runs: runs.data.runs } }}>
      {(found) => <Cockpit task={task} openTab={openTab} {...found} />}
    </Loaded>
  )
}

function Cockpit({ task, openTab, jobs, runs }: Props & { jobs: Job[]; runs: Run[] }) {
  const standing = standingOf(jobs, runs)
  const living = runs.find(({ state, kind }) => state !== 'ended' && kind === 'agent')
  const may = useMay()
  return (
    <Card className="agent" title="Agent" actions={may('job_submit') && <Actions {...{ task, openTab, standing, runs }} />}>
      <div className="card-body agent-body">
        <p className="agent-line">
          <span className={`light tone-${TONES[standing.is]}`} aria-hidden />
          <strong role="status">{headline(standing)}</strong> <Facts standing={standing} />
        </p>
        <Reason standing={standing} />
        {may('job_submit') && living?.can_message && standing.is === 'running' && <MessageBox task={task.id} run={living.id} jobs={jobs} />}
      </div>
    </Card>
  )
}

function Facts({ standing }: { standing: Standing }) {
  if (standing.is === 'unstarted') return <span className="muted">No agent has worked on this task yet.</span>
  const { job } = standing
  if (!('run' in standing))
    return (
      <span className="muted agent-facts">
        <span className="mono">{job.handle}</span>
        {job.not_before && (
          <span>
            goes on <Time at={job.not_before} />
          </span>
        )}
      </span>
    )
  const { run } = standing
  return (
    <span className="muted agent-facts">
      {isOpen(standing) && job.started_at && (
        <span>
          started <Time at={job.started_at} />
        </span>
      )}
      {!isOpen(standing) && job.ended_at && <Time at={job.ended_at} />}
      {run?.kind === 'agent' && (
        <>
          <span>{run.model ? `${run.harness} ${run.model}` : run.harness}</span>
          {run.life > 1 && <span>life {run.life}</span>}
          <span>turn {run.turns}</span>
          <span>{tokensIn(tokensOf(run))} tokens</span>
          <span>{costOf(run)}</span>
        </>
      )}
      <span className="mono">{job.handle}</span>
    </span>
  )
}

function Reason({ standing }: { standing: Standing }) {
  if (standing.is === 'unstarted' || !standing.job.reason) return null
  return <p className={`agent-reason tone-${TONES[standing.is]}`}>{visible(standing.job.reason)}</p>
}

function Actions({ task, openTab, standing, runs }: Props & { standing: Standing; runs: Run[] }) {
  const [asking, setAsking] = useState<'start' | 'resume' | 'stop'>()
  const checks = useChecks(task)
  const close = () => setAsking(undefined)
  const stop = useAction('job_submit', { onSuccess: close, onError: close })
  const check = useAction('job_submit', { onSuccess: () => openTab('Transcript') })
  const cancel = useAction('job_cancel')
  const interrupt = useAction('job_submit', { said: () => 'The agent is told to end what it does now.' })
  const worked = runs.some(({ kind }) => kind === 'agent')
  const free = !isOpen(standing) && task.status !== 'DONE' && task.task_type === 'AUTO'
  const startable = free && task.status !== 'REVIEW'
  return (
    <div className="agent-actions">
      {free && worked && checks && (
        <Button
          kind="quiet"
          icon={ListChecks}
          busy={check.isPending}
          onClick={() => check.mutate({ task_id: task.id, action: 'run_checks' })}
        >
          Run checks
        </Button>
      )}
      {startable && (
        <Button kind={worked ? 'plain' : 'primary'} icon={Play} onClick={() => setAsking('start')}>
          {worked ? 'Start anew' : 'Start agent'}
        </Button>
      )}
      {startable && worked && (
        <Button kind="primary" icon={RotateCcw} onClick={() => setAsking('resume')}>
          Resume
        </Button>
      )}
      {(standing.is === 'queued' || standing.is === 'parked') && (
        <Button icon={X} busy={cancel.isPending} onClick={() => cancel.mutate({ job_id: standing.job.id })}>
          Cancel
        </Button>
      )}
      {standing.is === 'running' && standing.run?.kind === 'agent' && standing.run.can_interrupt && !standing.run.paused && (
        <Button icon={Pause} busy={interrupt.isPending} onClick={() => interrupt.mutate({ task_id: task.id, action: 'interrupt_agent' })}>
          Interrupt
        </Button>
      )}
      {(standing.is === 'running' || standing.is === 'starting') && (
        <Button kind="danger" icon={Square} onClick={() => setAsking('stop')}>
          Stop
        </Button>
      )}
      <StartDialog
        task={task}
        open={asking === 'start' || asking === 'resume'}
        resume={asking === 'resume'}
        onClose={close}
        onStarted={() => openTab('Transcript')}
      />
      <Confirm
        open={asking === 'stop'}
        onClose={close}
        title={`Stop the agent of ${task.handle}?`}
        description="It ends with everything that it started, and the task goes back to the backlog. What it did is kept; it can be resumed."
        action="Stop"
        busy={stop.isPending}
        onConfirm={() => stop.mutate({ task_id: task.id, action: 'stop_agent' })}
      />
    </div>
  )
}

/** Whether any repository of the project says how its work is checked. */
function useChecks(task: TaskOnPage): boolean {
  const { data } = useTool('repo_list', { project_id: task.project_id, limit: 50 })
  return data?.repos.some(({ checks }) => checks) ?? false
}
