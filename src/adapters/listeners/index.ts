import { connect } from 'node:net'
import type { Listeners } from '../../ports/listeners.ts'

/** Programs listen on either, and some on one of them only. */
const ADDRESSES = ['127.0.0.1', '::1']
const LONGEST_MS = 1_000

export const listeners: Listeners = {
  async answering(ports) {
    const found = await Promise.all(ports.map(async (port) => ((await answers(port)) ? port : undefined)))
    return found.find((port) => port !== undefined)
  },
}

async function answers(port: number): Promise<boolean> {
  return (await Promise.all(ADDRESSES.map((host) => knock(host, port)))).includes(true)
}

function knock(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: LONGEST_MS })
    const end = (answered: boolean) => {
      socket.destroy()
      resolve(answered)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('timeout', () => end(false))
  })
}
