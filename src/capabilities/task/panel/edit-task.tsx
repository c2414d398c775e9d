import { useEffect, useState } from 'react'
import { useForm } from 'react-hook-form'
import { Button } from '../../../ui/kit/button.tsx'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { Refused, SelectField, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'
import { linesOf } from './new-task.tsx'
import type { FullTask } from './task-page.tsx'

interface Fields {
  title: string
  description: string
  criteria: string
  priority: FullTask['priority']
  task_type: FullTask['task_type']
  blocked_by: string
}

/** Against the version that was on the screen when the form was opened: somebody else's change in the meantime is not written over. */
export function EditTask({ task, open, onClose }: { task: FullTask; open: boolean; onClose(): void }) {
  const { register, handleSubmit, reset, formState } = useForm<Fields>()
  const [opened, setOpened] = useState(task)
  const update = useAction('task_update', { quiet: true, onSuccess: onClose })
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed must not be lost when the task changes meanwhile
  useEffect(() => {
    if (!open) return
    setOpened(task)
    reset(fieldsOf(task))
    update.reset()
  }, [open])
  const conflict = update.error?.body.code === 'CONFLICT'
  const save = handleSubmit((fields) => {
    const { criteria, blocked_by, ...others } = changed(fieldsOf(opened), fields)
    update.mutate({
      task_id: task.id,
      // Told of the conflict, the person has seen what the page shows now.
      expected_version: conflict ? task.version : opened.version,
      ...others,
      ...(criteria === undefined ? {} : { acceptance_criteria: linesOf(criteria) }),
      ...(blocked_by === undefined ? {} : { blocked_by: blocked_by.split(/[\s,]+/).filter(Boolean) }),
    })
  })
  return (
    <Dialog open={open} onClose={onClose} title={`Edit ${task.handle}`} wide firm={formState.isDirty}>
      <form className="form" onSubmit={save}>
        <TextField
          label="Title"
          error={formState.errors.title?.message}
          {...register('title', { required: 'A task needs a title.', maxLength: { value: 200, message: 'At most 200 characters.' } })}
        />
        <TextArea label="Description" rows={8} help="Markdown" {...register('description')} />
        <TextArea label="Acceptance criteria" rows={4} help="One a line" {...register('criteria')} />
        <div className="form-row">
          <SelectField label="Priority" {...register('priority')}>
            <option value="high">High</option>
            <option value="medium">Medium</option>
            <option value="low">Low</option>
          </SelectField>
          <SelectField label="Type" {...register('task_type')}>
            <option value="AUTO">Auto: an agent by itself</option>
            <option value="PAIR">Pair: you and an agent</option>
          </SelectField>
          <TextField label="Waits for" placeholder="T-3 T-7" help="Tasks that must be done first" {...register('blocked_by')} />
        </div>
        <Refused error={update.error} />
        {conflict && (
          <p className="muted">
            Somebody else changed it while you were typing. To save it anyway writes over those fields alone that you changed.
          </p>
        )}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={update.isPending}>
            {conflict ? 'Save anyway' : 'Save'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function fieldsOf({ title, description, priority, task_type, acceptance_criteria, dependencies }: FullTask): Fields {
  const blocked_by = dependencies.map(({ handle }) => handle).join(' ')
  return { title, description, priority, task_type, criteria: acceptance_criteria.join('\n'), blocked_by }
}

/** Only what is another than before: the history names the fields that somebody changed. */
function changed<T extends object>(before: T, fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => before[name as keyof T] !== value)) as Partial<T>
}
