import { Send } from 'lucide-react'
import { type FormEvent, type KeyboardEvent, useId, useState } from 'react'
import { Button } from '../../../ui/kit/button.tsx'
import { Refused } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'
import type { Job } from './data.ts'

/** A word to the agent while it works. What was typed stays until the daemon has it. */
export function MessageBox({ task, run, jobs }: { task: string; run: string; jobs: Job[] }) {
  const id = useId()
  const [text, setText] = useState('')
  const send = useAction('job_submit', { quiet: true, onSuccess: () => setText('') })
  const last = jobs.find(({ action, run_id }) => action === 'message_agent' && run_id === run)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const message = text.trim()
    if (message && !send.isPending) send.mutate({ task_id: task, action: 'message_agent', message })
  }
  const keyed = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) submit(event)
  }
  return (
    <form className="message-box" onSubmit={submit}>
      <label className="visually-hidden" htmlFor={id}>
        Message to the agent
      </label>
      <textarea
        id={id}
        className="input"
        rows={1}
        placeholder="Write to the agent …"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={keyed}
      />
      <Button type="submit" icon={Send} busy={send.isPending} disabled={!text.trim()}>
        Send
      </Button>
      <Refused error={send.error} />
      {last?.state === 'failed' && <p className="field-error">The last message did not arrive: {last.reason}</p>}
      {last?.state === 'running' && <p className="field-help">The last message is on its way.</p>}
    </form>
  )
}
