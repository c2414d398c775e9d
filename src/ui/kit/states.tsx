import { Link } from '@tanstack/react-router'
import { CircleAlert, type LucideIcon, RefreshCw } from 'lucide-react'
import type { ReactNode } from 'react'
import type { ErrorBody } from '../../kernel/error.ts'
import type { CallError } from '../client.ts'
import { Button } from './button.tsx'

/** Nothing there yet: says what would be, and offers to make it. */
export function Empty({ icon: Icon, title, children }: { icon: LucideIcon; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon aria-hidden />
      <h2>{title}</h2>
      {children}
    </div>
  )
}

interface Read<T> {
  data: T | undefined
  error: CallError | null
  isPending: boolean
  failureCount: number
  failureReason: CallError | null
  refetch(): unknown
}

/** What is not there will not be there the next time. */
const GONE: ErrorBody['code'][] = ['RESOURCE_NOT_FOUND', 'TASK_DELETED', 'AGENT_NOT_FOUND']

/** So many tries without an answer are worth a word; fewer are a daemon that is being restarted. */
const WORTH_A_WORD = 3

/** A read in its three states. What was read before stays on the screen while it is read again, and says so when that fails. */
export function Loaded<T>({ read, children }: { read: Read<T>; children(data: T): ReactNode }) {
  const again = () => void read.refetch()
  const late = read.error ?? (read.failureCount >= WORTH_A_WORD ? read.failureReason : null)
  if (read.data !== undefined && !(late && GONE.includes(late.body.code)))
    return (
      <>
        {late && <OutOfDate error={late} again={again} />}
        {children(read.data)}
      </>
    )
  if (read.error) return <Failed error={read.error} again={again} />
  return <Skeleton />
}

function OutOfDate({ error, again }: { error: CallError; again(): void }) {
  return (
    <div className="out-of-date" role="status">
      <CircleAlert aria-hidden />
      <span>Out of date: {error.message}</span>
      <Button kind="quiet" icon={RefreshCw} onClick={again}>
        Try again
      </Button>
    </div>
  )
}

export function Failed({ error, again }: { error: CallError; again(): void }) {
  return (
    <div className="empty" role="alert">
      <CircleAlert aria-hidden />
      <h2>{error.message}</h2>
      {GONE.includes(error.body.code) ? (
        <Link to="/" className="button">
          Go to the board
        </Link>
      ) : (
        <>
          {error.body.hint && <p>{error.body.hint}</p>}
          <Button icon={RefreshCw} onClick={again}>
            Try again
          </Button>
        </>
      )}
    </div>
  )
}

export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div className="skeleton" aria-label="Loading" role="status">
      {Array.from({ length: lines }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <div key={i} />
      ))}
    </div>
  )
}
