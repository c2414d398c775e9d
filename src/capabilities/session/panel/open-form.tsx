import { SquareTerminal } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { CopyLine } from '../../../ui/kit/copy.tsx'
import { Refused, SelectField, TextArea } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'

type Program = Output<'session_exists'>['programs'][number]

export function OpenForm({ task, programs }: { task: TaskOnPage; programs: Program[] }) {
  const there = programs.filter(({ available }) => available)
  const [program, setProgram] = useState('')
  const [message, setMessage] = useState('')
  const open = useAction('session_open', { quiet: true })
  const chosen = there.find(({ name }) => name === program) ?? there[0]
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (chosen) open.mutate({ task_id: task.id, program: chosen.name, message: message.trim() || undefined })
  }
  return (
    <form className="form open-terminal" onSubmit={submit}>
      <SelectField label="Program" value={chosen?.name ?? ''} onChange={(event) => setProgram(event.target.value)}>
        {programs.map(({ name, title, available }) => (
          <option key={name} value={name} disabled={!available}>
            {available ? title : `${title} (not installed)`}
          </option>
        ))}
      </SelectField>
      {chosen?.name !== 'shell' && (
        <TextArea
          label="Message"
          rows={2}
          placeholder="What the agent should know besides the task."
          value={message}
          onChange={(event) => setMessage(event.target.value)}
        />
      )}
      {programs.map(({ name, title, install }) => install && <CopyLine key={name} label={`how to install ${title}`} text={install} />)}
      <Refused error={open.error} />
      <div>
        <Button type="submit" kind="primary" icon={SquareTerminal} busy={open.isPending} disabled={!chosen}>
          Open terminal
        </Button>
      </div>
    </form>
  )
}
