import { interactiveOf } from '../harness-shared/interactive.ts'
import { ourServer, override, type Setting, toml } from './config.ts'
import { PROGRAM } from './program.ts'

export const codex = interactiveOf(PROGRAM, ({ cwd, mcp }) => {
  // The worktree is ours, and what is in it comes from a repository that its person has registered.
  const trusted: Setting = ['projects', `{ ${toml(cwd)} = { trust_level = "trusted" } }`]
  return {
    args: ['--no-daemon', ...[...ourServer(mcp.url).settings, trusted].flatMap(override)],
    signs: {
      ready: { shows: /^\s*[›>] /m },
      submitted: { shows: /esc to interrupt/i },
      holds: /\[Pasted Content/,
      dialogs: [
        { shows: /Do you trust the contents of this directory|allow Codex to work in this folder/i, what: 'whether you trust this folder' },
        { shows: /Sign in with ChatGPT|Provide your own API key/i, what: 'you to sign in' },
        { shows: /Meet GPT|Try new model|Use existing model/i, what: 'which model to use' },
        { shows: /Update available|Update now/i, what: 'whether to update' },
        { shows: /Would you like to run the following command|Press enter to confirm/i, what: 'for a permission' },
      ],
    },
  }
})
