/** As the server is called in the brief. */
export const SERVER = 'signalbox'

/** Without it the program gives up on any call after 60 s; our waits take up to 240 s. */
const TOOL_TIMEOUT_MS = 600_000
export const TOOL_TIMEOUT = { MCP_TOOL_TIMEOUT: String(TOOL_TIMEOUT_MS) }

/** The token is not in it: the program reads it out of its environment. */
export function mcpFile(url: string): string {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the program fills it in
  const server = { type: 'http', url, headers: { Authorization: 'Bearer ${SIGNALBOX_TOKEN}' }, timeout: TOOL_TIMEOUT_MS }
  return `${JSON.stringify({ mcpServers: { [SERVER]: server } }, null, 2)}\n`
}
