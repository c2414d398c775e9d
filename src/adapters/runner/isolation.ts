import { execFile } from 'node:child_process'
import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import type { Spec } from '../../runner/spec.ts'

/** What is hidden from an agent: what would give it the power of the daemon, or of another run. */
export interface Hidden {
  /** The daemon's folder, with its token, its database, the folders of other runs and their worktrees. */
  home: string
  /** Of runners and terminals. The daemon's own socket is elsewhere: an agent calls it. */
  sockets: string
}

export interface Isolation {
  isolation: Spec['isolation']
  /** Why an agent sees what should be hidden from it. */
  exposed?: string
  around(of: Started): Spec['around']
}

/** An agent that has this folder of its own, works in `cwd` and cannot do without what it needs. */
interface Started {
  folder: string
  cwd: string
  needs: string[]
}

const PROBE_MS = 5_000

const NOTHING_HIDDEN = 'Agents can read the owner token, the database, the tokens of other runs and their worktrees'
export const MARKER_ONLY: Isolation = {
  isolation: 'marker',
  exposed: `${NOTHING_HIDDEN}: this system gives them no mount namespace.`,
  around: () => [],
}

const NAMESPACE = ['--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'slave']
const MOUNTS = ['--mount', '--propagation', 'slave']
const AS_ROOT = ['--user', '--map-root-user']

/** Where the daemon is: by that our pipe in an agent finds it. No secret. */
const ADDRESS = 'daemon.json'

/** With each of these root could take the cover away, or read around it. */
const POWERS = ['sys_admin', 'dac_read_search', 'sys_module', 'sys_rawio'].map((name) => `-${name}`).join(',')
const POWERLESS = ['--bounding-set', POWERS, '--inh-caps', POWERS, '--']

/** An agent that is itself a daemon, as in our own tests, has sockets there: it stays writable. */
const COVER_SOCKETS = `set -e
"$1" -t tmpfs -o mode=0700,size=1m signalbox "$2"
shift 2
exec "$@"`

/**
 * Lays an empty folder over the daemon's, in which two are as they were. They are held open meanwhile, since they cannot be found any more.
 * At last it goes into its own folder anew: by way of the old one `..` would lead around the cover.
 */
const COVER_HOME = `set -e
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
  for (const root of asRoot)
    for (const cover of hidden && mount && mkdir && (setpriv || !root) ? [{ ...hidden, mount, mkdir, setpriv }, undefined] : [undefined])
      for (const bond of bonds) {
        const around: Isolation['around'] = (of) => [...bond, unshare, ...namespace(unshare, root, of, cover)]
        if (!(await works(around({ folder: hidden?.folder ?? '/', cwd: '/', needs: [] })))) continue
        return cover ? { isolation: 'namespace', around } : { isolation: 'namespace', around, exposed: uncovered(root) }
      }
  return MARKER_ONLY
}

function uncovered(root: boolean): string {
  const why = root ? 'setpriv is missing or cannot take from root the power over mounts' : 'mounts do not work in a user namespace here'
  return `${NOTHING_HIDDEN}: ${why}.`
}

type Cover = Hidden & { mount: string; mkdir: string; setpriv: string | undefined }

/**
 * Only root mounts: who is somebody else is root for that, and then again who they are, without any power over the mounts. Root stays root
 * and loses that power.
 */
function namespace(unshare: string, root: boolean, of: Started, cover: Cover | undefined): string[] {
  if (!cover) return [...(root ? [] : ['--user', '--map-current-user']), ...NAMESPACE]
  const ourselves = root ? [] : ['--user', `--map-user=${process.getuid?.()}`, `--map-group=${process.getgid?.()}`]
  const powerless = root && cover.setpriv ? [cover.setpriv, ...POWERLESS] : []
  const covered = ['/bin/sh', '-c', COVER_SOCKETS, 'sh', cover.mount, cover.sockets, ...homeCovered(of, cover)]
  return [...(root ? [] : AS_ROOT), ...MOUNTS, ...covered, unshare, ...ourselves, ...NAMESPACE, ...powerless]
}

function homeCovered({ folder, cwd, needs }: Started, { home, mount, mkdir }: Cover): string[] {
  if (needs.some((path) => pathInside(home, path))) return []
  const work = (isWithin(cwd, folder) ? undefined : pathInside(home, cwd)) ?? folder
  return ['/bin/sh', '-c', COVER_HOME, 'sh', folder, work, mount, home, mkdir, cwd]
}

/** That by which it is found below the folder, when it lies there: each of the two may be named by way of a link. */
function pathInside(folder: string, path: string): string | undefined {
  return [path, real(path)].find((one) => isWithin(folder, one) || isWithin(real(folder), one))
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
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
