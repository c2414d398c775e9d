import { MARKER } from '../../runner/spec.ts'

type Environment = Record<string, string | undefined>

/** What every program needs to find its way about. */
const FOR_EVERYONE = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TERM|TMPDIR|XDG_[A-Z_]+)$/
/** Through it a program asks the user's service manager to start others, which then live outside of the run. */
const LEADS_OUT = 'XDG_RUNTIME_DIR'
/** Whatever a harness asks for: these are the daemon's own. */
const NEVER = /^(SIGNALBOX_.*|DATABASE_URL|GITHUB_TOKEN)$/

/** An agent's whole environment: a few names of the daemon's, those its harness asks for, what it is given, and the marker. */
export function agentEnvironment(
  run: string,
  daemon: Environment,
  { env, inherit }: { env: Record<string, string>; inherit: string[] },
): Record<string, string> {
  const wanted = new Set(inherit)
  const passes = (name: string) => (FOR_EVERYONE.test(name) && name !== LEADS_OUT) || (wanted.has(name) && !NEVER.test(name))
  const passed = Object.entries(daemon).filter((entry): entry is [string, string] => entry[1] !== undefined && passes(entry[0]))
  const path: Record<string, string> =
    daemon.PATH === undefined ? {} : { PATH: usersPath(daemon.PATH, daemon.npm_lifecycle_event !== undefined) }
  return { ...Object.fromEntries(passed), ...path, ...env, [MARKER]: run }
}

/** Under `npm start` it begins with our own packages: a bare `tsc` or `vitest` in the user's repository would be ours. */
function usersPath(path: string, byNpm: boolean): string {
  if (!byNpm) return path
  const parts = path.split(':')
  const first = parts.findIndex((part) => !/(\/node_modules\/\.bin|\/node-gyp-bin)$/.test(part))
  return parts.slice(Math.max(0, first)).join(':')
}

/** A runner has none of the agent's. When this daemon is itself part of a run, its runners are too. */
export function runnerEnvironment(daemon: Environment): Environment {
  const outer = daemon[MARKER]
  return { PATH: daemon.PATH, ...(outer === undefined ? {} : { [MARKER]: outer }) }
}
