const UNITS: [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
]
const A_MONTH = 30 * 86_400

/** `3 min ago`, `in 2 h`; beyond a month the date. */
export function ago(iso: string, now: number): string {
  const seconds = (now - Date.parse(iso)) / 1_000
  if (Math.abs(seconds) > A_MONTH) return iso.slice(0, 10)
  if (Math.abs(seconds) < 5) return 'just now'
  return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`
}

/** In its largest unit: `47 s`, `3 min`, `2 h`, `5 d`. */
export function span(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => Math.round(seconds) >= size) ?? ['s', 1]
  return `${Math.floor(seconds / size + (unit === 's' ? 0.5 : 0))} ${unit}`
}

export function bytes(count: number): string {
  const power = Math.min(4, Math.floor(Math.log10(Math.max(1, count)) / 3))
  return `${power ? (count / 1_000 ** power).toFixed(1) : count} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`
}
