import './mail.css'
import { Link, useParams } from '@tanstack/react-router'
import { ArrowLeft, CheckCheck, Send } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Refused, TextArea } from '../../../ui/kit/field.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Failed, Skeleton } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import { ImportanceBadge, type Letter } from './words.tsx'

/** An exchange, oldest first, with a place for the answer at its end. What is shown counts as read. */
export function Thread() {
  const { thread } = useParams({ strict: false }) as { thread: string }
  const read = useTool('mail_thread', { thread_id: thread, limit: 200 })
  const me = useTool('agent_me', {}).data?.id
  const letters = read.data?.letters ?? []
  const isMine = ({ to_id }: Letter) => to_id === me || to_id === 'human'
  useReading(me === undefined ? [] : letters.filter((letter) => isMine(letter) && letter.read_at === null))
  if (read.error && !read.data) return <Failed error={read.error} again={() => void read.refetch()} />
  if (!read.data) return <Skeleton />
  const about = letters[0]?.subject ?? 'Letters'
  const answered = letters.findLast((letter) => isMine(letter) && letter.from_id !== 'system')
  return (
    <Page
      title={visible(about)}
      actions={
        <Link to="/mail" className="button">
          <ArrowLeft aria-hidden /> Mail
        </Link>
      }
    >
      {letters.map((letter) => (
        <OneLetter key={letter.id} letter={letter} mine={isMine(letter)} about={about} />
      ))}
      {answered && <Answer key={answered.id} letter={answered} />}
    </Page>
  )
}

/** Each once: what could not be marked is still unread, and shown so in the list. */
function useReading(unread: Letter[]): void {
  const asked = useRef(new Set<string>())
  const { mutate } = useAction('mail_read', { quiet: true })
  useEffect(() => {
    for (const { id } of unread) {
      if (asked.current.has(id)) continue
      asked.current.add(id)
      mutate({ mail_id: id })
    }
  })
}

function OneLetter({ letter, mine, about }: { letter: Letter; mine: boolean; about: string }) {
  const { id, from_id, to_id, subject, body, sent_at, task_id } = letter
  const isOther = subject !== about && subject !== `Re: ${about}`
  return (
    <Card
      className={mine ? 'letter' : 'letter letter-sent'}
      title={<Who id={from_id} />}
      actions={
        <>
          <ImportanceBadge importance={letter.importance} />
          <span className="muted letter-when">
            <Time at={sent_at} />
          </span>
        </>
      }
    >
      <div className="card-body letter-body">
        <p className="muted letter-facts">
          <span>to {to_id === 'human' ? 'the human' : <Who id={to_id} />}</span>
          {task_id !== null && (
            <Link to="/task/$task" params={{ task: task_id }}>
              its task
            </Link>
          )}
          {isOther && <span>{visible(subject)}</span>}
        </p>
        <Markdown text={body} />
        <Standing key={id} letter={letter} mine={mine} />
      </div>
    </Card>
  )
}

/** What its receiver has done with it. */
function Standing({ letter: { id, acked_at, acked_by, read_at, needs_ack }, mine }: { letter: Letter; mine: boolean }) {
  const may = useMay()
  const ack = useAction('mail_ack')
  if (acked_at !== null)
    return (
      <p>
        <Badge tone="green" icon={CheckCheck}>
          acknowledged
        </Badge>{' '}
        <span className="muted">
          by <Who id={acked_by ?? ''} /> <Time at={acked_at} />
        </span>
      </p>
    )
  if (mine)
    return needs_ack && may('mail_ack') ? (
      <p>
        <Button icon={CheckCheck} busy={ack.isPending} onClick={() => ack.mutate({ mail_id: id })}>
          Acknowledge
        </Button>
      </p>
    ) : null
  return <p className="muted">{read_at === null ? 'Not read yet' : 'Read'}</p>
}

function Answer({ letter: { id, from } }: { letter: Letter }) {
  const [body, setBody] = useState('')
  const may = useMay()
  const reply = useAction('mail_reply', { quiet: true, onSuccess: () => setBody('') })
  if (!may('mail_reply')) return null
  return (
    <form
      className="card card-body form"
      onSubmit={(event) => {
        event.preventDefault()
        if (body.trim()) reply.mutate({ mail_id: id, body })
      }}
    >
      <TextArea label="Your answer" rows={4} maxLength={20_000} value={body} onChange={(event) => setBody(event.target.value)} />
      <Refused error={reply.error} />
      <div className="actions">
        <Button kind="primary" type="submit" icon={Send} busy={reply.isPending} disabled={!body.trim()}>
          Answer {from}
        </Button>
      </div>
    </form>
  )
}
