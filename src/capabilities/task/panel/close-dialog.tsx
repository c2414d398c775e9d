import { useForm } from 'react-hook-form'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, TextField } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'

/** DONE without a merge needs a reason: it is what the history will say. */
export function CloseDialog({ task, onClose }: { task: { id: string; handle: string } | undefined; onClose(): void }) {
  const { register, handleSubmit, reset, formState } = useForm<{ reason: string }>()
  const finish = () => {
    reset()
    onClose()
  }
  const close = useAction('task_close', { onSuccess: finish, quiet: true, said: ({ handle }) => `${handle} is done.` })
  return (
    <Dialog
      open={task !== undefined}
      onClose={finish}
      title={`Close ${task?.handle ?? ''}`}
      description="It becomes done without a merge. The reason is kept with it."
    >
      <form className="form" onSubmit={handleSubmit(({ reason }) => task && close.mutate({ task_id: task.id, reason }))}>
        <TextField
          label="Reason"
          placeholder="Done by hand, no longer needed, …"
          autoFocus
          error={formState.errors.reason?.message}
          {...register('reason', { required: 'Say why it is done.', maxLength: { value: 500, message: 'At most 500 characters.' } })}
        />
        <FormEnd error={close.error} busy={close.isPending} submit="Close the task" onCancel={finish} />
      </form>
    </Dialog>
  )
}
