import { call, type Output } from '../../../ui/client.ts'
import { Log } from '../../../ui/kit/log.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { useFollowed } from '../../../ui/kit/use-followed.ts'
import { useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'

type Setup = NonNullable<Output<'setup_get'>['setup']>

/** Below what a page waits for any answer. */
const WAIT_SECONDS = 12
const REST_MS = 500
/** Before it prints anything nothing can be waited for. */
const AGAIN_MS = 2_000

/** While the worktree is being set up, and after that has failed; a worktree that is ready needs no words. */
export function SetupSection({ task }: { task: TaskOnPage }) {
  const { data } = useTool('setup_get', { task_id: task.id }, { follows: ['setup', 'work'], about: task.id })
  const setup = data?.setup
  if (!setup || setup.state === 'ready' || setup.state === 'cleaned_up' || task.status === 'DONE') return null
  return (
    <Card title="Setup">
      <div className="card-body log-section">
        {setup.state === 'running' ? <Running key={setup.started_at} task={task} setup={setup} /> : <Failed setup={setup} />}
      </div>
    </Card>
  )
}

function Running({ task, setup }: { task: TaskOnPage; setup: Setup }) {
  const now = useFollowed<Output<'setup_get'>>(`${task.id} ${setup.started_at}`, {
    ask: (last, signal) =>
      call('setup_get', { task_id: task.id, after: last?.setup?.mark ?? undefined, wait_seconds: WAIT_SECONDS }, { signal }),
    isOver: (answer) => answer.setup?.state !== 'running' || answer.setup.mark === null,
    restMs: ({ setup: now }) => (now?.log ? REST_MS : AGAIN_MS),
  })
  return (
    <>
      <p role="status">
        {setup.command ? (
          <>
            The worktree is being set up: <code>{visible(setup.command)}</code>
          </>
        ) : (
          'Files are copied into the worktree.'
        )}{' '}
        <span className="muted">
          started <Time at={setup.started_at} />
        </span>
      </p>
      <Log name="Output of the setup" text={now?.setup?.log ?? ''} />
    </>
  )
}

function Failed({ setup: { reason, log } }: { setup: Setup }) {
  const [what = '', ...printed] = (reason ?? 'The setup failed.').split('\n')
  return (
    <>
      <p className="refused">{visible(what)}</p>
      <Log name="Output of the setup" text={log || printed.join('\n')} />
    </>
  )
}
