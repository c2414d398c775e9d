export const LIMIT = 'setup.minutes'
export const PASSED = 'setup.pass_environment'
export const NOT_WANTED = 'The setup was ended: nobody waits for it any more, or it was changed.'
const SHOWN_LINES = 20

/** With its last lines: whoever reads it wants to know why, not only that. */
export function setupFailed(command: string, { how, log }: { how: string; log: string }): string {
  return `Setup failed: \`${command}\` ${how}.${lastLines(log)}`.slice(0, 4_000)
}

/** To stand behind a sentence; nothing when nothing was printed. */
export function lastLines(log: string): string {
  const lines = log.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n')
  return lines && `\n${lines}`
}
