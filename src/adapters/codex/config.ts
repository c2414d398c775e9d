import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'

/** A key of its configuration, and its value in TOML. */
export type Setting = [string, string]

/** Longer than any of our tools waits. */
const TOOL_TIMEOUT_SECONDS = 300

export const Name = z
  .string()
  .max(200)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a variable')

/** As arguments: on top of what the person has in ~/.codex, which stays in force. */
export function override([key, value]: Setting): string[] {
  return ['-c', `${key}=${value}`]
}

/** Codex mixes two servers of one name, and would not start; and the person's own would act in the person's name. */
export function ourServer(url: string): { key: string; settings: Setting[] } {
  const taken = namesServer(userConfig())
  const key = `mcp_servers.${taken ? 'signalbox_run' : 'signalbox'}`
  return {
    key,
    settings: [
      ...(taken ? [['mcp_servers.signalbox.enabled', 'false'] as Setting] : []),
      [`${key}.url`, toml(url)],
      [`${key}.bearer_token_env_var`, '"SIGNALBOX_TOKEN"'],
      [`${key}.tool_timeout_sec`, String(TOOL_TIMEOUT_SECONDS)],
    ],
  }
}

/** The variables in which the person's providers look for their keys. */
export function providerKeys(): string[] {
  const named = [...userConfig().matchAll(/^\s*env_key\s*=\s*["']([^"'\n]+)["']/gm)].map(([, name]) => name)
  return named.filter((name): name is string => Name.safeParse(name).success)
}

const SERVER = [
  /^\s*\[\s*mcp_servers\s*\.\s*["']?signalbox["']?\s*[.\]]/m,
  /^\s*mcp_servers\s*\.\s*["']?signalbox["']?\s*[.=]/m,
  /^\s*\[\s*mcp_servers\s*\]\s*$[^[]*?^\s*["']?signalbox["']?\s*[.=]/m,
]

function namesServer(config: string): boolean {
  return SERVER.some((pattern) => pattern.test(config))
}

function userConfig(): string {
  const folder = process.env.CODEX_HOME || join(homedir(), '.codex')
  return textOf(join(folder, 'config.toml')) ?? ''
}

export function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** A string of JSON is one of TOML. */
export const toml = (text: string) => JSON.stringify(text)
