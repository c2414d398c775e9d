/** A setting's value as people would say it. */
export function valueInWords(value: unknown): string {
  if (Array.isArray(value)) return value.length ? value.join(', ') : 'nothing'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return value.toLocaleString('en')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
