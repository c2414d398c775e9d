import './preview.css'
import { ExternalLink, Play, Square } from 'lucide-react'
import { call, type Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { Log } from '../../../ui/kit/log.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { useFollowed } from '../../../ui/kit/use-followed.ts'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'

type Found = Output<'preview_get'>
type Preview = NonNullable<Found['preview']>

/** Below what a page waits for any answer. */
const WAIT_SECONDS = 12
const REST_MS = 500
/** Before it prints anything nothing can be waited for. */
const AGAIN_MS = 2_000

/** The program of the repository, started in the worktree of the task: its link, and a way to start and stop it. */
export function PreviewSection({ task }: { task: TaskOnPage }) {
  const { data } = useTool('preview_get', { task_id: task.id }, { follows: ['preview', 'work', 'repo'], about: task.id })
  if (!data || (!isLiving(data.preview) && (data.dev === null || !data.worktree || task.status === 'DONE'))) return null
  return (
    <Card title="Preview" actions={isLiving(data.preview) ? <Stop task={task} /> : <Start task={task} />}>
      <div className="card-body log-section">
        {data.preview && <Standing preview={data.preview} />}
        {!data.preview && (
          <p className="muted">
            Starts the program in this worktree: <code>{visible(data.dev ?? '')}</code>
          </p>
        )}
        {data.preview && <Printed key={`${data.preview.id} ${data.preview.state}`} task={task} preview={data.preview} />}
      </div>
    </Card>
  )
}

function isLiving(preview: Preview | null): boolean {
  return preview?.state === 'starting' || preview?.state === 'ready'
}

const STATES: Record<Preview['state'], { tone: string; says: string }> = {
  starting: { tone: 'blue', says: 'Starting' },
  ready: { tone: 'green', says: 'Ready' },
  ended: { tone: 'neutral', says: 'Ended' },
  failed: { tone: 'red', says: 'Failed' },
}

function Standing({ preview: { state, url, command, reason, started_at } }: { preview: Preview }) {
  const [why] = (reason ?? '').split('\n')
  return (
    <>
      <p className="preview-line">
        <span className={`light tone-${STATES[state].tone}`} aria-hidden />
        <strong role="status">{STATES[state].says}</strong>
        {url && (
          <a href={url} target="_blank" rel="noreferrer">
            {url} <ExternalLink aria-hidden />
          </a>
        )}
        <span className="muted">
          <code>{visible(command)}</code>, started <Time at={started_at} />
        </span>
      </p>
      {why && <p className={state === 'failed' ? 'refused' : 'muted'}>{visible(why)}</p>}
    </>
  )
}

function Printed({ task, preview }: { task: TaskOnPage; preview: Preview }) {
  const now = useFollowed<Found>(`${preview.id} ${preview.state}`, {
    ask: (last, signal) =>
      call('preview_get', { task_id: task.id, after: last?.mark ?? undefined, wait_seconds: WAIT_SECONDS }, { signal }),
    isOver: ({ preview: now }) => !isLiving(now),
    restMs: ({ log }) => (log ? REST_MS : AGAIN_MS),
  })
  return <Log name="Output of the preview" text={now?.log ?? ''} />
}

function Start({ task }: { task: TaskOnPage }) {
  const may = useMay()
  // What went wrong with it stands in the card.
  const start = useAction('preview_start', { quiet: true })
  if (!may('preview_start')) return null
  return (
    <Button icon={Play} busy={start.isPending} onClick={() => start.mutate({ task_id: task.id })}>
      Start preview
    </Button>
  )
}

function Stop({ task }: { task: TaskOnPage }) {
  const may = useMay()
  const stop = useAction('preview_stop')
  if (!may('preview_stop')) return null
  return (
    <Button icon={Square} busy={stop.isPending} onClick={() => stop.mutate({ task_id: task.id })}>
      Stop
    </Button>
  )
}
