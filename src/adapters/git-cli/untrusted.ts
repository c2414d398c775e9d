/** What a configuration can name that is then run, or that sends what we run somewhere else. */
const NAMES_A_PROGRAM = [
  /^filter\./,
  /^lfs\.(?:extension\.|customtransfer\.|.*transferagent$)/,
  /^credential\./,
  /^core\.(?:sshcommand|askpass|gitproxy|editor|alternaterefscommand)$/,
  /^diff\.(?:external$|.*\.(?:command|textconv)$)/,
  /^merge\..*\.driver$/,
  /^remote\..*\.(?:uploadpack|receivepack|vcs)$/,
  /^gpg\./,
]

export type Setting = [key: string, value: string]

export interface Judged {
  overrides: Setting[]
  /** Git sees a repository there, with a configuration of its own. */
  isRepository: boolean
  /** As long as the repository's own configuration files do not change. */
  lasting: boolean
}

export function judged(listed: string): Judged {
  const own = parsed(listed).filter(({ scope }) => scope === 'local' || scope === 'worktree')
  const overrides = trustedOverrides(listed)
  // What another file is included for, or what the person's own configuration says instead, can change without them.
  const lasting = overrides.length === 0 && !own.some(({ key }) => /^include(?:if)?\./.test(key))
  return { overrides, isRepository: own.length > 0, lasting: lasting && own.length > 0 }
}

/**
 * For each such key in the repository's own configuration: what the person's own (global, system) says instead, or nothing.
 * An empty value comes first, because some keys are lists that only an empty one ends.
 */
function trustedOverrides(listed: string): Setting[] {
  const settings = parsed(listed).filter(({ key }) => NAMES_A_PROGRAM.some((pattern) => pattern.test(key)))
  const theirs = new Set(settings.filter(({ scope }) => scope === 'local' || scope === 'worktree').map(({ key }) => key))
  return [...theirs].flatMap((key) => {
    const own = settings.filter((one) => one.key === key && (one.scope === 'global' || one.scope === 'system'))
    return [[key, ''] as Setting, ...own.map(({ value }): Setting => [key, value])]
  })
}

/** Stands above every configuration file. */
export function ownConfig(checkout: boolean): Setting[] {
  return [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.splitIndex', 'false'],
    // A file beside the commits that says what their trees and parents are, and is believed: as good as a graft to whoever can write it.
    ['core.commitGraph', 'false'],
    ['submodule.recurse', 'false'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ...((checkout
      ? [
          ['checkout.workers', '0'],
          ['checkout.thresholdForParallelism', '100'],
        ]
      : []) as Setting[]),
  ]
}

/** `scope NUL key LF value NUL …`; a key without a value has no line feed. */
function parsed(listed: string): { scope: string; key: string; value: string }[] {
  const parts = listed.split('\0')
  const settings = []
  for (let i = 0; i + 1 < parts.length; i += 2) {
    const [scope, entry] = [parts[i] as string, parts[i + 1] as string]
    const end = entry.indexOf('\n')
    settings.push({ scope, key: end < 0 ? entry : entry.slice(0, end), value: end < 0 ? 'true' : entry.slice(end + 1) })
  }
  return settings
}
