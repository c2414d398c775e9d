import { useForm } from 'react-hook-form'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'

interface Fields {
  name: string
  description: string
}

export function NewProject({ open, onClose }: { open: boolean; onClose(): void }) {
  const { register, handleSubmit, reset, formState } = useForm<Fields>()
  const create = useAction('project_create', {
    quiet: true,
    said: ({ project }) => `${project.name} is created. Add its repository next.`,
    onSuccess() {
      reset()
      onClose()
    },
  })
  return (
    <Dialog open={open} onClose={onClose} title="New project">
      <form className="form" onSubmit={handleSubmit((fields) => create.mutate(fields))}>
        <TextField
          label="Name"
          placeholder="Web shop"
          autoFocus
          error={formState.errors.name?.message}
          {...register('name', { required: 'A project needs a name.', maxLength: { value: 80, message: 'At most 80 characters.' } })}
        />
        <TextArea
          label="Description"
          help="What it is for, in a few words."
          error={formState.errors.description?.message}
          {...register('description', { maxLength: { value: 2_000, message: 'At most 2,000 characters.' } })}
        />
        <FormEnd error={create.error} busy={create.isPending} submit="Create" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
