import { execFile } from 'node:child_process'
import { realpath, stat } from 'node:fs/promises'
import type { Git, RepoFacts } from '../../ports/git.ts'

const TIMEOUT_MS = 10_000

/** A repository may be hostile: nothing that its configuration names is run by our own look at it. */
const SAFE_CONFIG = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.sshCommand=false',
  'protocol.ext.allow=never',
  'core.pager=cat',
]

export function createGit(): Git {
  return { inspect }
}

async function inspect(path: string): Promise<RepoFacts | undefined> {
  const place = await folderAt(path)
  if (!place) return undefined
  const found = await git(place, ['rev-parse', '--show-toplevel', '--is-inside-work-tree', '--absolute-git-dir'])
  const [toplevel, inside, gitDir] = found?.split('\n') ?? []
  if (!toplevel || inside !== 'true') return undefined
  // core.worktree can claim any folder above, even /: it counts only when git finds the same repository from there.
  if ((await git(toplevel, ['rev-parse', '--absolute-git-dir'])) !== gitDir) return undefined
  const branch = await git(place, ['symbolic-ref', '--quiet', '--short', 'HEAD'])
  const branches = await git(place, ['for-each-ref', '--format=%(refname:short)', 'refs/heads'])
  return {
    top: await realpath(toplevel),
    branch: branch || null,
    branches: branches ? branches.split('\n') : [],
    remote: (await git(place, ['config', '--get', 'remote.origin.url'])) || null,
    head: (await git(place, ['rev-parse', '--verify', '--quiet', 'HEAD'])) || null,
  }
}

async function folderAt(path: string): Promise<string | undefined> {
  const place = await realpath(path).catch(() => undefined)
  return place && (await stat(place)).isDirectory() ? place : undefined
}

/** The trimmed output; undefined when git says no. */
function git(cwd: string, args: string[]): Promise<string | undefined> {
  const argv = [...SAFE_CONFIG.flatMap((line) => ['-c', line]), ...args]
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0' }
  return new Promise((resolve) => {
    execFile('git', argv, { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 8_000_000 }, (error, stdout) =>
      resolve(error ? undefined : stdout.trim()),
    )
  })
}
