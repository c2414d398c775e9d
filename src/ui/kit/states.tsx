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
  refetch(): unknown
}

/** A read in its three states. What was read before stays on the screen while it is read again. */
export function Loaded<T>({ read, children }: { read: Read<T>; children(data: T): ReactNode }) {
  if (read.data !== undefined) return children(read.data)
  if (read.error) return <Failed error={read.error} again={() => void read.refetch()} />
  return <Skeleton />
}

/** What is not there will not be there the next time. */
const GONE: ErrorBody['code'][] = ['RESOURCE_NOT_FOUND', 'TASK_DELETED', 'AGENT_NOT_FOUND']

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
