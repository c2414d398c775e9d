import type { CallRecord } from '../kernel/log.ts'

const BUCKETS_MS = [1, 5, 10, 50, 100, 500, 1_000, 10_000]

interface Timing {
  count: number
  sumMs: number
  buckets: number[]
}

/** Counts what passed the door, in Prometheus' text format. A name that no tool has is the caller's text: it makes no series. */
export class Metrics {
  readonly #calls = new Map<string, number>()
  readonly #timings = new Map<string, Timing>()

  readonly #known: Set<string>

  constructor(known: string[]) {
    this.#known = new Set(known)
  }

  record(call: CallRecord): void {
    const labels = `tool="${this.#known.has(call.tool) ? call.tool : 'unknown'}",outcome="${call.outcome}",surface="${call.surface}"`
    this.#calls.set(labels, (this.#calls.get(labels) ?? 0) + 1)
    const timing = this.#timings.get(call.surface) ?? { count: 0, sumMs: 0, buckets: BUCKETS_MS.map(() => 0) }
    timing.count++
    timing.sumMs += call.duration_ms
    BUCKETS_MS.forEach((limit, i) => {
      if (call.duration_ms <= limit) timing.buckets[i] = (timing.buckets[i] ?? 0) + 1
    })
    this.#timings.set(call.surface, timing)
  }

  render(gauges: Record<string, number>): string {
    const lines = ['# TYPE signalbox_calls_total counter']
    for (const [labels, count] of this.#calls) lines.push(`signalbox_calls_total{${labels}} ${count}`)
    lines.push('# TYPE signalbox_call_duration_seconds histogram')
    for (const [surface, timing] of this.#timings) lines.push(...histogram(surface, timing))
    for (const [name, value] of Object.entries(gauges)) lines.push(`# TYPE signalbox_${name} gauge`, `signalbox_${name} ${value}`)
    return `${lines.join('\n')}\n`
  }
}

function histogram(surface: string, { count, sumMs, buckets }: Timing): string[] {
  const name = 'signalbox_call_duration_seconds'
  return [
    ...BUCKETS_MS.map((limit, i) => `${name}_bucket{surface="${surface}",le="${limit / 1_000}"} ${buckets[i]}`),
    `${name}_bucket{surface="${surface}",le="+Inf"} ${count}`,
    `${name}_sum{surface="${surface}"} ${sumMs / 1_000}`,
    `${name}_count{surface="${surface}"} ${count}`,
  ]
}
