import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PROGRAM as CLAUDE } from '../claude/program.ts'
import { PROGRAM as CODEX } from '../codex/program.ts'
import { PROGRAM as GEMINI } from '../gemini/program.ts'
import { PROGRAM as OPENCODE } from '../opencode/program.ts'
import { harnesses } from '../programs.ts'
import { accountOf } from './account.ts'
import type { Program } from './program.ts'

function home(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-account-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

const signedIn = async ({ account }: Program, files: Record<string, string> = {}, env: Record<string, string> = {}) =>
  (await accountOf(account, env, home(files))()).signedIn

test.for([
  ['Claude Code by its file', CLAUDE, { '.claude/.credentials.json': '{}' }, {}],
  ['Claude Code by the account that it names', CLAUDE, { '.claude.json': '{"oauthAccount": {"a": 1}}' }, {}],
  ['Claude Code by a key', CLAUDE, {}, { ANTHROPIC_API_KEY: 'x' }],
  ['Codex by its file', CODEX, { '.codex/auth.json': '{}' }, {}],
  ['Codex by a provider of its own', CODEX, { '.codex/config.toml': 'model_provider = "lab"\n' }, {}],
  ['Gemini CLI by its file', GEMINI, { '.gemini/oauth_creds.json': '{}' }, {}],
  ['opencode by its file', OPENCODE, { '.local/share/opencode/auth.json': '{"x": {"type": "api"}}' }, {}],
  ['opencode by a provider of its own', OPENCODE, { '.config/opencode/opencode.json': '{"provider": {}}' }, {}],
] as const)('[H42] %s is seen to be logged in', async ([, program, files, env]) => {
  expect(await signedIn(program, files, env)).toBe(true)
})

test.for([
  ['Claude Code', CLAUDE, { '.claude.json': '{"oauthAccount": null}', '.claude/settings.json': '{}' }],
  ['Codex', CODEX, { '.codex/config.toml': '# model_provider = "lab"\n' }],
  ['Gemini CLI', GEMINI, { '.gemini/google_accounts.json': '{"active": null}' }],
  ['opencode', OPENCODE, { '.local/share/opencode/auth.json': '{}' }],
] as const)('[H42] %s that was only started once is not, and it is said how to log in', async ([, { account }, files]) => {
  expect(await accountOf(account, {}, home(files))()).toEqual({ signedIn: false, how: expect.stringContaining('in a terminal') })
})

test('[H42] what is no program of its own is started only by its name', () => {
  expect(harnesses.names().filter((name) => !harnesses.get(name)?.account)).toEqual(['command', 'scripted', 'acp'])
})
