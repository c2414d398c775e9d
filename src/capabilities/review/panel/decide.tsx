import './decide.css'
import { Ban, Check, GitCompareArrows, GitPullRequest, GitPullRequestArrow, Undo2, X } from 'lucide-react'
import { useState } from 'react'
import { CallError, type Output } from '../../../ui/client.ts'
import { drafts, type LineComment, seek, uncomment, useDraft } from '../../../ui/drafts.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button, IconButton } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { Refused, TextArea } from '../../../ui/kit/field.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { feedbackOf, inOrder, placeOf } from './feedback.ts'

const LONGEST_TITLE = 200

interface Props {
  task: TaskOnPage
  openTab(tab: string): void
}

type Round = Output<'review_list'>['reviews'][number]

/** Work that was handed in: what there is to decide. */
export function Review({ task, openTab }: Props) {
  const read = useTool('review_list', { task_id: task.id }, { follows: ['review', 'merge', 'task', 'setting'], about: task.id }).data
  if (!read) return null
  const last = read.reviews.at(-1)
  return (
    <>
      {task.status === 'REVIEW' && !isMerging(last) && <Decide task={task} round={isOpen(last) ? last : undefined} openTab={openTab} />}
      {task.status === 'IN_PROGRESS' && read.limit && last && <Limit task={task} limit={read.limit} last={last} openTab={openTab} />}
    </>
  )
}

const isMerging = (round: Round | undefined) => round?.decision === 'approve' && round.outcome === null

type LimitOf = NonNullable<Output<'review_list'>['limit']>

/** Rounds that led nowhere: what its worker is told when it asks for another, each as something that can be done about it. */
function Limit({ task, limit, last, openTab }: Props & { limit: LimitOf; last: Round }) {
  const may = useMay()
  const create = useAction('pr_create', { quiet: true, said: ({ message }) => `${task.handle}: ${message}` })
  const { current_iteration, max_iterations, refused } = limit
  const wanted = { task_id: task.id, title: `${task.handle} ${task.title}`.slice(0, LONGEST_TITLE), description: last.summary }
  const asked = refused === 1 ? 'Another one was asked for and refused.' : `${refused} more were asked for and refused.`
  return (
    <Card
      className="decide"
      title={
        <>
          Reviews are used up{' '}
          <Badge tone="red">
            {current_iteration} of {max_iterations}
          </Badge>
        </>
      }
    >
      <div className="card-body form">
        <p>
          Maximum review iterations ({max_iterations}) reached. {refused > 0 && asked}
        </p>
        <Refused error={create.error} />
        <div className="decide-answers">
          {may('pr_create') && (
            <Button icon={GitPullRequest} busy={create.isPending} onClick={() => create.mutate(wanted)}>
              Create pull request
            </Button>
          )}
          {may('review_abandon') && <GiveUp task={task} disabled={create.isPending} />}
          <Button icon={GitCompareArrows} onClick={() => openTab('Changes')}>
            Look at the changes
          </Button>
          <span className="muted">A pull request of what there is now waits for you to decide. Its worktree is yours to mend it in.</span>
        </div>
      </div>
    </Card>
  )
}

/** What was only moved to Review has no round of its own. */
const isOpen = (round: Round | undefined) =>
  round !== undefined && (round.decision === null || round.decision === 'timed_out' || round.outcome === 'failed')

function Decide({ task, round, openTab }: Props & { round: Round | undefined }) {
  const may = useMay()
  return (
    <Card
      className="decide"
      title={<>To review {round && <Badge tone="amber">round {round.round}</Badge>}</>}
      actions={
        <Button icon={GitCompareArrows} onClick={() => openTab('Changes')}>
          Look at the changes
        </Button>
      }
    >
      <div className="card-body form">
        {round ? <HandedIn round={round} /> : <p className="muted">It was moved to Review without a summary.</p>}
        {may('review_decide') && <Answer task={task} round={round} openTab={openTab} />}
      </div>
    </Card>
  )
}

function HandedIn({ round: { summary, reviewer_prompt, requested_by, requested_at } }: { round: Round }) {
  return (
    <>
      <p className="decide-head">
        <Who id={requested_by} />
        <span className="muted">
          handed it in <Time at={requested_at} />
        </span>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrows */}
      <section className="decide-summary" aria-label="Summary" tabIndex={0}>
        <Markdown text={summary} />
        {reviewer_prompt && (
          <>
            <h3>For the reviewer</h3>
            <Markdown text={reviewer_prompt} />
          </>
        )}
      </section>
    </>
  )
}

/** The one way in which feedback leaves the page. What was written stays until the daemon has it. */
function useSendBack(task: TaskOnPage) {
  const send = useAction('review_feedback', {
    quiet: true,
    said: ({ message }) => `${task.handle}: ${message}`,
    onSuccess: () => drafts.drop(task.id),
  })
  return {
    send: (feedback: string) => send.mutate({ task_id: task.id, feedback, feedback_type: 'needs_work' }),
    busy: send.isPending,
    error: send.error,
  }
}

/** The way out when rounds lead nowhere. */
function GiveUp({ task, disabled }: { task: TaskOnPage; disabled: boolean }) {
  const [asking, setAsking] = useState(false)
  const giveUp = useAction('review_abandon', { said: () => `${task.handle} was given up.`, onSuccess: () => setAsking(false) })
  return (
    <>
      <Button icon={Ban} disabled={disabled} onClick={() => setAsking(true)}>
        Give up
      </Button>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={`Give up the work on ${task.handle}?`}
        description="Whoever is at work on it is ended, and its worktree is taken away. Its branch stays, and what was not committed is saved. The task goes back to the backlog."
        action="Give it up"
        busy={giveUp.isPending}
        onConfirm={() => giveUp.mutate({ task_id: task.id, reason: 'Given up on the dashboard.' })}
      />
    </>
  )
}

function Answer({ task, round, openTab }: Props & { round: Round | undefined }) {
  const draft = useDraft(task.id)
  const feedback = feedbackOf(draft)
  const back = useSendBack(task)
  const approve = useAction('merge_submit', { quiet: true })
  const rebase = useAction('review_rebase', { quiet: true, said: rebaseSaid(task) })
  const busy = back.busy || approve.isPending || rebase.isPending
  const written = feedback !== ''
  // Refused because of commits that came later: whoever has looked at them approves that very one.
  const later = approve.error instanceof CallError ? (approve.error.body.details?.commit as string | undefined) : undefined
  const may = useMay()
  return (
    <>
      <Comments task={task} openTab={openTab} />
      <TextArea
        label="Feedback"
        rows={2}
        placeholder="What is to be changed, when it is sent back"
        value={draft.text}
        onChange={(event) => drafts.change(task.id, () => ({ text: event.target.value }))}
      />
      <Refused error={back.error ?? approve.error ?? rebase.error} />
      <div className="decide-answers">
        <Button
          kind={written ? 'plain' : 'primary'}
          icon={Check}
          busy={approve.isPending}
          disabled={busy}
          onClick={() => approve.mutate({ task_id: task.id, commit: round?.handed_in ?? undefined })}
        >
          Approve
        </Button>
        <Button
          kind={written ? 'primary' : 'plain'}
          icon={Undo2}
          busy={back.busy}
          disabled={busy || !written}
          onClick={() => back.send(feedback)}
        >
          Send back
        </Button>
        {later && (
          <Button icon={Check} disabled={busy} onClick={() => approve.mutate({ task_id: task.id, commit: later })}>
            Approve {later.slice(0, 10)}
          </Button>
        )}
        {may('review_rebase') && (
          <Button
            icon={GitPullRequestArrow}
            busy={rebase.isPending}
            disabled={busy}
            onClick={() => rebase.mutate({ task_id: task.id })}
            title="Put it on top of what has landed since"
          >
            Rebase
          </Button>
        )}
        {may('review_abandon') && <GiveUp task={task} disabled={busy} />}
        <span className="muted">
          {written
            ? 'Sent back, its worker gets what you wrote. An approval sends none of it.'
            : 'Approving puts it into the merge line; it is done when it has landed.'}
        </span>
      </div>
    </>
  )
}

const rebaseSaid =
  ({ handle }: TaskOnPage) =>
  ({ message, conflicts }: Output<'review_rebase'>) =>
    [`${handle}: ${message}`, ...(conflicts.length ? [`In conflict: ${visible(conflicts.join(', '))}.`] : [])].join(' ')

/** Those on lines, as they will be sent. */
function Comments({ task, openTab }: Props) {
  const comments = inOrder(useDraft(task.id).comments)
  const goTo = (comment: LineComment) => {
    seek(comment)
    openTab('Changes')
  }
  if (!comments.length) return null
  return (
    <section aria-label="Your comments">
      <h3 className="decide-title">{comments.length === 1 ? 'One comment' : `${comments.length} comments`}, not sent yet</h3>
      <ul className="decide-comments">
        {comments.map((comment) => (
          <li key={JSON.stringify([comment.path, comment.side, comment.line, comment.quoted])}>
            <p>
              <button type="button" className="as-link mono" onClick={() => goTo(comment)}>
                {placeOf(comment)}
              </button>{' '}
              {comment.body.trim() ? visible(comment.body) : <span className="muted">nothing written yet</span>}
            </p>
            <IconButton icon={X} name={`Remove the comment on ${placeOf(comment)}`} onClick={() => uncomment(task.id, comment)} />
          </li>
        ))}
      </ul>
    </section>
  )
}
