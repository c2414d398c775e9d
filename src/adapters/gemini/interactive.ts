import { interactiveOf } from '../harness-shared/interactive.ts'
import { PROGRAM } from './program.ts'

export const gemini = interactiveOf(PROGRAM, ({ folder, mcp }) => ({
  // The worktree is ours, and what is in it comes from a repository that its person has registered.
  args: ['--skip-trust'],
  env: { GEMINI_CLI_SYSTEM_SETTINGS_PATH: `${folder}/settings.json` },
  files: {
    'settings.json': JSON.stringify({
      mcpServers: { signalbox: { httpUrl: mcp.url, headers: { Authorization: `Bearer \${SIGNALBOX_TOKEN}` } } },
    }),
  },
  signs: {
    ready: { shows: /Type your message/i },
    submitted: { shows: /esc to cancel/i },
    holds: /\[Pasted Text/,
    dialogs: [
      { shows: /Do you trust (?:the files in )?this folder/i, what: 'whether you trust this folder' },
      { shows: /How would you like to authenticate|Get started/i, what: 'you to sign in' },
      { shows: /Apply this change\?|Allow execution/i, what: 'for a permission' },
    ],
  },
}))
