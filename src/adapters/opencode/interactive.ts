import { interactiveOf } from '../harness-shared/interactive.ts'
import { PROGRAM } from './program.ts'

export const opencode = interactiveOf(PROGRAM, ({ folder, mcp }) => ({
  args: [],
  env: { OPENCODE_CONFIG: `${folder}/opencode.json` },
  files: {
    'opencode.json': JSON.stringify({
      mcp: {
        signalbox: { type: 'remote', url: mcp.url, headers: { Authorization: 'Bearer {env:SIGNALBOX_TOKEN}' }, oauth: false },
      },
    }),
  },
  signs: {
    ready: { shows: /Ask anything|ctrl\+p/i },
    submitted: { shows: /esc interrupt/i },
    holds: /\[Pasted/,
    dialogs: [{ shows: /Permission required/i, what: 'for a permission' }],
  },
}))
