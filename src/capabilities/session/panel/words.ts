/** What became of the first prompt, as the page and the log say it. */
export const PROMPTS: Record<string, { tone: string; says: string; said: string }> = {
  none: { tone: 'neutral', says: '', said: 'sent no prompt to' },
  waiting: { tone: 'blue', says: 'The agent is starting; then it is told its task.', said: 'waits with the prompt of' },
  needs_input: { tone: 'amber', says: 'Answer it here, or attach.', said: 'needs somebody at' },
  sent: { tone: 'green', says: 'The agent was told its task.', said: 'told its task to the agent in' },
  not_verified: { tone: 'amber', says: 'Look whether the agent was told its task.', said: 'is not sure of the prompt in' },
  failed: { tone: 'red', says: 'The agent was not told its task; tell it yourself.', said: 'could not tell its task to the agent in' },
}
