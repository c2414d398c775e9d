import { join, resolve } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'
import { Configurations, counting, isOn, lastOf, parsed, type Setting } from './config.ts'
import type { Ran } from './exec.ts'
import { layoutOf } from './layout.ts'
import { OwnDirectories } from './own.ts'
import type { Watch } from './stuck.ts'

export const LOOK_MS = 60_000
/** A checkout of a large repository on a slow disk, with large files to be fetched by a filter. */
export const LONG_MS = 1_800_000

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
  /** A folder with other attributes than those of the files. */
  attributesIn?: string
}

/** Git in one folder. It reads no configuration but the person's own and what we let through of the repository's. */
export interface At {
  cwd: string
  /** Where the repository has its objects. */
  objects: string
  /** A folder that no worker can write to, for one use. */
  temporary<T>(use: (folder: string) => Promise<T>): Promise<T>
  /** Throws `failed` when git says no. */
  git(args: string[], options?: Options): Promise<Buffer>
  /** Trimmed. */
  line(args: string[], options?: Options): Promise<string>
  /** Trimmed; undefined when git says no. */
  ask(args: string[], options?: Options): Promise<string | undefined>
  /** Whatever it exits with. */
  tried(args: string[], options?: Options): Promise<Ran>
  /** What the first one prints is what the second one reads, however much it is. */
  piped(first: string[], input: string, second: string[]): Promise<Ran>
}

/** Its refs and objects, without the files of any checkout. */
export interface Repo extends At {
  /** Git's folder about the checkout at `cwd`. */
  gitDir: string
  /** The folder that all its worktrees share. */
  common: string
  /** Our own git directory over it. */
  own: string
  /** A folder of ours for what we write down about it. */
  notes: string
  /** Held by whoever changes its list of worktrees. */
  lock: string
  /** All that its own configuration says, to be looked at and not to be believed. */
  says: Setting[]
  /** Git with the files of a checkout. Where its git directory is has to be known: what stands in the checkout is its worker's. */
  checkout(path: string, gitDir: string): Promise<At>
}

export interface Open {
  /** Undefined when no repository has its top there. */
  repo(top: string): Promise<Repo | undefined>
  /** A look at a repository that lies inside of a worktree: by its top, or where there are no files of it, by its git directory. */
  inside<T>(where: { top: string } | { gitDir: string }, look: (at: At) => Promise<T>): Promise<T | undefined>
  /** Deletes temporary files of a daemon that was killed. */
  sweep(): Promise<void>
}

/** Where one git is at work. */
interface Where {
  cwd: string
  gitDir: string
  own: string
  common: string
  workTree?: string
  settings: Setting[]
  /** Files elsewhere that git reads because the repository says so. */
  named?: string[]
}

export function opener(environment: NodeJS.ProcessEnv, ownRoot: string, watch: Watch): Open {
  const configurations = new Configurations(async (input, file) => {
    const env = { ...environmentFor(environment, {}), GIT_DIR: NOWHERE }
    const command = { cwd: '/', argv: ['config', '--file', '-', '--list', '-z'], env, input, timeoutMs: LOOK_MS }
    const { stdout, failed } = await watch.run(command, { directories: [], workTree: undefined, files: [] })
    if (failed !== undefined) throw new GitRefusal('failed', `${file} cannot be read: ${failed}`)
    return parsed(stdout.toString())
  })
  const directories = new OwnDirectories(ownRoot)
  const named = (says: Setting[]) => {
    const ignored = lastOf(counting(says), 'core.excludesfile')
    return ignored ? [ignored.replace(/^~(?=\/)/, environment.HOME ?? '~')] : []
  }
  const at = (where: Where): At => ({ ...gitAt(environment, where, watch), temporary: (use) => directories.temporary(use) })
  const rootsOf = (common: string) => (own: string, ids: string[]) =>
    withoutParents(at({ cwd: common, gitDir: common, own, common, settings: [] }), ids)

  return {
    sweep: () => directories.sweep(),
    repo: async (top) => {
      const layout = await layoutOf(top)
      if (!layout) return undefined
      const { gitDir, common } = layout
      const says = await configurations.in(join(common, 'config'))
      const own = await directories.make(common, says, rootsOf(common))
      const where = { cwd: top, gitDir, own, common, settings: [], named: named(says) }
      return {
        ...at(where),
        gitDir,
        common,
        own,
        notes: directories.notesFor(common),
        lock: directories.lockFor(common),
        says,
        checkout: async (path, admin) => {
          const more = isOn(says, 'extensions.worktreeconfig') ? await configurations.in(join(admin, 'config.worktree')) : []
          return at({ ...where, cwd: path, gitDir: admin, workTree: path, settings: counting(more) })
        },
      }
    },
    inside: async (place, look) => {
      const layout = 'top' in place ? await layoutOf(place.top) : { gitDir: place.gitDir, common: place.gitDir }
      if (!layout) return undefined
      const { gitDir, common } = layout
      const workTree = 'top' in place ? { workTree: place.top } : {}
      const says = await configurations.in(join(common, 'config'))
      return directories.lend(common, says, rootsOf(common), (own) =>
        look(at({ cwd: 'top' in place ? place.top : gitDir, gitDir, own, common, settings: [], named: named(says), ...workTree })),
      )
    },
  }
}

function gitAt(
  environment: NodeJS.ProcessEnv,
  { cwd, gitDir, own, common, workTree, settings, named = [] }: Where,
  watch: Watch,
): Omit<At, 'temporary'> {
  const objects = join(common, 'objects')
  const reads = { directories: [...new Set([common, gitDir])], workTree, files: named.map((path) => resolve(workTree ?? own, path)) }
  const place: Record<string, string> = {
    GIT_DIR: gitDir,
    GIT_COMMON_DIR: own,
    GIT_OBJECT_DIRECTORY: objects,
    ...(workTree ? { GIT_WORK_TREE: workTree } : {}),
  }
  const envFor = (options: Options) => {
    const config = asEnvironment([...settings, ...ownConfig(options.checkout ?? false)])
    return { ...environmentFor(environment, options), ...place, ...config, ...options.env }
  }
  const ran = async (args: string[], options: Options) => {
    // Attributes are read where git stands. Without files of its own it stands where there are none.
    const standsIn = options.attributesIn ?? workTree ?? own
    const { input = '', timeoutMs = LOOK_MS, cutAfter } = options
    const argv = ['--no-pager', '--literal-pathspecs', ...args]
    const { stdout, failed } = await watch.run({ cwd: standsIn, argv, env: envFor(options), input, timeoutMs, cutAfter }, reads)
    // Nobody knows our directory: what git says of it is said of the repository.
    return failed === undefined ? { stdout } : { stdout, failed: failed.replaceAll(own, common) }
  }
  const git = async (args: string[], options: Options = {}) => {
    const { stdout, failed } = await ran(args, options)
    if (failed !== undefined) throw new GitRefusal('failed', `git ${args[0]} in ${cwd}: ${failed}`)
    return stdout
  }
  return {
    cwd,
    objects,
    git,
    tried: (args, options = {}) => ran(args, options),
    piped: (first, input, second) => watch.run({ cwd: own, argv: first, env: envFor({}), input, timeoutMs: LONG_MS, into: second }, reads),
    line: async (args, options) => (await git(args, options)).toString().trim(),
    ask: async (args, options = {}) => {
      const { stdout, failed } = await ran(args, options)
      return failed === undefined ? stdout.toString().trim() : undefined
    },
  }
}

/** Stands above every configuration file. */
function ownConfig(checkout: boolean): Setting[] {
  const inParallel: Setting[] = [
    ['checkout.workers', '0'],
    ['checkout.thresholdForParallelism', '100'],
  ]
  return [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.splitIndex', 'false'],
    // A file beside the commits that says what their trees and parents are, and is believed: as good as a graft to whoever can write it.
    ['core.commitGraph', 'false'],
    ['submodule.recurse', 'false'],
    ['rerere.enabled', 'false'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ...(checkout ? inParallel : []),
  ]
}

/** Of these commits, those with a parent that is not there. */
async function withoutParents(at: At, ids: string[]): Promise<string[]> {
  const parents = new Map<string, string[]>()
  const commits = await at.git(['cat-file', '--batch'], { input: `${ids.join('\n')}\n` })
  for (let offset = 0; offset < commits.length; ) {
    const end = commits.indexOf('\n', offset)
    const [id = '', type, size] = commits.subarray(offset, end).toString().split(' ')
    offset = end + 1
    if (type !== 'commit') continue
    const [header = ''] = commits
      .subarray(offset, offset + Number(size))
      .toString()
      .split('\n\n')
    parents.set(
      id,
      Array.from(header.matchAll(/^parent ([0-9a-f]+)$/gm), (found) => found[1] as string),
    )
    offset += Number(size) + 1
  }
  const input = `${[...parents.values()].flat().join('\n')}\n`
  const found = (await at.git(['cat-file', '--batch-check'], { input })).toString().split('\n')
  const missing = new Set(found.filter((line) => line.endsWith(' missing')).map((line) => line.split(' ')[0]))
  return ids.filter((id) => parents.get(id)?.some((parent) => missing.has(parent)))
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
