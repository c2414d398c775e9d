import { useEffect, useState } from 'react'
import type { CallError, Input } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { CheckField, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useAction } from '../../../ui/live.tsx'
import type { Setting } from './settings.tsx'
import { valueInWords } from './words.ts'

type Value = Input<'setting_update'>['value']

/** One setting: typed into, then saved. What somebody else saves meanwhile is shown, unless something is being typed here. */
export function SettingRow({ setting }: { setting: Setting }) {
  const stored = asText(setting.value)
  const [text, setText] = useState(stored)
  const [typed, setTyped] = useState(false)
  useEffect(() => {
    if (!typed) setText(stored)
  }, [stored, typed])
  const update = useAction('setting_update', { quiet: true, onSuccess: () => setTyped(false) })
  const change = (next: string) => {
    update.reset()
    setTyped(next !== stored)
    setText(next)
  }
  return (
    <li className="setting">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          update.mutate({ key: setting.key, value: asValue(text, setting.default) })
        }}
      >
        <Editor setting={setting} text={text} onChange={change} error={update.error} />
        <div className="setting-foot">
          {setting.changed_at && setting.changed_by && (
            <span className="muted">
              Changed by <Who id={setting.changed_by} /> <Time at={setting.changed_at} />; default: {valueInWords(setting.default)}
            </span>
          )}
          {setting.changed_at && (
            <Button
              kind="quiet"
              aria-label={`Back to default: ${setting.key}`}
              disabled={update.isPending}
              onClick={() => update.mutate({ key: setting.key, value: null })}
            >
              Back to default
            </Button>
          )}
          {typed && (
            <>
              <Button kind="quiet" onClick={() => change(stored)}>
                Discard
              </Button>
              <Button kind="primary" type="submit" aria-label={`Save ${setting.key}`} busy={update.isPending}>
                Save
              </Button>
            </>
          )}
        </div>
      </form>
    </li>
  )
}

interface EditorProps {
  setting: Setting
  text: string
  onChange(text: string): void
  error: CallError | null
}

/** By what its default is; what a value may be, the daemon says when it refuses one. */
function Editor({ setting, text, onChange, error }: EditorProps) {
  const common = { label: setting.key, help: setting.description, error: error?.message }
  if (typeof setting.default === 'boolean')
    return <CheckField {...common} checked={text === 'true'} onChange={(event) => onChange(String(event.target.checked))} />
  if (Array.isArray(setting.default))
    return (
      <TextArea
        {...common}
        help={`${setting.description}. One a line.`}
        className="input mono"
        rows={Math.max(2, text.split('\n').length)}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
    )
  const number = typeof setting.default === 'number'
  return (
    <TextField {...common} type={number ? 'number' : 'text'} step="any" value={text} onChange={(event) => onChange(event.target.value)} />
  )
}

function asText(value: unknown): string {
  return Array.isArray(value) ? value.join('\n') : String(value ?? '')
}

function asValue(text: string, like: unknown): Value {
  if (typeof like === 'boolean') return text === 'true'
  if (typeof like === 'number') return text.trim() === '' ? text : Number(text)
  if (!Array.isArray(like)) return text
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}
