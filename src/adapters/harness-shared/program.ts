import { execFile } from 'node:child_process'
import { accessSync, constants, readFileSync, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import type { Harness } from '../../ports/harness.ts'
import type { Interactive } from '../../ports/terminal.ts'
import type { Account } from './account.ts'

/** What is true of an agent program that people install by themselves, however it is used: each adapter has it in its program.ts. */
export interface Program {
  /** As it is called on a command line, and in every tool of ours. */
  command: string
  title: string
  package: string
  /** The oldest that we can drive. */
  least: string
  /** What a person types to get it. */
  install: string
  /**
   * Where its own binary may lie, below a `node_modules`: started through its wrapper in Node, a killed wrapper would leave
   * the program running.
   */
  native?: string[]
  account: Account
  /** The names of what it gets from the environment of the daemon: what a person's own log-in, provider and settings need. */
  environment(): string[]
}

/** A line of the registry. */
export interface AgentProgram {
  harness: Harness | Without
  interactive: Interactive | Without
}

/** Why it has none, for whoever misses it. */
export interface Without {
  without: string
}

/** A machine's way to the network, which every program takes. */
export const NETWORK = [
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
]

export type Found = { found: true; version: string } | { found: false; why: string; install: string }

const ANSWERS_WITHIN_MS = 15_000
const asked = new Map<string, string>()

/** The file to start, without a wrapper where there is one; undefined when it is not on the PATH. */
export function pathOf(program: Program, path = process.env.PATH ?? ''): string | undefined {
  const command = whereIs(program.command, path)
  if (!command) return undefined
  const real = realpathSync(command)
  const folder = packageFolder(program, real)
  if (!folder) return real
  const places = [join(folder, 'node_modules'), ...above(folder)]
  const natives = places.flatMap((place) => (program.native ?? []).map((native) => join(place, native)))
  return natives.find(isExecutable) ?? real
}

/** The file that a command line means. */
export function whereIs(command: string, path = process.env.PATH ?? ''): string | undefined {
  const places = isAbsolute(command) ? [command] : path.split(delimiter).map((folder) => join(folder, command))
  return places.find(isExecutable)
}

/** What its package says, or itself when it came in another way: to start it only for this takes seconds. */
export async function probeProgram(program: Program, path?: string): Promise<Found> {
  const { install, command, least } = program
  const file = pathOf(program, path)
  if (!file) return { found: false, why: `"${command}" is not on the PATH of the daemon.`, install }
  const version = packageVersion(program, file) ?? (await askVersion(file))
  if (!version) return { found: false, why: `${file} does not say which version it is.`, install }
  if (isOlder(version, least)) return { found: false, why: `${command} ${version} is too old; at least ${least} is needed.`, install }
  return { found: true, version }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** Every `node_modules` that the folder lies in, the nearest first. */
function above(folder: string): string[] {
  const parts = folder.split('/')
  return parts.flatMap((part, i) => (part === 'node_modules' ? [parts.slice(0, i + 1).join('/')] : [])).reverse()
}

function packageFolder(program: Program, file: string): string | undefined {
  for (const place of above(file)) {
    const folder = join(place, program.package)
    if (isFolderOf(program, folder)) return folder
  }
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) if (isFolderOf(program, folder)) return folder
  return undefined
}

function isFolderOf(program: Program, folder: string): boolean {
  return manifest(folder)?.name === program.package
}

function packageVersion(program: Program, file: string): string | undefined {
  const folder = packageFolder(program, file)
  return folder && manifest(folder)?.version
}

function manifest(folder: string): { name?: string; version?: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  } catch {
    return undefined
  }
}

async function askVersion(file: string): Promise<string | undefined> {
  const key = `${file} ${statSync(file).mtimeMs}`
  const known = asked.get(key)
  if (known) return known
  const said = await new Promise<string>((resolve) => {
    const child = execFile(file, ['--version'], { timeout: ANSWERS_WITHIN_MS, maxBuffer: 64 * 1024 }, (_, out) => resolve(out))
    child.stdin?.end()
  })
  const version = /\d+\.\d+\.\d+/.exec(said)?.[0]
  if (version) asked.set(key, version)
  return version
}

function isOlder(version: string, least: string): boolean {
  const [a, b] = [version, least].map((text) => text.split(/[.-]/).slice(0, 3).map(Number))
  for (const i of [0, 1, 2]) if (a?.[i] !== b?.[i]) return (a?.[i] ?? 0) < (b?.[i] ?? 0)
  return false
}
