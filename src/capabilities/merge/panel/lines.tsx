import './merges.css'
import { CirclePause, GitMerge, Play, RefreshCw } from 'lucide-react'
import { Button } from '../../../ui/kit/button.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import { MergeEntry } from './merge-entry.tsx'
import { type Line, type Merge, mostPressingFirst, short } from './words.ts'

const FEW = 5
const REST_MS = 1_000
/** Whether a merge may be tried again changes with its task and what is handed in. */
const FOLLOWS = ['merge', 'line', 'repo', 'review', 'task']

/** Every line: what is checked, what waits, and what came of the last ones. */
export function Lines() {
  const status = useTool('merge_status', {}, { follows: FOLLOWS, rests: REST_MS })
  return (
    <Page title="Merge line" subtitle="Approved work lands one after the other, when the checks pass on the merged tree.">
      <Loaded read={status}>
        {({ lines }) =>
          lines.length ? (
            mostPressingFirst(lines).map((line) => <LineCard key={`${line.repo_id} ${line.target}`} line={line} />)
          ) : (
            <Empty icon={GitMerge} title="Nothing was merged yet.">
              <p>Approved work appears here.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

function LineCard({ line }: { line: Line }) {
  const { repo, target, head, waiting, ended } = line
  return (
    <Card
      className="line-card"
      title={
        <>
          {visible(repo)} <span className="mono">{visible(target)}</span>
        </>
      }
      actions={
        head && (
          <span className="muted">
            at <code className="mono">{short(head)}</code>
          </span>
        )
      }
    >
      {line.held !== null && <Held line={line} />}
      {line.behind > 0 && <Behind line={line} />}
      {waiting.length > 0 ? (
        <ol className="merges" aria-label={`In the line of ${visible(target)}`}>
          {waiting.map((merge) => (
            <MergeEntry key={merge.id} merge={merge} />
          ))}
        </ol>
      ) : (
        <p className="merges-none muted">Nothing waits.</p>
      )}
      {ended.length > 0 && <Ended ended={ended} />}
    </Card>
  )
}

/** The last ones; more of them when somebody asks. */
function Ended({ ended }: Pick<Line, 'ended'>) {
  const entry = (merge: Merge) => <MergeEntry key={merge.id} merge={merge} />
  const older = ended.slice(FEW)
  return (
    <>
      <h3 className="merges-title">What came of the last ones</h3>
      <ul className="merges">{ended.slice(0, FEW).map(entry)}</ul>
      {older.length > 0 && (
        <details className="merges-older">
          <summary>{older.length} before these</summary>
          <ul className="merges">{older.map(entry)}</ul>
        </details>
      )}
    </>
  )
}

function Held({ line: { repo_id, repo, target, held } }: { line: Line }) {
  const may = useMay()
  const retry = useAction('merge_retry')
  return (
    <div className="line-word tone-red">
      <p>
        <CirclePause aria-hidden /> <strong>Nothing lands on {visible(target)}.</strong> {visible(held ?? '')}
      </p>
      {may('merge_retry') && (
        <Button
          icon={Play}
          busy={retry.isPending}
          aria-label={`Let it go on: ${visible(repo)} ${visible(target)}`}
          onClick={() => retry.mutate({ repo_id, target })}
        >
          Let it go on
        </Button>
      )}
    </div>
  )
}

/** The branch has not got all that landed. */
export function Behind({ line: { repo_id, repo, target, behind, behind_reason } }: { line: Line }) {
  const may = useMay()
  const sync = useAction('repo_sync', { said: ({ message }) => visible(message) })
  return (
    <div className="line-word tone-amber">
      <p>
        <strong>
          {visible(target)} is {behind} behind.
        </strong>{' '}
        {behind_reason && visible(behind_reason)}
      </p>
      {may('repo_sync') && (
        <Button
          icon={RefreshCw}
          busy={sync.isPending}
          aria-label={`Bring it up to date: ${visible(repo)} ${visible(target)}`}
          onClick={() => sync.mutate({ repo_id })}
        >
          Bring it up to date
        </Button>
      )}
    </div>
  )
}
