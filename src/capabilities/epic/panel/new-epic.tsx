import { useNavigate } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { CheckField, FormEnd, SelectField, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { useAction, useTool } from '../../../ui/live.tsx'

interface Fields {
  project_id: string
  title: string
  description: string
  max_workers: number
  start: boolean
}

export function NewEpic({ open, onClose }: { open: boolean; onClose(): void }) {
  const projects = useTool('project_list', { limit: 200 }).data?.projects ?? []
  const { register, handleSubmit, reset, formState } = useForm<Fields>({
    defaultValues: { project_id: '', title: '', description: '', max_workers: 4, start: true },
  })
  const navigate = useNavigate()
  const create = useAction('epic_create', {
    quiet: true,
    said: ({ handle }) => `${handle} is there.`,
    onSuccess({ handle }) {
      reset()
      onClose()
      void navigate({ to: '/epic/$epic', params: { epic: handle } })
    },
  })
  const submit = ({ project_id, ...fields }: Fields) => create.mutate({ ...fields, project_id: project_id || projects[0]?.id })
  return (
    <Dialog open={open} onClose={onClose} title="New epic" wide firm={formState.isDirty}>
      <form className="form" onSubmit={handleSubmit(submit)}>
        <TextField
          label="Title"
          autoFocus
          error={formState.errors.title?.message}
          {...register('title', { required: 'An epic needs a title.', maxLength: { value: 200, message: 'At most 200 characters.' } })}
        />
        <TextArea
          label="Description"
          rows={8}
          help="Markdown. What its supervisor should know, and when it is done."
          {...register('description')}
        />
        <div className="form-row">
          <SelectField label="Project" {...register('project_id')}>
            {projects.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </SelectField>
          <TextField
            label="Workers at a time"
            type="number"
            min={1}
            max={100}
            {...register('max_workers', { valueAsNumber: true, min: 1, max: 100 })}
          />
        </div>
        <CheckField label="Start at once" help="Else it waits in planning, and nobody is started." {...register('start')} />
        <FormEnd error={create.error} busy={create.isPending} submit="Create" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
