import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, rmSync } from 'node:fs'
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net'
import { join } from 'node:path'

/**
 * Real pipes. What Node makes for a child are sockets, and a script that writes to /dev/stdout or reads /dev/stdin cannot open those;
 * a file in their place would be cut short by the first `> /dev/stdout`.
 */
export interface Pipes {
  /** Ends for the agent; closed here once it has them, or the end of its output would never be seen. */
  agent: { stdin: number | 'ignore'; stdout: number; stderr: number }
  /** Everything that was printed has been taken. */
  drained: Promise<unknown>
  in: Socket | undefined
  handedOver(): void
}

const BUFFER_BYTES = 64 * 1024

export function createPipes(folder: string, withInput: boolean, take: (stream: 'out' | 'err', bytes: Buffer) => void): Pipes {
  const names = ['out', 'err', ...(withInput ? ['in'] : [])].map((name) => join(folder, `${name}.pipe`))
  for (const path of names) rmSync(path, { force: true })
  execFileSync('mkfifo', ['-m', '600', ...names], { stdio: 'pipe' })
  const [out, err, input] = names.map(openBoth)
  for (const path of names) rmSync(path)
  if (!out || !err) throw new Error('a pipe is missing')
  const given = [out.write, err.write, ...(input ? [input.read] : [])]
  return {
    agent: { stdin: input?.read ?? 'ignore', stdout: out.write, stderr: err.write },
    drained: Promise.all([drain(out.read, (bytes) => take('out', bytes)), drain(err.read, (bytes) => take('err', bytes))]),
    in: input && new Socket({ fd: input.write, readable: false, writable: true }),
    handedOver: () => given.forEach(closeSync),
  }
}

/** Through one buffer: with a new one for each read the collector lets them pile up. */
function drain(fd: number, take: (bytes: Buffer) => void): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  const callback = (length: number) => {
    take(buffer.subarray(0, length))
    return true
  }
  // The types know this option only where a connection is made.
  const options: SocketConstructorOpts & Pick<ConnectOpts, 'onread'> = { fd, readable: true, writable: false, onread: { buffer, callback } }
  const socket = new Socket(options)
  socket.on('error', () => socket.destroy())
  return new Promise((resolve) => socket.once('close', () => resolve()).resume())
}

/** Through a third end, since each of the two would wait for the other. */
function openBoth(path: string): { read: number; write: number } {
  const both = openSync(path, constants.O_RDWR)
  try {
    return { read: openSync(path, constants.O_RDONLY), write: openSync(path, constants.O_WRONLY) }
  } finally {
    closeSync(both)
  }
}
