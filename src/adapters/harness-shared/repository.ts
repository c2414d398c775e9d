import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Launch } from '../../ports/harness.ts'

/**
 * What a program takes from the folder that it works in, and with it runs programs or grants itself permissions, where it has no switch
 * against that. Gemini CLI has one, the untrusted folder, but without our tools; that of opencode leaves its plug-ins on.
 */
export const TAKEN_UNASKED = {
  gemini: ['.env', ...['.env', 'settings.json', 'policies', 'agents', 'commands', 'extensions', 'hooks'].map((name) => `.gemini/${name}`)],
  opencode: ['opencode.json', 'opencode.jsonc', '.opencode'],
  'codex-acp': ['.codex'],
}

/** Throws where somebody is asked, or all is refused, and the branch could answer in their place. */
export function refuseTaken({ cwd, approvals }: Pick<Launch, 'cwd' | 'approvals'>, title: string, files: string[]): void {
  const found = approvals === 'allow' ? undefined : files.find((file) => existsSync(join(cwd, file)))
  if (found)
    throw new Error(
      `${title} does what ${found} of this branch says without asking anybody, and cannot be told not to. ` +
        `Take ${found} off the branch, or start the agent with approvals "allow".`,
    )
}
