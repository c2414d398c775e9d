import './reviews.css'
import { MessageSquareQuote } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'

type Round = Output<'review_list'>['reviews'][number]

/** What was handed in, and what was said to it, as it came. */
export function Reviews({ task }: { task: TaskOnPage }) {
  const reviews = useTool('review_list', { task_id: task.id }, { follows: ['review', 'merge', 'task'], about: task.id })
  return (
    <Card title="Reviews">
      <Loaded read={reviews}>
        {({ reviews: rounds }) =>
          rounds.length ? (
            <ol className="rounds">
              {rounds.map((round) => (
                <RoundView key={round.id} round={round} />
              ))}
            </ol>
          ) : (
            <Empty icon={MessageSquareQuote} title="No review yet.">
              <p>When an agent hands in its work, it says here what it did.</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  )
}

function RoundView({ round }: { round: Round }) {
  const { decision, decided_by, decided_at, feedback } = round
  return (
    <>
      <Said tone="amber" word={`round ${round.round}`} by={round.requested_by} did="handed it in" at={round.requested_at}>
        <Markdown text={round.summary} />
        {round.reviewer_prompt && (
          <>
            <h3>For the reviewer</h3>
            <Markdown text={round.reviewer_prompt} />
          </>
        )}
      </Said>
      {decision !== null && decided_by !== null && decided_at !== null && (
        <Said {...DECIDED[decision]} by={decided_by} at={decided_at}>
          {feedback && <Markdown text={feedback} />}
        </Said>
      )}
      {decision === 'approve' && <Became {...round} />}
    </>
  )
}

const DECIDED: Record<NonNullable<Round['decision']>, { tone: Tone; word: string; did: string }> = {
  approve: { tone: 'green', word: 'approved', did: 'put it into the merge line' },
  request_changes: { tone: 'amber', word: 'sent back', did: 'wants something changed' },
  timed_out: { tone: 'amber', word: 'timed out', did: 'ended the wait' },
  abandoned: { tone: 'red', word: 'given up', did: 'gave it up' },
}

const BECAME: Record<NonNullable<Round['outcome']>, { tone: Tone; word: string; did: string }> = {
  merged: { tone: 'green', word: 'merged', did: 'It has landed' },
  conflict: { tone: 'red', word: 'conflict', did: 'It went back to its worker' },
  red: { tone: 'red', word: 'checks failed', did: 'It went back to its worker' },
  failed: { tone: 'amber', word: 'not merged', did: 'It is to be decided anew' },
}

/** Of an approval: nothing, as long as it is in the line. */
function Became({ outcome, merge_commit, reason }: Round) {
  if (outcome === null) return null
  const { tone, word, did } = BECAME[outcome]
  return (
    <li className="said">
      <p className="round-head">
        <Badge tone={tone}>{word}</Badge>
        <span className="muted">
          {did}
          {merge_commit && (
            <>
              {' '}
              as <code className="mono">{merge_commit.slice(0, 10)}</code>
            </>
          )}
        </span>
      </p>
      {reason && <p>{visible(reason)}</p>}
    </li>
  )
}

interface SaidProps {
  tone: Tone
  word: string
  by: string
  did: string
  at: string
  children: ReactNode
}

function Said({ tone, word, by, did, at, children }: SaidProps) {
  return (
    <li className="said">
      <p className="round-head">
        <Badge tone={tone}>{word}</Badge> <Who id={by} />
        <span className="muted">
          {did} <Time at={at} />
        </span>
      </p>
      {children}
    </li>
  )
}
