import { CornerDownLeft } from 'lucide-react'
import { type FormEvent, useId, useState } from 'react'
import type { Input } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { Refused } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'

type Key = NonNullable<Input<'session_type'>['keys']>[number]

const KEYS: [Key, string][] = [
  ['Enter', 'Enter'],
  ['Escape', 'Esc'],
  ['Tab', 'Tab'],
  ['Up', '↑'],
  ['Down', '↓'],
  ['C-c', 'Ctrl C'],
]

/** What was typed stays until the terminal has it. */
export function TypeBox({ task }: { task: string }) {
  const id = useId()
  const [text, setText] = useState('')
  const send = useAction('session_type', {
    quiet: true,
    onSuccess: (_, input) => {
      if (input.text) setText('')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!send.isPending && text) send.mutate({ task_id: task, text, keys: ['Enter'] })
  }
  return (
    <form className="type-box" onSubmit={submit}>
      <label className="visually-hidden" htmlFor={id}>
        Type into the terminal
      </label>
      <input
        id={id}
        className="input mono"
        placeholder="Type into the terminal …"
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit" icon={CornerDownLeft} busy={send.isPending} disabled={!text}>
        Send
      </Button>
      <fieldset className="type-keys" aria-label="Keys">
        {KEYS.map(([key, label]) => (
          <Button
            key={key}
            kind="quiet"
            aria-label={key}
            disabled={send.isPending}
            onClick={() => send.mutate({ task_id: task, keys: [key] })}
          >
            {label}
          </Button>
        ))}
      </fieldset>
      <Refused error={send.error} />
    </form>
  )
}
