/** Short for a longer command: what people do all day. */
export const SHORT: Record<string, { does: string; means: string[] }> = {
  start: { does: 'start an agent on a task: signalbox start T-1', means: ['job', 'submit', '--action', 'start_agent'] },
  stop: { does: 'stop the agent of a task; what it did is kept', means: ['job', 'submit', '--action', 'stop_agent'] },
  tell: {
    does: 'write to the agent of a task while it works: signalbox tell T-1 --message TEXT',
    means: ['job', 'submit', '--action', 'message_agent'],
  },
  interrupt: {
    does: 'end what the agent of a task does now; it waits to be told how to go on',
    means: ['job', 'submit', '--action', 'interrupt_agent'],
  },
  resume: { does: 'let the agent of a task go on', means: ['job', 'submit', '--action', 'resume_agent'] },
  undo: { does: 'bring back what was saved of the work on a task', means: ['work', 'undo'] },
  preview: { does: 'start the program in the worktree of a task and show its link: signalbox preview T-1', means: ['preview', 'start'] },
  sync: { does: 'let your branches follow what was merged: signalbox sync web-shop', means: ['repo', 'sync'] },
}

/** The commands that are no tools: what they do, and the words that can stand behind them. */
export const BUILT_IN: Record<string, { does: string; verbs?: string[] }> = {
  status: { does: 'what needs you now, and how the daemon is' },
  open: { does: 'open the dashboard, signed in' },
  attach: { does: 'show the terminal of a PAIR task in this one: signalbox attach T-1' },
  ...Object.fromEntries(Object.entries(SHORT).map(([name, { does }]) => [name, { does }])),
  events: { does: 'follow what happens, one line an event' },
  tools: { does: 'list every verb with what it does' },
  help: { does: 'explain a noun or a verb: signalbox help task create' },
  completion: { does: 'print the script that lets your shell complete commands', verbs: ['bash', 'zsh', 'fish'] },
  serve: { does: 'start the daemon' },
  mcp: { does: "MCP on stdin/stdout, for an agent's configuration" },
  db: { does: 'look after the database', verbs: ['backup', 'restore', 'check', 'copy'] },
  audit: { does: 'read, verify or export the record of what was done', verbs: ['tail', 'verify', 'export'] },
}
