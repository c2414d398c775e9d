import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Launch } from '../../ports/harness.ts'

/** As session/new takes it. */
export interface McpServer {
  name: string
  command: string
  args: string[]
  env: { name: string; value: string }[]
}

export const OURS = 'signalbox'

const PROGRAMS = ['../bin/signalbox.js', '../../../bin/signalbox.js'].map((path) => fileURLToPath(new URL(path, import.meta.url)))

/**
 * Our tools, by the pipe: over HTTP the token would stand in a header of session/new, and so in the spool. The pipe also finds a daemon that
 * was restarted somewhere else. Some programs give their servers hardly any environment, so all that it needs stands here.
 */
export function toolsServer({ run, mcp }: Pick<Launch, 'run' | 'mcp'>): McpServer {
  const { SIGNALBOX_HOME, HOME } = process.env
  const env = {
    SIGNALBOX_TOKEN_FILE: mcp.tokenFile,
    // The one of the agent's environment is where the daemon was when it began.
    SIGNALBOX_URL: '',
    SIGNALBOX_RUN: run,
    ...(SIGNALBOX_HOME ? { SIGNALBOX_HOME: resolve(SIGNALBOX_HOME) } : {}),
    ...(HOME ? { HOME } : {}),
  }
  return {
    name: OURS,
    command: process.execPath,
    args: [PROGRAMS.find((file) => existsSync(file)) ?? (PROGRAMS[0] as string), 'mcp'],
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
  }
}
