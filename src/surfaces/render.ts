type Row = Record<string, unknown>

const LONGEST_CELL = 48

/** An answer for a person's eyes: a table for a list of things, else one field a line. */
export function render(result: Row): string {
  const lists = Object.entries(result).filter((entry): entry is [string, Row[]] => Array.isArray(entry[1]) && entry[1].every(isRow))
  const single = Object.values(result).find(isRow)
  const beside = Object.keys(result).filter((key) => !['next', 'cursor', 'current'].includes(key)).length - 1
  if (lists.length === 1 && lists[0] && beside === 0)
    return (
      table(lists[0][1], lists[0][0]) + fields(Object.fromEntries(Object.entries(result).filter(([key]) => key === 'next' && result.next)))
    )
  return fields(single && Object.keys(result).length <= 3 ? { ...result, ...single } : result)
}

function table(rows: Row[], noun: string): string {
  if (!rows.length) return `No ${noun}.\n`
  const columns = columnsOf(rows)
  const cells = rows.map((row) => columns.map((column) => cell(row[column])))
  const widths = columns.map((column, i) => Math.max(column.length, ...cells.map((line) => (line[i] as string).length)))
  const line = (parts: string[]) =>
    `${parts
      .map((part, i) => part.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd()}\n`
  return line(columns.map((column) => column.toUpperCase())) + cells.map(line).join('')
}

/** Long ids give way to handles: that is what people type. */
function columnsOf(rows: Row[]): string[] {
  const scalar = Object.keys(rows[0] ?? {}).filter((key) => rows.every((row) => !isRow(row[key])))
  const readable = scalar.filter(
    (key) => !(key === 'id' && scalar.includes('handle')) && !/_id$|^version$|^description$|^created_at$/.test(key),
  )
  return readable.slice(0, 8)
}

function fields(row: Row): string {
  const entries = Object.entries(row).filter(([, value]) => value !== null && !isRow(value))
  const width = Math.max(0, ...entries.map(([key]) => key.length))
  return entries
    .map(([key, value]) => `${key.padEnd(width)}  ${Array.isArray(value) ? value.map(plain).join(', ') : plain(value)}\n`)
    .join('')
}

function cell(value: unknown): string {
  const text = (Array.isArray(value) ? value.map(plain).join(', ') : plain(value)).replace(/\s+/g, ' ')
  return text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL - 1)}…` : text
}

/** Text from outside is shown, never obeyed: control characters (colours, cursor moves, clipboard) are made visible. */
function plain(value: unknown): string {
  const text = value === null || value === undefined ? '-' : typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.replace(/[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
