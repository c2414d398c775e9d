import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import type { Spec } from '../../runner/spec.ts'

/** What is hidden from an agent: the daemon's folder, with its token, its database and the tokens of other runs. */
export interface Hidden {
  home: string
  /** Those stay: to git a worktree that cannot be seen is one to be pruned, also those of others. */
  worktrees: string
}

export interface Isolation {
  isolation: Spec['isolation']
  around(of: Started): Spec['around']
}

/** An agent that has this folder of its own, works in `cwd` and cannot do without what it needs. */
interface Started {
  folder: string
  cwd: string
  needs: string[]
}

const PROBE_MS = 5_000

export const MARKER_ONLY: Isolation = { isolation: 'marker', around: () => [] }

const NAMESPACE = ['--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'slave']
const MOUNTS = ['--mount', '--propagation', 'slave']
const AS_ROOT = ['--user', '--map-root-user']

/** Where the daemon is: by that our pipe in an agent finds it. No secret. */
const ADDRESS = 'daemon.json'

/**
 * Lays an empty folder over the daemon's, in which two are as they were. They are held open meanwhile, since they cannot be found any more.
 * At last it goes into its own folder anew: by way of the old one `..` would lead around the cover.
 */
const COVER = `set -e
{ IFS= read -r address < "$4/${ADDRESS}" || :; } 2>/dev/null
exec 5<"$1" 6<"$2"
"$3" -t tmpfs -o mode=0700,size=1m signalbox "$4"
"$5" -p "$1" "$2"
"$3" -c --bind /proc/self/fd/5 "$1"
"$3" -c --bind /proc/self/fd/6 "$2"
[ -z "$address" ] || printf '%s' "$address" > "$4/${ADDRESS}"
"$3" -o remount,bind,ro "$4"
exec 5<&- 6<&-
cd "$6"
shift 6
exec "$@"`

/** What this machine has to keep an agent's tree together, and to hide from it what is not for it, found out by trying. */
export async function probeIsolation(path: string | undefined, hidden?: Hidden & { folder: string }): Promise<Isolation> {
  const [unshare, setpriv, mount, mkdir] = ['unshare', 'setpriv', 'mount', 'mkdir'].map((name) => findIn(path, name))
  if (process.platform !== 'linux' || !unshare) return MARKER_ONLY
  // A user namespace hides from root whatever belongs to others, so root goes without as long as it can.
  const asRoot = process.getuid?.() === 0 ? [true, false] : [false]
  // A runner that is killed takes its agent along; without it the daemon does, when it looks.
  const bonds = setpriv ? [[setpriv, '--pdeathsig', 'KILL'], []] : [[]]
  const covers = hidden && mount && mkdir ? [{ ...hidden, mount, mkdir }, undefined] : [undefined]
  for (const cover of covers)
    for (const bond of bonds)
      for (const root of asRoot) {
        const around: Isolation['around'] = (of) => [...bond, unshare, ...namespace(unshare, root, of, cover)]
        if (await works(around({ folder: hidden?.folder ?? '/', cwd: '/', needs: [] }))) return { isolation: 'namespace', around }
      }
  return MARKER_ONLY
}

type Cover = Hidden & { mount: string; mkdir: string }

/** Only root mounts: who is somebody else is root for that, and then again who they are, without any power over the mounts. */
function namespace(unshare: string, root: boolean, { folder, cwd, needs }: Started, cover: Cover | undefined): string[] {
  if (!cover || needs.some((path) => isWithin(cover.home, path))) return [...(root ? [] : ['--user', '--map-current-user']), ...NAMESPACE]
  const { home, worktrees, mount, mkdir } = cover
  const open = existsSync(worktrees) ? worktrees : folder
  const covered = ['/bin/sh', '-c', COVER, 'sh', folder, open, mount, home, mkdir, cwd]
  const ourselves = root ? [] : ['--user', `--map-user=${process.getuid?.()}`, `--map-group=${process.getgid?.()}`]
  return [...(root ? [] : AS_ROOT), ...MOUNTS, ...covered, unshare, ...ourselves, ...NAMESPACE]
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith('../')
}

function works([program, ...args]: string[]): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(program as string, [...args, '/bin/sh', '-c', 'exit 0'], { timeout: PROBE_MS, env: {} }, (error) => resolve(error === null))
  })
}

/** By its full path: an agent's own PATH decides nothing about how it is kept together. */
function findIn(path: string | undefined, name: string): string | undefined {
  return (path ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return file.startsWith('/')
      } catch {
        return false
      }
    })
}
