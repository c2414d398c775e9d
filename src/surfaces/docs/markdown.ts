const NOTE = 'Written by `npm run docs` from the declarations in `src`; change those, then run it again.'

export function page(title: string, ...parts: string[]): string {
  return `${[`# ${title}`, `> ${NOTE}`, ...parts].join('\n\n')}\n`
}

/** Prose from a declaration: its `code` stays code, everything else is text, so that nothing in it becomes markup or HTML. */
export function prose(text: string): string {
  return oneLine(text)
    .split(/(`[^`]+`)/)
    .map((part, i) => (i % 2 === 1 ? part.replaceAll('|', '\\|') : escaped(part)))
    .join('')
}

/** Ready for a table too, where a pipe ends the cell even inside code. */
export function code(text: string): string {
  const line = oneLine(text)
  const fence = fenceFor(line, 1)
  const pad = fence.length > 1 || line === '' ? ' ' : ''
  return `${fence}${pad}${line.replaceAll('|', '\\|')}${pad}${fence}`
}

export const codes = (texts: readonly string[]): string => texts.map(code).join(', ')

export function block(language: string, text: string): string {
  const fence = fenceFor(text, 3)
  return `${fence}${language}\n${text}\n${fence}`
}

export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

function escaped(text: string): string {
  return text
    .replace(/[\\`*[\]|~]/g, '\\$&')
    .replace(/(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, '\\_')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}

function fenceFor(text: string, shortest: number): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))
  return '`'.repeat(Math.max(shortest, longest + 1))
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
