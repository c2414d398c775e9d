import { hide } from '../../kernel/redact.ts'
import type { Ports } from '../../kernel/tool.ts'
import type { RepoRow } from '../project/index.ts'

const SHORTEST = 8
const MOST_BYTES = 256 * 1_024
/** `NAME=value` as in .env files, `"name": "value"` as in JSON and YAML, several in a line. All has an end: a line can be a whole file. */
const NAMES = /(?<![\w.-])([\w.-]{1,100})["']?\s{0,20}[=:]\s{0,20}/g
const QUOTED = /^"((?:[^"\\]|\\.)*)"|^'([^']*)'/
const LONGEST = 4_096
const MOST = 2_000
const SECRET_NAME =
  /(token|secret|password|passwd|passphrase|pass|pwd|[_-]key|key_base|(?:api|access|secret|private)key|credentials?|dsn|salt)$/i
const IN_ADDRESS = /(?<![a-z0-9])[a-z][a-z0-9+.-]{0,30}:\/\/[^/\s:@"']{0,200}:([^/\s@"']{1,500})@/gi
/** Letters and digits without a word among them: a key, whatever it is called. */
const LIKE_A_KEY = /^(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9+/_=.-]{24,}$/
const WORD = /^[a-z][a-z.-]{2,}$/

/** What in a file that git ignores must stand in no transcript, log or audit. Words such as `development` are no secrets. */
export function secretsIn(text: string): string[] {
  const found = new Set<string>()
  for (const line of text.split(/\r?\n/))
    for (const secret of secretsOf(line)) {
      if (found.size === MOST) return [...found]
      if (secret.length >= SHORTEST) found.add(secret)
    }
  return [...found]
}

function* secretsOf(line: string): Generator<string> {
  for (const [, password = ''] of line.matchAll(IN_ADDRESS)) yield* [password, decoded(password)]
  const isComment = /^\s*(#|\/\/)/.test(line)
  for (const { 0: before, 1: name = '', index } of line.matchAll(NAMES)) {
    if (!SECRET_NAME.test(name)) continue
    const begins = index + before.length
    yield* valuesOf(line.slice(begins, begins + LONGEST)).filter((value) => !isComment || !/\s/.test(value))
  }
  yield* keysIn(line)
}

/** As it may be printed: with a comment or the rest of the line, and without. */
function valuesOf(text: string): string[] {
  const [, double, single] = QUOTED.exec(text) ?? []
  const quoted = double ?? single
  if (quoted !== undefined) return [quoted, quoted.replace(/\\(["\\/])/g, '$1')]
  const value = text.replace(/\s#.*$/, '').replace(/[\s,;]+$/, '')
  return [value, value.split(/[\s,;&}\]]/)[0] as string]
}

/** In each line of a value that has several. */
function keysIn(line: string): string[] {
  const parts = line.split(/\\+n|[\s"',;]+/).map((part) => part.replace(/^[\w.-]{1,100}[=:](?=[^=])/, ''))
  return parts.filter((part) => LIKE_A_KEY.test(part) && !part.split('/').some((one) => WORD.test(one)))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** From now on, on this daemon. A repository that cannot be read copies nothing either. */
export async function hideSecretsOf({ git }: Pick<Ports, 'git'>, repo: RepoRow): Promise<void> {
  const patterns = [...JSON.parse(repo.files), ...JSON.parse(repo.check_files)] as string[]
  if (patterns.length === 0) return
  const texts = await git.ignoredTexts(repo.path, patterns, MOST_BYTES).catch(() => [])
  hide(texts.flatMap(secretsIn))
}
