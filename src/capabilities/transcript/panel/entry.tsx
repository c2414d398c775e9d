import {
  Bot,
  Brain,
  ChevronRight,
  CornerDownRight,
  type LucideIcon,
  Signpost,
  SquareTerminal,
  TriangleAlert,
  UserRound,
  Wrench,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { visible } from '../../../ui/kit/plain.ts'
import type { Entry } from './rows.ts'

const KINDS: Record<Entry['kind'], { word: string; icon: LucideIcon }> = {
  agent: { word: 'Agent', icon: Bot },
  thought: { word: 'Thought', icon: Brain },
  person: { word: 'Person', icon: UserRound },
  program: { word: 'Program', icon: SquareTerminal },
  error: { word: 'Error', icon: TriangleAlert },
  tool_call: { word: 'Tool', icon: Wrench },
  tool_result: { word: 'Result', icon: CornerDownRight },
  signalbox: { word: 'Signalbox', icon: Signpost },
}

const FOLDED: Entry['kind'][] = ['tool_call', 'tool_result']

interface Props {
  entry: Entry
  /** Of a tool call, when it is known. */
  result?: Entry
  open: boolean
  onOpen(open: boolean): void
}

/** Whatever a program printed, as text and nothing else. */
export function EntryView({ entry, result, open, onOpen }: Props) {
  const { word, icon: Icon } = KINDS[entry.kind]
  return (
    <article className={`entry entry-${entry.kind}`}>
      <span className="entry-icon" title={`${word}, ${new Date(entry.at).toLocaleString()}`}>
        <Icon aria-hidden />
        <span className="visually-hidden">{word}:</span>
      </span>
      {FOLDED.includes(entry.kind) ? (
        <Folded {...{ entry, result, open, onOpen }} />
      ) : (
        <Body text={entry.body} open={open} onOpen={onOpen} />
      )}
    </article>
  )
}

/** A name and a line of what it is about; the rest when somebody wants it. */
function Folded({ entry, result, open, onOpen }: Props) {
  return (
    <div className="folded">
      <button type="button" className="folded-head" aria-expanded={open} onClick={() => onOpen(!open)}>
        <ChevronRight aria-hidden />
        <strong>{entry.kind === 'tool_call' ? visible(entry.name ?? 'tool') : 'Result'}</strong>
        <span className="folded-line">{firstLine(entry.body)}</span>
      </button>
      {open && (
        <div className="folded-body">
          <Block>{entry.body}</Block>
          {result && <Block label="Result">{result.body}</Block>}
        </div>
      )}
    </div>
  )
}

function Block({ label, children }: { label?: string; children: string }) {
  return (
    <>
      {label && <span className="folded-label">{label}</span>}
      <pre className="block" dir="ltr">
        {visible(children) || '(nothing)'}
      </pre>
    </>
  )
}

const SHOWN_LINES = 30
const SHOWN_CHARS = 3_000

function Body({ text, open, onOpen }: { text: string; open: boolean; onOpen(open: boolean): void }) {
  const whole = visible(text)
  const short = whole.split('\n', SHOWN_LINES).join('\n').slice(0, SHOWN_CHARS)
  const cut = short.length < whole.length
  return (
    <div className="entry-body">
      <Text>{open ? whole : short}</Text>
      {cut && (
        <button type="button" className="entry-more" onClick={() => onOpen(!open)}>
          {open ? 'Show less' : `Show all of it, ${whole.length.toLocaleString('en')} characters`}
        </button>
      )}
    </div>
  )
}

function Text({ children }: { children: ReactNode }) {
  return (
    <p className="entry-text" dir="auto">
      {children}
    </p>
  )
}

/** Enough to see what it is about. */
function firstLine(body: string): string {
  return visible(body.slice(0, 300)).replace(/\s+/g, ' ').trim()
}
