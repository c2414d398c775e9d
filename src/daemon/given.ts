import { UsageError } from '../kernel/error.ts'
import type { Withheld } from '../surfaces/cli/call.ts'
import { readAddress, readSecret } from './home.ts'

type Env = Record<string, string | undefined>

/** The daemon that this environment belongs to. Runs and sessions are given its MCP address. */
export function urlOf({ SIGNALBOX_URL }: Env): string | undefined {
  if (!SIGNALBOX_URL) return undefined
  if (!URL.canParse(SIGNALBOX_URL)) throw new UsageError(`SIGNALBOX_URL=${SIGNALBOX_URL} is not a URL; use one like http://127.0.0.1:3001.`)
  return new URL(SIGNALBOX_URL).origin
}

export function tokenOf({ SIGNALBOX_TOKEN, SIGNALBOX_TOKEN_FILE: file }: Env): string | undefined {
  if (SIGNALBOX_TOKEN || !file) return SIGNALBOX_TOKEN || undefined
  const token = readSecret(file)
  // An agent whose token is gone has ended; with the owner's it would become the owner.
  if (!token) throw new UsageError(`There is no token in ${file}, which SIGNALBOX_TOKEN_FILE names.`)
  return token
}

/** Whether the daemon of this state folder is the one at the URL. */
export function leadsElsewhere(url: string, home: string): Withheld | undefined {
  return isSamePlace(readAddress(home)?.url ?? '', url) ? undefined : atOdds(url, `SIGNALBOX_HOME=${home}`)
}

export function atOdds(url: string, other: string): Withheld {
  return {
    message: `SIGNALBOX_URL names ${url}, but ${other} does not lead there, so the token of this environment was not sent.`,
    hint: `Unset ${other.split('=')[0]} to go to ${url}; for the other daemon unset SIGNALBOX_URL, SIGNALBOX_TOKEN and SIGNALBOX_TOKEN_FILE.`,
  }
}

const THIS_MACHINE = ['127.0.0.1', 'localhost', '[::1]', '0.0.0.0', '[::]']

/** One port of this machine under two names; what is sent goes to the one that was written. */
export function isSamePlace(written: string, other: string): boolean {
  if (!URL.canParse(written) || !URL.canParse(other)) return false
  const [a, b] = [new URL(written), new URL(other)]
  return a.port === b.port && (a.hostname === b.hostname || [a, b].every(({ hostname }) => THIS_MACHINE.includes(hostname)))
}
