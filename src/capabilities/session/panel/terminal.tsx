import './terminal.css'
import { X } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { CopyLine } from '../../../ui/kit/copy.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { OpenForm } from './open-form.tsx'
import { TypeBox } from './type-box.tsx'
import { useScreen } from './use-screen.ts'
import { PROMPTS } from './words.ts'

type Found = Output<'session_exists'>
type Session = NonNullable<Found['session']>

/** The terminal of a PAIR task: how to attach to it, what it shows, and a way to type into it. */
export function TerminalSection({ task }: { task: TaskOnPage }) {
  const found = useTool('session_exists', { task_id: task.id }, { follows: ['session'], about: task.id })
  if (task.task_type !== 'PAIR' || (task.status === 'DONE' && !found.data?.session)) return null
  return <Loaded read={found}>{(now) => <Terminal task={task} {...now} />}</Loaded>
}

function Terminal({ task, session, programs }: Found & { task: TaskOnPage }) {
  const may = useMay()
  const living = session?.state === 'open' || session?.state === 'opening'
  return (
    <Card className="terminal" title="Terminal" actions={living && may('session_close') && <Close task={task} />}>
      <div className="card-body terminal-body">
        {session && <Standing session={session} />}
        {session?.state === 'open' && session.attach && <CopyLine label="the command that attaches" text={session.attach} />}
        {session && may('session_read') && <Shown task={task} session={session} />}
        {session?.state === 'open' && may('session_type') && <TypeBox task={task.id} />}
        {!living && task.status !== 'DONE' && may('session_open') && <OpenForm task={task} programs={programs} />}
        {!session && !may('session_open') && <p className="muted">No terminal was opened on this task yet.</p>}
      </div>
    </Card>
  )
}

const STATES: Record<Session['state'], { tone: string; says: string }> = {
  opening: { tone: 'blue', says: 'Opening' },
  open: { tone: 'green', says: 'Open' },
  closed: { tone: 'neutral', says: 'Closed' },
  lost: { tone: 'red', says: 'Lost' },
}

function Standing({ session }: { session: Session }) {
  const { state, program, reason, prompt, prompt_detail } = session
  const told = PROMPTS[prompt]
  return (
    <>
      <p className="terminal-line">
        <span className={`light tone-${STATES[state].tone}`} aria-hidden />
        <strong role="status">{STATES[state].says}</strong>
        <span className="muted">
          {program}, opened <Time at={session.opened_at} />
        </span>
      </p>
      {reason && <p className="muted">{visible(reason)}</p>}
      {state === 'open' && told?.says && (
        <p className={`terminal-prompt tone-${told.tone}`}>
          {prompt_detail && `${visible(prompt_detail)} `}
          {told.says}
        </p>
      )}
    </>
  )
}

function Shown({ task, session }: { task: TaskOnPage; session: Session }) {
  // Another key when it ends: what it showed last is asked for once more.
  const screen = useScreen(task.id, `${session.id} ${session.state}`)
  if (!screen?.screen) return null
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what is wider or longer than its place is scrolled by keys
    <section className="terminal-screen" aria-label="Terminal screen" tabIndex={0}>
      <pre>{visible(screen.screen)}</pre>
    </section>
  )
}

function Close({ task }: { task: TaskOnPage }) {
  const [asking, setAsking] = useState(false)
  const end = () => setAsking(false)
  const close = useAction('session_close', { onSuccess: end, onError: end })
  return (
    <>
      <Button kind="danger" icon={X} onClick={() => setAsking(true)}>
        Close
      </Button>
      <Confirm
        open={asking}
        onClose={end}
        title={`Close the terminal of ${task.handle}?`}
        description="It ends with everything that was started in it. The worktree and what is in it stay."
        action="Close"
        busy={close.isPending}
        onConfirm={() => close.mutate({ task_id: task.id })}
      />
    </>
  )
}
