import { MessageSquarePlus, X } from 'lucide-react'
import { type KeyboardEvent, memo, useCallback, useEffect, useId, useMemo, useRef, useState } from 'react'
import { comment, isSame, type LineComment, uncomment, useDraft, useSought } from '../../../ui/drafts.ts'
import { IconButton } from '../../../ui/kit/button.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import type { Line } from './patch.ts'

type Place = Omit<LineComment, 'body'>

/** Lines of a file, to be read. */
export function PatchLines({ lines }: { lines: Line[] }) {
  return lines.map((line) => (
    <div key={line.key} className={`line line-${line.is}`}>
      <LineParts line={line} />
    </div>
  ))
}

/** The same, with a place for a word on each. One of them is reached with the tabulator, the others from it with the arrows. */
export function CommentedLines({ task, path, lines }: { task: string; path: string; lines: Line[] }) {
  const own = useOwnComments(task, path)
  const [chosen, setChosen] = useState<number>()
  const reached = chosen ?? lines.find((line) => placeOn(path, line))?.key
  return useMemo(
    () =>
      lines.map((line) => {
        const place = placeOn(path, line)
        const written = place && own.find((one) => isSame(one, place))
        const props = { task, path, line, written, reached: line.key === reached, onReach: setChosen }
        return <CommentedLine key={line.key} {...props} />
      }),
    [task, path, lines, own, reached],
  )
}

/** The same list as long as nothing is written in this file: a long one is not drawn with every letter in another. */
function useOwnComments(task: string, path: string): LineComment[] {
  const text = JSON.stringify(useDraft(task).comments.filter((one) => one.path === path))
  return useMemo(() => JSON.parse(text) as LineComment[], [text])
}

/** Of a line that a file has; not of what git says about it. */
function placeOn(path: string, { is, text, before, after }: Line): Place | undefined {
  const quoted = text
  if (is === 'removed' && before !== undefined) return { path, side: 'before', line: before, quoted }
  if ((is === 'added' || is === 'same') && after !== undefined) return { path, side: 'after', line: after, quoted }
  return undefined
}

interface LineProps {
  task: string
  path: string
  line: Line
  written: LineComment | undefined
  reached: boolean
  onReach(key: number): void
}

/** Drawn again when its own comment changes, not with every letter that is written on another. */
const CommentedLine = memo(function CommentedLine({ task, path, line, written, reached, onReach }: LineProps) {
  const place = placeOn(path, line)
  const button = useRef<HTMLButtonElement>(null)
  const [asked, setAsked] = useState(false)
  const remove = useCallback(() => {
    const at = placeOn(path, line)
    if (at) uncomment(task, at)
    setAsked(false)
    button.current?.focus()
  }, [task, path, line])
  if (!place)
    return (
      <div className={`line line-${line.is}`}>
        <LineParts line={line} />
      </div>
    )
  const begin = () => {
    setAsked(true)
    if (!written) comment(task, place, '')
  }
  return (
    <>
      <div className={`line line-${line.is}`}>
        <button
          ref={button}
          type="button"
          className="line-comment"
          tabIndex={reached ? 0 : -1}
          aria-label={`Comment on ${wordFor(place)}`}
          onClick={begin}
          onFocus={() => onReach(line.key)}
          onKeyDown={toNeighbour}
        >
          <MessageSquarePlus aria-hidden />
        </button>
        <LineParts line={line} />
      </div>
      {written && <CommentBox task={task} place={place} body={written.body} asked={asked} onRemove={remove} />}
    </>
  )
})

const wordFor = ({ side, line }: Place) => (side === 'before' ? `removed line ${line}` : `line ${line}`)

function toNeighbour(event: KeyboardEvent<HTMLButtonElement>): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (by === undefined) return
  event.preventDefault()
  const all = [...(event.currentTarget.closest('.patch')?.querySelectorAll<HTMLButtonElement>('.line-comment') ?? [])]
  all[all.indexOf(event.currentTarget) + by]?.focus()
}

interface BoxProps {
  task: string
  place: Place
  body: string
  /** Just now, by whoever wants to write in it. */
  asked: boolean
  onRemove(): void
}

/** Every letter is kept: there is nothing to be saved. */
function CommentBox({ task, place, body, asked, onRemove }: BoxProps) {
  const id = useId()
  const field = useRef<HTMLTextAreaElement>(null)
  const sought = useSought(place)
  useEffect(() => {
    if (asked || sought) field.current?.focus()
  }, [asked, sought])
  const keyed = ({ key }: KeyboardEvent) => {
    if (key === 'Escape' && !body.trim()) onRemove()
  }
  return (
    <div className="line-box">
      <label htmlFor={id}>Your comment on {wordFor(place)}</label>
      <IconButton icon={X} name={`Remove your comment on ${wordFor(place)}`} onClick={onRemove} />
      <textarea
        id={id}
        ref={field}
        className="input"
        rows={2}
        placeholder="Goes to the worker when you send the work back"
        value={body}
        onChange={(event) => comment(task, place, event.target.value)}
        onKeyDown={keyed}
      />
    </div>
  )
}

function LineParts({ line: { is, text, before, after } }: { line: Line }) {
  return (
    <>
      <span className="line-number">{before}</span>
      <span className="line-number">{after}</span>
      <span className="line-text" dir="ltr">
        {is === 'added' && <ins>{visible(text)}</ins>}
        {is === 'removed' && <del>{visible(text)}</del>}
        {is !== 'added' && is !== 'removed' && visible(text)}
      </span>
    </>
  )
}
