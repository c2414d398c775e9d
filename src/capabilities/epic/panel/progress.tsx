import { type Epic, progressInWords, STATUSES } from './words.ts'

/** How many of its tasks are where: as a bar, and in words for everybody. */
export function Progress({ progress }: { progress: Epic['progress'] }) {
  return (
    <span className="epic-progress">
      <span className="epic-bar" aria-hidden>
        {STATUSES.map(
          ({ status }) => progress[status] > 0 && <span key={status} className={`epic-${status}`} style={{ flexGrow: progress[status] }} />,
        )}
      </span>
      <span className="muted">{progressInWords(progress)}</span>
    </span>
  )
}
