import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Spec } from '../../runner/spec.ts'

export type Isolation = Pick<Spec, 'isolation' | 'around'>

const PROBE_MS = 5_000

const MARKER_ONLY: Isolation = { isolation: 'marker', around: [] }

const NAMESPACE = ['--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'slave']
const AS_OURSELVES = ['--user', '--map-current-user']

/** What this machine has to keep an agent's tree together, found out by trying. */
export async function probeIsolation(path: string | undefined): Promise<Isolation> {
  const [unshare, setpriv] = ['unshare', 'setpriv'].map((name) => findIn(path, name))
  if (process.platform !== 'linux' || !unshare) return MARKER_ONLY
  // A user namespace hides from root whatever belongs to others, so root goes without as long as it can.
  const flags = process.getuid?.() === 0 ? [[], AS_OURSELVES] : [AS_OURSELVES]
  // A runner that is killed takes its agent along; without it the daemon does, when it looks.
  const bonds = setpriv ? [[setpriv, '--pdeathsig', 'KILL'], []] : [[]]
  for (const bond of bonds)
    for (const user of flags) {
      const around = [...bond, unshare, ...user, ...NAMESPACE]
      if (await works(around)) return { isolation: 'namespace', around }
    }
  return MARKER_ONLY
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
