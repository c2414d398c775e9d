import './mail.css'
import { Link } from '@tanstack/react-router'
import { MailCheck, PenLine } from 'lucide-react'
import { useState } from 'react'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Page } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Toggle } from '../../../ui/kit/toggle.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useMay, useTool } from '../../../ui/live.tsx'
import { ImportanceBadge, type Letter } from './words.tsx'
import { WriteLetter } from './write-letter.tsx'

const PAGE = 50
const SNIPPET = 200

/** Letters to whoever looks, and to the human. */
export function Inbox() {
  const [all, setAll] = useState(false)
  const [writes, setWrites] = useState(false)
  const [limit, setLimit] = useState(PAGE)
  const inbox = useTool('mail_inbox', { include_read: all, limit })
  const may = useMay()
  return (
    <Page
      title="Mail"
      subtitle="What agents, other people and Signalbox write to you."
      actions={
        <>
          <Toggle on={all} onChange={setAll} word="what was read" />
          {may('mail_send') && (
            <Button kind="primary" icon={PenLine} onClick={() => setWrites(true)}>
              Write a letter
            </Button>
          )}
        </>
      }
    >
      <Loaded read={inbox}>
        {({ letters, next }) =>
          letters.length ? (
            <>
              <ul className="card letters" aria-label="Letters">
                {letters.map((letter) => (
                  <Row key={letter.id} letter={letter} />
                ))}
              </ul>
              {next !== null && limit < MOST && <Button onClick={() => setLimit(Math.min(limit * 2, MOST))}>Show older letters</Button>}
              {next !== null && limit >= MOST && <p className="muted">Read these; older ones follow.</p>}
            </>
          ) : (
            <Empty icon={MailCheck} title={all ? 'Nobody has written to you.' : 'You have read everything.'}>
              <p>Agents write here when they need an answer, or when something went wrong that only a person can mend.</p>
            </Empty>
          )
        }
      </Loaded>
      <WriteLetter open={writes} onClose={() => setWrites(false)} />
    </Page>
  )
}

const MOST = 200

function Row({ letter }: { letter: Letter }) {
  const { thread_id, subject, body, sent_at, read_at, acked_at, needs_ack } = letter
  return (
    <li className={read_at === null ? 'letter-row unread' : 'letter-row'}>
      <Link to="/mail/$thread" params={{ thread: thread_id }}>
        <span className="letter-from">
          {read_at === null && <span className="letter-dot" role="img" aria-label="Unread" />}
          <Who id={letter.from_id} />
        </span>
        <span className="letter-text">
          <strong>{visible(subject)}</strong> <span className="muted">{visible(body.slice(0, SNIPPET))}</span>
        </span>
        <span className="letter-marks">
          <ImportanceBadge importance={letter.importance} />
          {needs_ack && acked_at === null && <Badge tone="blue">to acknowledge</Badge>}
          <span className="muted">
            <Time at={sent_at} />
          </span>
        </span>
      </Link>
    </li>
  )
}

/** Beside the name of the page, wherever somebody is. */
export function UnreadCount() {
  const count = useTool('mail_inbox', { limit: 1 }).data?.unread_count ?? 0
  if (!count) return null
  return (
    <span className="side-count">
      {count < 100 ? count : '99+'}
      <span className="visually-hidden"> unread</span>
    </span>
  )
}
