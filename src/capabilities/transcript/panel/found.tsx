import { SearchX } from 'lucide-react'
import { useEffect, useState } from 'react'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useTool } from '../../../ui/live.tsx'
import { type Entry, keyOf } from './rows.ts'

const MOST = 100
const TYPED_MS = 200
const AROUND = 120

/** Entries with the words in them, newest first. */
export function Found({ task, words }: { task: string; words: string }) {
  const settled = useSettled(words)
  const found = useTool('transcript_search', { task_id: task, words: settled, limit: MOST }, { follows: [] })
  return (
    <Loaded read={found}>
      {({ entries, next }) =>
        entries.length ? (
          <>
            <p className="found-count muted" role="status">
              {next ? `The newest ${MOST}` : entries.length === 1 ? 'One entry' : `${entries.length} entries`}
            </p>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrows */}
            <section className="found" aria-label="Found" tabIndex={0}>
              {entries.map((entry) => (
                <Hit key={keyOf(entry)} entry={entry} words={settled} />
              ))}
            </section>
          </>
        ) : (
          <Empty icon={SearchX} title="No entry has these words." />
        )
      }
    </Loaded>
  )
}

function Hit({ entry, words }: { entry: Entry; words: string }) {
  const at = Math.max(0, entry.body.toLowerCase().indexOf(words.toLowerCase()))
  const from = Math.max(0, at - AROUND)
  const to = at + words.length
  return (
    <article className="hit">
      <p className="hit-head muted">
        {entry.name ? visible(entry.name) : entry.kind.replace('_', ' ')}, turn {entry.turn}, <Time at={entry.at} />
      </p>
      <p className="entry-text" dir="ltr">
        {from > 0 && '… '}
        {visible(entry.body.slice(from, at))}
        <mark>{visible(entry.body.slice(at, to))}</mark>
        {visible(entry.body.slice(to, to + AROUND))}
        {to + AROUND < entry.body.length && ' …'}
      </p>
    </article>
  )
}

/** What was typed, when the typing rests: not every letter is worth a search. */
function useSettled(words: string): string {
  const [settled, setSettled] = useState(words)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(words), TYPED_MS)
    return () => clearTimeout(timer)
  }, [words])
  return settled
}
