import { useEffect } from 'react'
import { useForm } from 'react-hook-form'
import type { Input } from '../../../ui/client.ts'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, SelectField, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'

interface Fields {
  project_id: string
  title: string
  description: string
  criteria: string
  priority: 'low' | 'medium' | 'high'
  task_type: 'AUTO' | 'PAIR'
}

const EMPTY: Fields = { project_id: '', title: '', description: '', criteria: '', priority: 'medium', task_type: 'AUTO' }

interface Props {
  open: boolean
  onClose(): void
  projects: { handle: string; name: string }[]
  project?: string
}

export function NewTask({ open, onClose, projects, project }: Props) {
  const { register, handleSubmit, reset, resetField, formState } = useForm<Fields>({ defaultValues: EMPTY })
  const first = projects.some(({ handle }) => handle === project) ? project : projects[0]?.handle
  // What was typed is kept from one opening to the next; which project it is for is what the board shows now.
  useEffect(() => {
    if (open && first !== undefined) resetField('project_id', { defaultValue: first })
  }, [open, first, resetField])
  const create = useAction('task_create', {
    quiet: true,
    said: ({ handle }) => `${handle} is in the backlog.`,
    onSuccess() {
      reset()
      onClose()
    },
  })
  return (
    <Dialog open={open} onClose={onClose} title="New task" wide firm={formState.isDirty}>
      <form className="form" onSubmit={handleSubmit((fields) => create.mutate(asInput(fields)))}>
        <TextField
          label="Title"
          placeholder="What shall be true when it is done?"
          autoFocus
          error={formState.errors.title?.message}
          {...register('title', { required: 'A task needs a title.', maxLength: { value: 200, message: 'At most 200 characters.' } })}
        />
        <TextArea label="Description" help="Markdown. What an agent should know before it starts." {...register('description')} />
        <TextArea label="Acceptance criteria" rows={3} help="One a line: how a reviewer sees that it is done." {...register('criteria')} />
        <div className="form-row">
          <SelectField label="Project" {...register('project_id')}>
            {projects.map(({ handle, name }) => (
              <option key={handle} value={handle}>
                {name}
              </option>
            ))}
          </SelectField>
          <SelectField label="Priority" {...register('priority')}>
            <option value="high">High</option>
            <option value="medium">Medium</option>
            <option value="low">Low</option>
          </SelectField>
          <SelectField label="Type" {...register('task_type')}>
            <option value="AUTO">Auto: an agent by itself</option>
            <option value="PAIR">Pair: you and an agent</option>
          </SelectField>
        </div>
        <FormEnd error={create.error} busy={create.isPending} submit="Create" onCancel={onClose} />
      </form>
    </Dialog>
  )
}

function asInput({ criteria, ...fields }: Fields): Input<'task_create'> {
  return { ...fields, acceptance_criteria: linesOf(criteria) }
}

/** One a line; empty lines are nobody's criterion. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}
