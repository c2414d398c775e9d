import type { HarnessState } from '../../ports/harness.ts'
import { noLine, type OpenLine } from '../harness-shared/lines.ts'
import { newStory, type Story } from '../harness-shared/story.ts'
import { NOTHING_USED, type Totals } from './usage.ts'

export interface State extends HarnessState {
  story: Story
  out: OpenLine
  err: OpenLine
  /** What the uuids of its messages are made from. */
  run: string
  /** The session that it was to go on with. */
  resumes: string | null
  /** How many messages it was sent after the brief. */
  messages: number
  /** Those that it has not taken yet. */
  waiting: string[]
  interrupts: number
  /** What it asks permission for, with the input as JSON; null when that was too long to keep. */
  asked: Record<string, string | null>
  /** Null until it is known what a resumed session counts already. */
  told: Totals | null
  usageAskedAt: number
  /** When the provider gives more, as far as it was said. */
  resetsAt: number | null
  /** That our tools are missing was told. */
  toolsMissed: boolean
  /** How the last turn ended. */
  last: 'well' | 'interrupted' | 'failed' | null
  /** Nothing more can be sent. */
  closed: boolean
}

export function begun(run: string, resumes: string | null): State {
  return {
    story: newStory(),
    out: noLine(),
    err: noLine(),
    run,
    resumes,
    messages: 0,
    waiting: [],
    interrupts: 0,
    asked: {},
    told: resumes === null ? NOTHING_USED : null,
    usageAskedAt: 0,
    resetsAt: null,
    toolsMissed: false,
    last: null,
    closed: false,
  }
}
