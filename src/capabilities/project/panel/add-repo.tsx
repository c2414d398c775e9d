import { useState } from 'react'
import { type UseFormRegister, useForm } from 'react-hook-form'
import type { Output } from '../../../ui/client.ts'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, TextField } from '../../../ui/kit/field.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { useAction } from '../../../ui/live.tsx'
import { patternsIn, SetupFields, type SetupFieldValues } from './setup-fields.tsx'

interface Fields extends SetupFieldValues {
  path: string
  base_branch: string
  checks: string
}

interface Props {
  project: { id: string; name: string }
  open: boolean
  onClose(): void
}

type Added = Output<'repo_add'>

export function AddRepo({ project, open, onClose }: Props) {
  const [added, setAdded] = useState<Added>()
  const { register, handleSubmit, reset, formState } = useForm<Fields>()
  const close = () => {
    setAdded(undefined)
    onClose()
  }
  const add = useAction('repo_add', {
    quiet: true,
    said: ({ handle }) => `${handle} is registered.`,
    onSuccess(output) {
      reset()
      if (output.proposed) setAdded(output)
      else onClose()
    },
  })
  const save = handleSubmit(({ path, base_branch, checks, setup, files, check_files, cleanup, dev }) =>
    add.mutate({
      project_id: project.id,
      path: path.trim(),
      base_branch: base_branch.trim() || undefined,
      checks: checks.trim() || undefined,
      setup: setup.trim() || undefined,
      files: patternsIn(files),
      check_files: patternsIn(check_files),
      cleanup: cleanup.trim() || undefined,
      dev: dev.trim() || undefined,
    }),
  )
  if (added?.proposed) return <Proposed added={added} open={open} onClose={close} />
  return (
    <Dialog open={open} onClose={close} title={`Add a repository to ${project.name}`}>
      <form className="form" onSubmit={save}>
        <TextField
          label="Path"
          placeholder="/home/me/web-shop"
          help="Where the git work tree is, on the machine on which Signalbox runs."
          autoFocus
          error={formState.errors.path?.message}
          {...register('path', {
            required: 'Where is it?',
            pattern: { value: /^\s*\//, message: 'An absolute path: it begins with a slash.' },
          })}
        />
        <TextField
          label="Base branch"
          placeholder="The branch that is checked out"
          help="Where work starts from, and where it lands."
          {...register('base_branch')}
        />
        <TextField label="Checks" placeholder="npm test" help="A command that must pass before work lands." {...register('checks')} />
        <SetupFields register={register as unknown as UseFormRegister<SetupFieldValues>} />
        <FormEnd error={add.error} busy={add.isPending} submit="Add" onCancel={close} />
      </form>
    </Dialog>
  )
}

/** What its files suggest holds only when a person says so. */
function Proposed({ added, open, onClose }: { added: Added; open: boolean; onClose(): void }) {
  const proposed = added.proposed as NonNullable<Added['proposed']>
  const { checks, setup, files, check_files, cleanup, dev, because, problem } = proposed
  const suggested = {
    checks: checks ?? '',
    setup: setup ?? '',
    files: files.join(', '),
    check_files: check_files.join(', '),
    cleanup: cleanup ?? '',
    dev: dev ?? '',
  }
  const isShown = (name: keyof typeof suggested) => suggested[name] !== ''
  const { register, handleSubmit } = useForm({ defaultValues: suggested })
  const update = useAction('repo_update', { quiet: true, said: ({ message }) => visible(message), onSuccess: onClose })
  const isEmpty = because.length === 0
  const save = handleSubmit((fields) => {
    if (isEmpty) return onClose()
    const command = (name: 'checks' | 'setup' | 'cleanup' | 'dev') => (isShown(name) ? fields[name].trim() || null : undefined)
    const patterns = (name: 'files' | 'check_files') => (isShown(name) ? patternsIn(fields[name]) : undefined)
    update.mutate({
      repo_id: added.repo_id,
      checks: command('checks'),
      setup: command('setup'),
      cleanup: command('cleanup'),
      dev: command('dev'),
      files: patterns('files'),
      check_files: patterns('check_files'),
    })
  })
  return (
    <Dialog open={open} onClose={onClose} title={`Set up ${visible(added.handle)}`}>
      <form className="form" onSubmit={save}>
        {!isEmpty && (
          <p>A fresh checkout has only what git carries. Suggested by {visible(because.join(', '))}; empty a field to leave it out.</p>
        )}
        {problem && <p className="error">{visible(problem)}</p>}
        {isShown('checks') && <TextField label="Checks" help="A command that must pass before work lands." {...register('checks')} />}
        <SetupFields register={register as unknown as UseFormRegister<SetupFieldValues>} only={isShown} />
        <FormEnd error={update.error} busy={update.isPending} submit={isEmpty ? 'Close' : 'Use it'} onCancel={onClose} />
      </form>
    </Dialog>
  )
}
