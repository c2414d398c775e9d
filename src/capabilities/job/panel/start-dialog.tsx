import { type FormEvent, useEffect, useState } from 'react'
import type { Input } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { CopyLine } from '../../../ui/kit/copy.tsx'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, SelectField, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { Loaded } from '../../../ui/kit/states.tsx'
import { useAction, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import type { Harness } from './data.ts'
import { limitsOf, MeterFields, type MeterTexts, NO_LIMITS } from './meter-fields.tsx'

interface Props {
  task: TaskOnPage
  open: boolean
  /** The agent that was there goes on; otherwise another begins. */
  resume: boolean
  onClose(): void
  onStarted(): void
}

interface Fields {
  harness: string
  model: string
  repo: string
  /** One argument a line: no shell reads it. */
  command: string
  approvals: Policy | ''
  message: string
  limits: MeterTexts
}

const EMPTY: Fields = { harness: '', model: '', repo: '', command: '', approvals: '', message: '', limits: NO_LIMITS }

type Policy = NonNullable<NonNullable<Input<'job_submit'>['options']>['approvals']>

const POLICIES: Record<Policy, string> = {
  allow: 'Do everything without asking',
  ask: 'Ask a person first',
  deny: 'Be refused what needs permission',
}

/** The one that is told on the spot what to do. */
const COMMAND = 'command'

export function StartDialog({ task, open, resume, onClose, onStarted }: Props) {
  const [fields, setFields] = useState(EMPTY)
  const set = (change: Partial<Fields>) => setFields((before) => ({ ...before, ...change }))
  const submit = useAction('job_submit', {
    quiet: true,
    onSuccess() {
      setFields(EMPTY)
      onClose()
      onStarted()
    },
  })
  const { reset } = submit
  useEffect(() => {
    if (open) reset()
  }, [open, reset])
  const send = (chosen: Harness | undefined) => (event: FormEvent) => {
    event.preventDefault()
    submit.mutate(resume ? resumed(task.id, fields) : started(task.id, fields, chosen))
  }
  const end = (
    <FormEnd error={submit.error} busy={submit.isPending} submit={resume ? 'Resume the agent' : 'Start the agent'} onCancel={onClose} />
  )
  const message = (
    <TextArea
      label="Message"
      rows={3}
      placeholder={resume ? 'What it should do now.' : 'What it should know besides the task.'}
      value={fields.message}
      onChange={(event) => set({ message: event.target.value })}
    />
  )
  const limits = (counted?: string[]) => (
    <details className="start-limits" open={Object.values(fields.limits).some(Boolean)}>
      <summary>Limits of this run</summary>
      <MeterFields value={fields.limits} counted={counted} onChange={(next) => set({ limits: next })} />
    </details>
  )
  return (
    <Dialog
      open={open}
      onClose={onClose}
      wide
      firm={fields.message !== ''}
      title={resume ? `Resume the agent of ${task.handle}` : `Start an agent on ${task.handle}`}
      description={
        resume
          ? 'It goes on in the same worktree, in its own session where the program can.'
          : 'It works in a worktree of its own, until it asks for review.'
      }
    >
      {resume ? (
        <form className="form" onSubmit={send(undefined)}>
          {message}
          {limits()}
          {end}
        </form>
      ) : (
        <Harnesses chosen={fields.harness}>
          {(list, chosen) => (
            <form className="form" onSubmit={send(chosen)}>
              <HarnessChoice list={list} chosen={chosen} onChoose={(harness) => set({ harness })} />
              {chosen?.name === COMMAND && (
                <TextArea
                  label="Command"
                  rows={3}
                  className="input mono"
                  help="The program and its arguments, one a line. No shell reads it."
                  value={fields.command}
                  onChange={(event) => set({ command: event.target.value })}
                />
              )}
              {chosen?.can.includes('approve') && (
                <SelectField
                  label="What it needs permission for, it should"
                  help="Asked questions appear on this page and under Approvals."
                  value={fields.approvals}
                  onChange={(event) => set({ approvals: event.target.value as Fields['approvals'] })}
                >
                  <option value="">As the setting runs.approvals says</option>
                  {Object.entries(POLICIES).map(([policy, words]) => (
                    <option key={policy} value={policy}>
                      {words}
                    </option>
                  ))}
                </SelectField>
              )}
              {message}
              <div className="form-row">
                <TextField
                  label="Model"
                  placeholder="The program's own choice"
                  value={fields.model}
                  onChange={(event) => set({ model: event.target.value })}
                />
                <RepoChoice project={task.project_id} value={fields.repo} onChange={(repo) => set({ repo })} />
              </div>
              {limits(chosen?.meters)}
              {end}
            </form>
          )}
        </Harnesses>
      )}
    </Dialog>
  )
}

/** Which programs there are is looked up when somebody asks: they come and go. */
function Harnesses({ chosen, children }: { chosen: string; children(list: Harness[], chosen: Harness | undefined): React.ReactNode }) {
  const actions = useTool('job_actions', {})
  const setting = useTool('setting_get', { key: 'runs.default_harness' })
  const preferred = setting.data?.settings[0]?.value
  // Both first: what is chosen must not become another under somebody's hand.
  return (
    <Loaded read={{ ...actions, data: setting.isPending ? undefined : actions.data }}>
      {({ harnesses }) => {
        const rank = ({ name, available, signed_in }: Harness) => (!available ? 3 : name === preferred ? 0 : signed_in ? 1 : 2)
        const sorted = harnesses.toSorted((a, b) => rank(a) - rank(b))
        const named = (name: unknown) => sorted.find((harness) => harness.available && harness.name === name)
        // As the daemon does: one without a model is started only where somebody says so.
        const ready = sorted.filter(({ available, signed_in }) => available && signed_in)
        return children(sorted, named(chosen) ?? named(preferred) ?? (ready.length === 1 ? ready[0] : undefined))
      }}
    </Loaded>
  )
}

function HarnessChoice({ list, chosen, onChoose }: { list: Harness[]; chosen: Harness | undefined; onChoose(name: string): void }) {
  return (
    <fieldset className="harnesses">
      <legend>Agent program</legend>
      {list.map(({ name, title, available, version, install, signed_in }) => (
        <div key={name} className={`harness ${name === chosen?.name ? 'harness-chosen' : ''}`}>
          <label>
            <input type="radio" name="harness" checked={name === chosen?.name} disabled={!available} onChange={() => onChoose(name)} />
            <span>{title}</span>
            {available ? version && <span className="muted harness-version">{version}</span> : <Badge>not installed</Badge>}
            {available && signed_in === false && <Badge>not logged in</Badge>}
          </label>
          {!available && install && <CopyLine label={`how to install ${title}`} text={install} />}
        </div>
      ))}
    </fieldset>
  )
}

/** Asked only where there is a choice. */
function RepoChoice({ project, value, onChange }: { project: string; value: string; onChange(repo: string): void }) {
  const repos = useTool('repo_list', { project_id: project, limit: 50 }).data?.repos ?? []
  if (repos.length < 2) return null
  return (
    <SelectField label="Repository" value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">Choose one</option>
      {repos.map(({ id, handle }) => (
        <option key={id} value={id}>
          {handle}
        </option>
      ))}
    </SelectField>
  )
}

function started(task_id: string, fields: Fields, chosen: Harness | undefined): Input<'job_submit'> {
  const command = chosen?.name === COMMAND ? fields.command.split('\n').filter(Boolean) : []
  const approvals = chosen?.can.includes('approve') ? fields.approvals : ''
  const options = { ...(command.length ? { command } : {}), ...(approvals ? { approvals } : {}) }
  return {
    task_id,
    action: 'start_agent',
    harness: chosen?.name,
    model: fields.model.trim() || undefined,
    repo_id: fields.repo || undefined,
    options: Object.keys(options).length ? options : undefined,
    ...shared(fields),
  }
}

function resumed(task_id: string, fields: Fields): Input<'job_submit'> {
  return { task_id, action: 'resume_agent', ...shared(fields) }
}

function shared({ message, limits }: Fields) {
  const given = limitsOf(limits)
  return { message: message.trim() || undefined, limits: Object.keys(given).length ? given : undefined }
}
