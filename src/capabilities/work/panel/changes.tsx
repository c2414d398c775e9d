import './changes.css'
import { ChevronRight, GitCompareArrows, RefreshCw } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useDraft } from '../../../ui/drafts.ts'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded, Skeleton } from '../../../ui/kit/states.tsx'
import { useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { type Change, type Diff, linesOf, partOf } from './patch.ts'
import { CommentedLines, PatchLines } from './patch-lines.tsx'
import { useDiff } from './use-diff.ts'

const LARGE_LINES = 300
const MANY_FILES = 15

const STATUS: Record<string, { word: string; tone: Tone }> = {
  A: { word: 'new', tone: 'green' },
  D: { word: 'deleted', tone: 'red' },
  R: { word: 'moved', tone: 'blue' },
  T: { word: 'other kind', tone: 'amber' },
}

/** What the task changed since it began, committed or not. */
export function Changes({ task }: { task: TaskOnPage }) {
  const [latest, setLatest] = useState(false)
  const diff = useDiff(task.id, { latest })
  const commented = useMayComment(task)
  return (
    <Card
      className="changes"
      title={diff.data?.files.length ? <Totals files={diff.data.files} /> : 'Changes'}
      actions={
        <Button kind="quiet" icon={RefreshCw} busy={diff.isFetching} onClick={() => void diff.refetch()}>
          Read again
        </Button>
      }
    >
      {diff.data?.moved_to && (
        <p className="refused">
          This is what was handed in. Its branch was moved since, to <span className="mono">{diff.data.moved_to.slice(0, 10)}</span>.{' '}
          <button type="button" className="as-link" onClick={() => setLatest(true)}>
            Show that
          </button>
        </p>
      )}
      {latest && task.status === 'REVIEW' && diff.data?.commit && (
        <p className="refused">
          This is <span className="mono">{diff.data.commit.slice(0, 10)}</span>, where its branch is now.{' '}
          <button type="button" className="as-link" onClick={() => setLatest(false)}>
            Show what was handed in
          </button>
        </p>
      )}
      {diff.error && !diff.data ? (
        <Empty icon={GitCompareArrows} title={diff.error.message}>
          {diff.error.body.hint && <p>{diff.error.body.hint}</p>}
        </Empty>
      ) : (
        <Loaded read={diff}>
          {(found) =>
            found.files.length ? (
              <ul className="files">
                {found.files.map((file) => (
                  <li key={file.path}>
                    <FileView task={task.id} diff={found} file={file} commented={commented} latest={latest} />
                  </li>
                ))}
              </ul>
            ) : (
              <Empty icon={GitCompareArrows} title="Nothing is changed yet." />
            )
          }
        </Loaded>
      )}
    </Card>
  )
}

/** As long as it can be sent back: what was approved is on its way. */
function useMayComment(task: TaskOnPage): boolean {
  const may = useMay()('review_decide') === true && task.status === 'REVIEW'
  const rounds = useTool('review_list', { task_id: task.id }, { follows: ['review', 'merge', 'task'], about: task.id, enabled: may }).data
  const last = rounds?.reviews.at(-1)
  return may && rounds !== undefined && !(last?.decision === 'approve' && last.outcome === null)
}

function Totals({ files }: { files: Change[] }) {
  const sum = (of: 'added' | 'removed') => files.reduce((total, file) => total + (file[of] ?? 0), 0)
  return (
    <span className="totals">
      {files.length === 1 ? 'One file' : `${files.length} files`} <Counts added={sum('added')} removed={sum('removed')} />
    </span>
  )
}

function Counts({ added, removed }: Pick<Change, 'added' | 'removed'>) {
  if (added === null || removed === null) return <span className="counts muted">not text</span>
  return (
    <span className="counts">
      <span className="count-added">
        +{added}
        <span className="visually-hidden"> lines</span>
      </span>{' '}
      <span className="count-removed">
        −{removed}
        <span className="visually-hidden"> lines</span>
      </span>
    </span>
  )
}

interface FileProps {
  task: string
  diff: Diff
  file: Change
  /** Whether somebody may say a word on each line. */
  commented: boolean
  latest: boolean
}

/** Open when it is small, and one of few, or has a comment; as somebody left it after that. */
function FileView({ file, ...of }: FileProps) {
  const { task, diff, commented } = of
  const written = useDraft(task).comments.some(({ path }) => path === file.path)
  const small = (file.added ?? 0) + (file.removed ?? 0) <= LARGE_LINES && diff.files.length <= MANY_FILES
  const [chosen, setChosen] = useState<boolean>()
  const open = chosen ?? (small || (commented && written))
  const status = STATUS[file.status[0] ?? '']
  return (
    <>
      <h3 className="file-head">
        <button type="button" aria-expanded={open} onClick={() => setChosen(!open)}>
          <ChevronRight aria-hidden />
          <span className="file-path">
            {file.from && <span className="muted">{visible(file.from)} → </span>}
            {visible(file.path)}
          </span>
          {status && <Badge tone={status.tone}>{status.word}</Badge>}
          <Counts {...file} />
        </button>
      </h3>
      {open && <Patch file={file} {...of} />}
    </>
  )
}

/** From what was read already; a file that is not in it, or only half, is read by itself. */
function Patch({ task, diff, file, commented, latest }: FileProps) {
  const known = useMemo(() => partOf(diff, file), [diff, file])
  const alone = useDiff(task, { path: file.path, latest, enabled: known === undefined })
  const part = known ?? alone.data?.patch
  const lines = useMemo(() => linesOf(part ?? ''), [part])
  if (part === undefined) return alone.error ? <p className="patch-note">{alone.error.message}</p> : <Skeleton lines={2} />
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrows
    <section className="patch" aria-label={`Changes of ${visible(file.path)}`} tabIndex={0}>
      {lines.length === 0 && <p className="patch-note">No line is changed.</p>}
      {commented ? <CommentedLines task={task} path={file.path} lines={lines} /> : <PatchLines lines={lines} />}
      {known === undefined && alone.data?.cut && <p className="patch-note">There is more: it is too long to be shown here.</p>}
    </section>
  )
}
