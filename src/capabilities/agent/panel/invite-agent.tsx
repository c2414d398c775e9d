import { useForm } from 'react-hook-form'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, SelectField, TextField } from '../../../ui/kit/field.tsx'
import { useAction, useTool } from '../../../ui/live.tsx'
import type { Issued } from './secret-dialog.tsx'
import { PROFILES, type Profile, ROLES, type Role } from './words.ts'

interface Fields {
  role: Role
  name: string
  profile: Profile | ''
  project_id: string
  hours: string
}

const EXPIRY: [hours: string, words: string][] = [
  ['', 'When revoked'],
  ['8', 'In 8 hours'],
  ['24', 'In a day'],
  ['168', 'In a week'],
  ['720', 'In 30 days'],
  ['8760', 'In a year'],
]

interface Props {
  open: boolean
  onClose(): void
  onIssued(issued: Issued): void
}

export function InviteAgent({ open, onClose, onIssued }: Props) {
  const { register, handleSubmit, reset, formState } = useForm<Fields>()
  const projects = useTool('project_list', { limit: 200 }).data?.projects ?? []
  const invite = useAction('agent_invite', {
    quiet: true,
    onSuccess({ token, handle }) {
      reset()
      onClose()
      onIssued({ token, handle, kind: 'agent' })
    },
  })
  const send = handleSubmit(({ role, name, profile, project_id, hours }) =>
    invite.mutate({
      role,
      name: name.trim() || undefined,
      profile: profile || undefined,
      project_id: project_id || undefined,
      expires_in_hours: hours ? Number(hours) : undefined,
    }),
  )
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title="Invite an agent"
      description="It gets a name and a token of its own. Give it a task afterwards."
    >
      <form className="form" onSubmit={send}>
        <SelectField label="Role" defaultValue="worker" {...register('role')}>
          {Object.entries(ROLES).map(([role, words]) => (
            <option key={role} value={role}>
              {words}
            </option>
          ))}
        </SelectField>
        <TextField
          label="Name"
          placeholder="ann"
          help="How people and the log call it. Without one it is numbered, like worker-3."
          error={formState.errors.name?.message}
          {...register('name', { maxLength: { value: 80, message: 'At most 80 characters.' } })}
        />
        <SelectField label="Profile" help="The most that it may do; its role narrows that further." {...register('profile')}>
          <option value="">What the role gives</option>
          {Object.entries(PROFILES).map(([profile, words]) => (
            <option key={profile} value={profile}>
              {words}
            </option>
          ))}
        </SelectField>
        <div className="form-row">
          <SelectField label="Project" help="Where it may write." {...register('project_id')}>
            <option value="">Any</option>
            {projects.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </SelectField>
          <SelectField label="Its token ends" {...register('hours')}>
            {EXPIRY.map(([hours, words]) => (
              <option key={hours} value={hours}>
                {words}
              </option>
            ))}
          </SelectField>
        </div>
        <FormEnd error={invite.error} busy={invite.isPending} submit="Invite" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
