import { interactiveOf } from '../harness-shared/interactive.ts'
import { PROGRAM } from './program.ts'
import { mcpFile, TOOL_TIMEOUT } from './server.ts'

/** Folder of the events that its hooks write down. */
const HOOKS = 'hooks'

/** Its hooks say when it takes a prompt and which one it took; the screen is read only for what it asks. */
export const claude = interactiveOf(PROGRAM, ({ folder, mcp }) => ({
  args: ['--mcp-config', `${folder}/mcp.json`, '--settings', `${folder}/settings.json`],
  env: TOOL_TIMEOUT,
  files: {
    'mcp.json': mcpFile(mcp.url),
    'settings.json': JSON.stringify({ hooks: hooksInto(folder, ['SessionStart', 'UserPromptSubmit']) }),
  },
  signs: {
    hooks: `${folder}/${HOOKS}`,
    ready: { event: 'SessionStart' },
    submitted: { event: 'UserPromptSubmit' },
    holds: /\[Pasted text/,
    dialogs: [
      {
        shows: /trust (?:the files in )?this folder|Is this a project you created or one you trust/i,
        what: 'whether you trust this folder',
      },
      { shows: /Detected a custom API key|Do you want to use this API key/i, what: 'whether to use the API key of your environment' },
      { shows: /Bypass Permissions mode/i, what: 'whether to run without asking for permission' },
      { shows: /Choose the text style|Select login method|Let's get started/i, what: 'how to set it up: it was never used before' },
      { shows: /Do you want to (?:proceed|make this edit|create|allow)/i, what: 'for a permission' },
    ],
  },
}))

/** Each event is a file that is whole when it has its name: one that two wrote at once would be neither's. */
function hooksInto(folder: string, events: string[]) {
  const into = quoted(`${folder}/${HOOKS}`)
  const command = (event: string) =>
    `mkdir -p -m 700 ${into} && f=$(mktemp ${into}/.${event}.XXXXXXXX) && cat >"$f" && mv "$f" ${into}/${event}.$(date +%s%N)."$$".json`
  return Object.fromEntries(events.map((event) => [event, [{ hooks: [{ type: 'command', command: command(event) }] }]]))
}

/** For the one shell there is: that of the program's own hooks. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`
}
