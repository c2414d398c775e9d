import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from 'react'
import type { CallError } from '../client.ts'
import { Button } from './button.tsx'

interface Label {
  label: string
  help?: ReactNode
  error?: string
}

export function TextField({ label, help, error, ...rest }: Label & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Labelled label={label} help={help} error={error}>
      {(own) => <input className="input" autoComplete="off" {...rest} {...own} />}
    </Labelled>
  )
}

export function TextArea({ label, help, error, ...rest }: Label & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Labelled label={label} help={help} error={error}>
      {(own) => <textarea className="input" rows={4} {...rest} {...own} />}
    </Labelled>
  )
}

/** The browser's own: it is right on a phone, with a keyboard and for a screen reader. */
export function SelectField({ label, help, error, children, ...rest }: Label & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Labelled label={label} help={help} error={error}>
      {(own) => (
        <select className="input select" {...rest} {...own}>
          {children}
        </select>
      )}
    </Labelled>
  )
}

/** Yes or no. */
export function CheckField({ label, help, error, ...rest }: Label & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Labelled label={label} help={help} error={error}>
      {(own) => <input className="check" type="checkbox" {...rest} {...own} />}
    </Labelled>
  )
}

interface FilterProps {
  label: string
  value: string | undefined
  onChange(value: string): void
  children: ReactNode
}

/** One of few, without a visible label: above a list. */
export function FilterSelect({ label, value, onChange, children }: FilterProps) {
  return (
    <select className="input select" aria-label={label} value={value ?? ''} onChange={(event) => onChange(event.target.value)}>
      {children}
    </select>
  )
}

interface Own {
  id: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
}

function Labelled({ label, help, error, children }: Label & { children(own: Own): ReactNode }) {
  const id = useId()
  const note = error ?? help
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': note ? `${id}-note` : undefined, 'aria-invalid': error ? true : undefined })}
      {note && (
        <p id={`${id}-note`} className={error ? 'field-error' : 'field-help'}>
          {note}
        </p>
      )}
    </div>
  )
}

/** Why a form was refused, in the daemon's words. */
export function Refused({ error }: { error: CallError | null }) {
  if (!error) return null
  return (
    <p className="refused" role="alert">
      {error.message} {error.body.hint && <span>{error.body.hint}</span>}
    </p>
  )
}

/** The end of every form: why it was refused, the way out, and the way on. */
export function FormEnd({ error, busy, submit, onCancel }: { error: CallError | null; busy: boolean; submit: string; onCancel(): void }) {
  return (
    <>
      <Refused error={error} />
      <div className="actions">
        <Button onClick={onCancel}>Cancel</Button>
        <Button kind="primary" type="submit" busy={busy}>
          {submit}
        </Button>
      </div>
    </>
  )
}
