const LONGEST_LINE = 160

/** What a program calls the one thing that a person has to know of a tool's input, the first that is there. */
const TELLING = ['command', 'cmd', 'file_path', 'path', 'url', 'pattern', 'query', 'description']

export function approvalHandle({ number }: { number: number }): string {
  return `A-${number}`
}

/** `Bash: npm publish`, for a list or a terminal. */
export function inOneLine({ name, input }: { name: string; input: string }): string {
  const line = `${name}: ${gist(input)}`.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  return line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE - 1).toWellFormed()}…`
}

function gist(input: string): string {
  const fields = fieldsOf(input)
  const telling = TELLING.map((key) => fields?.[key]).find((value) => value !== undefined)
  if (telling === undefined) return input
  return Array.isArray(telling) ? telling.join(' ') : typeof telling === 'object' ? JSON.stringify(telling) : String(telling)
}

function fieldsOf(input: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(input)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : undefined
  } catch {
    return undefined
  }
}
