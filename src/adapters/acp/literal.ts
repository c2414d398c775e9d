import type { Harness, HarnessState, Step } from '../../ports/harness.ts'
import { launchOf, type Scene } from '../../testing/harness.ts'

/** For tests: lines as a program would print them, and what is sent to it for that. */
export function begin(harness: Harness, scene: Scene): HarnessState {
  return harness.launch(launchOf({ brief: 'Do it.', ...scene })).state ?? harness.begin()
}

export function feed(harness: Harness, state: HarnessState, ...messages: object[]) {
  const text = messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('')
  return after(harness.decode(state, { stream: 'out', at: 1, bytes: Buffer.from(text) }))
}

export function complain(harness: Harness, state: HarnessState, ...lines: string[]) {
  return after(harness.decode(state, { stream: 'err', at: 1, bytes: Buffer.from(lines.map((line) => `${line}\n`).join('')) }))
}

function after(step: Step) {
  return {
    step,
    state: step.state,
    events: step.events,
    sent: (step.send ?? []).map((line) => JSON.parse(line) as Record<string, unknown>),
  }
}
