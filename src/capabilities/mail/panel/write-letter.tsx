import { useNavigate } from '@tanstack/react-router'
import { useForm } from 'react-hook-form'
import type { Input } from '../../../ui/client.ts'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { CheckField, FormEnd, SelectField, TextArea, TextField } from '../../../ui/kit/field.tsx'
import { useAction, useAll, useTool } from '../../../ui/live.tsx'

type Role = NonNullable<Input<'mail_send'>['to_role']>

interface Fields {
  to: string
  subject: string
  body: string
  importance: NonNullable<Input<'mail_send'>['importance']>
  needs_ack: boolean
}

const ROLES: Record<Role, string> = {
  worker: 'All workers',
  supervisor: 'All supervisors',
  orchestrator: 'All orchestrators',
  reviewer: 'All reviewers',
  planner: 'All planners',
}

export function WriteLetter({ open, onClose }: { open: boolean; onClose(): void }) {
  const { register, handleSubmit, reset, formState } = useForm<Fields>()
  const navigate = useNavigate()
  const agents = useAll('agent_list', { limit: 200 }, 'after', { enabled: open }).data?.flatMap((page) => page.agents) ?? []
  const projects = useTool('project_list', { limit: 200 }, { enabled: open }).data?.projects ?? []
  const send = useAction('mail_send', {
    quiet: true,
    onSuccess({ thread_id }) {
      reset()
      onClose()
      void navigate({ to: '/mail/$thread', params: { thread: thread_id } })
    },
  })
  const submit = handleSubmit(({ to, ...letter }) => send.mutate({ ...receiver(to), ...letter }))
  const rolesIn = (project: string) =>
    (Object.keys(ROLES) as Role[]).filter((role) => agents.some((agent) => agent.role === role && agent.project_id === project))
  return (
    <Dialog open={open} onClose={onClose} title="Write a letter" description="It is stored at once, and its receiver is told." firm>
      <form className="form" onSubmit={submit}>
        <SelectField label="To" error={formState.errors.to?.message} {...register('to', { required: 'Who should get it?' })}>
          <option value="">Choose</option>
          <optgroup label="An agent">
            {agents.map(({ id, handle, role }) => (
              <option key={id} value={id}>
                {handle} ({role})
              </option>
            ))}
          </optgroup>
          {projects
            .filter(({ id }) => rolesIn(id).length)
            .map(({ id, name }) => (
              <optgroup key={id} label={name}>
                {rolesIn(id).map((role) => (
                  <option key={role} value={`${role} ${id}`}>
                    {ROLES[role]} of {name}
                  </option>
                ))}
              </optgroup>
            ))}
        </SelectField>
        <TextField
          label="Subject"
          maxLength={200}
          error={formState.errors.subject?.message}
          {...register('subject', { required: 'A letter needs a subject.' })}
        />
        <TextArea
          label="Text"
          rows={8}
          maxLength={20_000}
          error={formState.errors.body?.message}
          {...register('body', { required: 'An empty letter says nothing.' })}
        />
        <div className="form-row">
          <SelectField label="Importance" defaultValue="normal" {...register('importance')}>
            {['low', 'normal', 'high', 'urgent'].map((importance) => (
              <option key={importance}>{importance}</option>
            ))}
          </SelectField>
          <CheckField label="Ask for an acknowledgement" {...register('needs_ack')} />
        </div>
        <FormEnd error={send.error} busy={send.isPending} submit="Send" onCancel={onClose} />
      </form>
    </Dialog>
  )
}

/** An id, or a role and a project. */
function receiver(to: string): Pick<Input<'mail_send'>, 'to_agent_id' | 'to_role' | 'project_id'> {
  const [first, project_id] = to.split(' ') as [string, string | undefined]
  return project_id === undefined ? { to_agent_id: first } : { to_role: first as Role, project_id }
}
