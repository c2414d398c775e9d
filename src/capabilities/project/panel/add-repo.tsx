import { useForm } from 'react-hook-form'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, TextField } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'

interface Fields {
  path: string
  base_branch: string
  checks: string
}

interface Props {
  project: { id: string; name: string }
  open: boolean
  onClose(): void
}

export function AddRepo({ project, open, onClose }: Props) {
  const { register, handleSubmit, reset, formState } = useForm<Fields>()
  const add = useAction('repo_add', {
    quiet: true,
    said: ({ handle }) => `${handle} is registered.`,
    onSuccess() {
      reset()
      onClose()
    },
  })
  const save = handleSubmit(({ path, base_branch, checks }) =>
    add.mutate({
      project_id: project.id,
      path: path.trim(),
      base_branch: base_branch.trim() || undefined,
      checks: checks.trim() || undefined,
    }),
  )
  return (
    <Dialog open={open} onClose={onClose} title={`Add a repository to ${project.name}`}>
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
        <FormEnd error={add.error} busy={add.isPending} submit="Add" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
