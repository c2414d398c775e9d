/** The commands that are no tools: what they do, and the words that can stand behind them. */
export const BUILT_IN: Record<string, { does: string; verbs?: string[] }> = {
  status: { does: 'what needs you now, and how the daemon is' },
  open: { does: 'open the dashboard, signed in' },
  events: { does: 'follow what happens, one line an event' },
  tools: { does: 'list every verb with what it does' },
  help: { does: 'explain a noun or a verb: signalbox help task create' },
  completion: { does: 'print the script that lets your shell complete commands', verbs: ['bash', 'zsh', 'fish'] },
  serve: { does: 'start the daemon' },
  mcp: { does: "MCP on stdin/stdout, for an agent's configuration" },
  db: { does: 'look after the database', verbs: ['backup', 'restore', 'check', 'copy'] },
  audit: { does: 'read, verify or export the record of what was done', verbs: ['tail', 'verify', 'export'] },
}
