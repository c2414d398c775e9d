import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'
import { Harmless, layoutOf } from './layout.ts'
import { judged, ownConfig } from './untrusted.ts'

const LOOK_MS = 60_000
/** A checkout of a large repository on a slow disk, with large files to be fetched by a filter. */
export const LONG_MS = 1_800_000
const MOST_OUTPUT = 64_000_000

/** What git needs of our own environment; nothing that redirects it (GIT_DIR and the like) is let through. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'XDG_CONFIG_HOME',
  'USER',
  'LOGNAME',
  'TMPDIR',
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
]
/** A filter may have to fetch what it fills in. */
const PASSED_ON_TO_CHECKOUT = ['SSH_AUTH_SOCK', 'HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'NO_PROXY', 'no_proxy']

/** Of a file that is there, even an empty one, git would say on stderr that grafts are deprecated. */
const NOWHERE = '/dev/null/none'

export const US = {
  GIT_AUTHOR_NAME: 'Signalbox',
  GIT_AUTHOR_EMAIL: 'signalbox@localhost',
  GIT_COMMITTER_NAME: 'Signalbox',
  GIT_COMMITTER_EMAIL: 'signalbox@localhost',
}

export interface Options {
  env?: Record<string, string>
  input?: string | Buffer
  timeoutMs?: number
  /** Writes files: filters may fetch, many workers. */
  checkout?: boolean
  /** Stop it after so many bytes; what came until then is the answer. */
  cutAfter?: number
}

/** Git in one folder, with what the repository's own configuration names already neutralised. */
export interface At {
  cwd: string
  /** The folder that all worktrees of the repository share, where git's files tell it plainly. */
  common: string | undefined
  /** What the repository's own configuration names and is not run, and the person's own does not name either. */
  withheld: string[]
  /** Throws `failed` when git says no. */
  git(args: string[], options?: Options): Promise<Buffer>
  /** Trimmed. */
  line(args: string[], options?: Options): Promise<string>
  /** Trimmed; undefined when git says no. */
  ask(args: string[], options?: Options): Promise<string | undefined>
  /** Whatever it exits with. */
  tried(args: string[], options?: Options): Promise<{ stdout: Buffer; failed?: string }>
}

export type Open = (cwd: string, how?: { anywhereAbove?: boolean }) => Promise<At>

export function opener(environment: NodeJS.ProcessEnv): Open {
  const harmless = new Harmless()
  return async (cwd, { anywhereAbove = false } = {}) => {
    // Without a bound, git in a folder that lost its .git would take the repository above it for the one that is meant.
    const bound: Record<string, string> = anywhereAbove ? {} : { GIT_CEILING_DIRECTORIES: dirname(cwd) }
    const base = (options: Options) => ({ ...environmentFor(environment, options), ...bound })
    const layout = anywhereAbove ? undefined : await layoutOf(cwd)
    const list = () => exec(cwd, ['config', '--list', '-z', '--show-scope'], { ...base({}), ...asEnvironment(ownConfig(false)) }, {})
    const { overrides, isRepository } = await harmless.unless(layout, async () => {
      const { stdout, failed } = await list()
      return failed === undefined ? judged(stdout.toString()) : { overrides: [], isRepository: false, lasting: false }
    })
    const ran = (args: string[], options: Options) => {
      const config = asEnvironment([...overrides, ...ownConfig(options.checkout ?? false)])
      return exec(cwd, ['--no-pager', '--literal-pathspecs', ...args], { ...base(options), ...config, ...options.env }, options)
    }
    const git = async (args: string[], options: Options = {}) => {
      const { stdout, failed } = await ran(args, options)
      if (failed !== undefined) throw new GitRefusal('failed', `git ${args[0]} in ${cwd}: ${failed}`)
      return stdout
    }
    return {
      cwd,
      common: isRepository ? layout?.common : undefined,
      withheld: overrides.map(([key]) => key).filter((key, _, keys) => keys.indexOf(key) === keys.lastIndexOf(key)),
      git,
      tried: (args, options = {}) => ran(args, options),
      line: async (args, options) => (await git(args, options)).toString().trim(),
      ask: async (args, options = {}) => {
        const { stdout, failed } = await ran(args, options)
        return failed === undefined ? stdout.toString().trim() : undefined
      },
    }
  }
}

function environmentFor(from: NodeJS.ProcessEnv, { checkout }: Options): Record<string, string> {
  const names = checkout ? [...PASSED_ON, ...PASSED_ON_TO_CHECKOUT] : PASSED_ON
  const passed = names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]] as const]))
  return {
    ...Object.fromEntries(passed),
    ...US,
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    // By either of them a worker could have something else land than the commit that was approved.
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_GRAFT_FILE: NOWHERE,
    // Of a partial clone git fetches what is missing, through whatever its configuration names.
    GIT_ALLOW_PROTOCOL: checkout ? 'https:ssh' : 'none',
  }
}

/** Not as `-c`: a name with `=` in it would end there. */
function asEnvironment(config: [string, string][]): Record<string, string> {
  const entries = config.flatMap(([key, value], n) => [
    [`GIT_CONFIG_KEY_${n}`, key],
    [`GIT_CONFIG_VALUE_${n}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(config.length), ...Object.fromEntries(entries) }
}

function exec(cwd: string, argv: string[], env: Record<string, string>, options: Options): Promise<{ stdout: Buffer; failed?: string }> {
  const { timeoutMs = LOOK_MS, cutAfter, input } = options
  return new Promise((resolve) => {
    const child = execFile(
      'git',
      argv,
      { cwd, env, timeout: timeoutMs, maxBuffer: cutAfter ?? MOST_OUTPUT, encoding: 'buffer' },
      (error, stdout, stderr) => {
        const cut =
          cutAfter !== undefined && error !== null && (error as NodeJS.ErrnoException).code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
        if (!error || cut) return resolve({ stdout })
        const said = stderr.toString().trim().slice(-2_000)
        resolve({ stdout, failed: error.killed ? `it took longer than ${timeoutMs / 1_000} s` : said || error.message })
      },
    )
    // It may have ended without reading.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input ?? '')
  })
}
