import { hide } from '../../kernel/redact.ts'
import type { Ports } from '../../kernel/tool.ts'
import type { RepoRow } from '../project/index.ts'

const SHORTEST = 8
const MOST_BYTES = 256 * 1_024
/** `NAME=value` as in .env files, `"name": "value",` as in JSON and YAML. */
const LINE = /^\s*(?:export\s+)?["']?([\w.-]+)["']?\s*[=:]\s*(.*?)\s*,?\s*$/
const SECRET_NAME = /(token|secret|password|passwd|passphrase|pass|pwd|[_-]key|(?:api|access|secret|private)key|credentials?|dsn|salt)$/i
const IN_ADDRESS = /^[a-z][a-z0-9+.-]*:\/\/[^/\s:@]*:([^/\s@]+)@/i
/** Letters and digits without a word or a path among them: a key, whatever it is called. */
const LIKE_A_KEY = /^(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9+/_=.-]{24,}$/

/** What in a file that git ignores must stand in no transcript, log or audit. Words such as `development` are no secrets. */
export function secretsIn(text: string): string[] {
  const found = text.split('\n').flatMap((line) => {
    const [, name = '', quoted = line.trim()] = LINE.exec(line) ?? []
    const value = quoted.replace(/^(["'])(.*)\1$/, '$2')
    const password = IN_ADDRESS.exec(value)?.[1]
    if (password) return [password, decoded(password)]
    return SECRET_NAME.test(name) || LIKE_A_KEY.test(value) ? [value] : []
  })
  return found.filter((secret) => secret.length >= SHORTEST)
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
