import { Pencil } from 'lucide-react'
import { useState } from 'react'
import { type UseFormRegister, useForm } from 'react-hook-form'
import type { Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, TextField } from '../../../ui/kit/field.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import { patternsIn, SetupFields, type SetupFieldValues } from './setup-fields.tsx'

type Repo = Output<'repo_list'>['repos'][number]
type Fields = Record<'path' | 'base_branch' | 'checks', string> & SetupFieldValues

/** Where it is now, where work lands, what it is checked by and what a fresh checkout needs. */
export function EditRepo({ repo }: { repo: Repo }) {
  const [open, setOpen] = useState(false)
  const may = useMay()
  if (!may('repo_update')) return null
  return (
    <>
      <Button icon={Pencil} aria-label={`Edit ${repo.handle}`} onClick={() => setOpen(true)}>
        Edit
      </Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={`Edit ${visible(repo.handle)}`}>
        <Form repo={repo} onClose={() => setOpen(false)} />
      </Dialog>
    </>
  )
}

function Form({ repo, onClose }: { repo: Repo; onClose(): void }) {
  const { path, base_branch, checks, setup, files, check_files, cleanup, dev } = repo
  const before: Fields = {
    path,
    base_branch,
    checks: checks ?? '',
    setup: setup ?? '',
    files: files.join(', '),
    check_files: check_files.join(', '),
    cleanup: cleanup ?? '',
    dev: dev ?? '',
  }
  const { register, handleSubmit, formState, setValue } = useForm<Fields>({ defaultValues: before })
  const update = useAction('repo_update', { quiet: true, said: ({ message }) => visible(message), onSuccess: onClose })
  const save = handleSubmit((fields) => {
    const changed = (name: keyof Fields) => (fields[name].trim() === before[name] ? undefined : fields[name].trim())
    const command = (name: 'checks' | 'setup' | 'cleanup' | 'dev') => (changed(name) === '' ? null : changed(name))
    const patterns = (name: 'files' | 'check_files') => (changed(name) === undefined ? undefined : patternsIn(fields[name]))
    update.mutate({
      repo_id: repo.id,
      path: changed('path'),
      base_branch: changed('base_branch'),
      checks: command('checks'),
      setup: command('setup'),
      files: patterns('files'),
      check_files: patterns('check_files'),
      cleanup: command('cleanup'),
      dev: command('dev'),
    })
  })
  return (
    <form className="form" onSubmit={save}>
      <TextField
        label="Path"
        help="Where it is now, when you have moved it. Its worktrees follow."
        error={formState.errors.path?.message}
        {...register('path', { pattern: { value: /^\s*\//, message: 'An absolute path: it begins with a slash.' } })}
      />
      <TextField label="Base branch" help="Where work starts from, and where it lands." {...register('base_branch')} />
      <Suggested repo={repo} onUse={(name, text) => setValue(name, text)} />
      <TextField label="Checks" help="A command that must pass before work lands." {...register('checks')} />
      <SetupFields register={register as unknown as UseFormRegister<SetupFieldValues>} />
      <FormEnd error={update.error} busy={update.isPending} submit="Save" onCancel={onClose} />
    </form>
  )
}

/** What the files of the repository say and is not registered. It only fills in the form. */
function Suggested({ repo, onUse }: { repo: Repo; onUse(name: keyof Fields, text: string): void }) {
  const { data } = useTool('repo_propose', { repo_id: repo.id }, { follows: ['repo'], about: repo.id })
  if (!data?.proposed) return null
  const { because, problem, ...needs } = data.proposed
  const use = () => {
    for (const [name, value] of Object.entries(needs)) {
      const text = Array.isArray(value) ? value.join(', ') : value
      if (text) onUse(name as keyof typeof needs, text)
    }
  }
  return (
    <>
      {problem && <p className="error">{visible(problem)}</p>}
      {because.length > 0 && (
        <p>
          <span className="muted">More is suggested by {visible(because.join(', '))}.</span> <Button onClick={use}>Fill it in</Button>
        </p>
      )}
    </>
  )
}
