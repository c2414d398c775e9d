import { useForm } from 'react-hook-form'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { FormEnd, SelectField, TextField } from '../../../ui/kit/field.tsx'
import { useAction } from '../../../ui/live.tsx'
import type { Issued } from './secret-dialog.tsx'
import { PROFILES, type Profile } from './words.ts'

interface Props {
  open: boolean
  onClose(): void
  onIssued(issued: Issued): void
}

export function NamePerson({ open, onClose, onIssued }: Props) {
  const { register, handleSubmit, reset, formState } = useForm<{ name: string; profile: Profile }>()
  const invite = useAction('person_invite', {
    quiet: true,
    onSuccess({ token, handle }) {
      reset()
      onClose()
      onIssued({ token, handle, kind: 'person' })
    },
  })
  return (
    <Dialog open={open} onClose={onClose} title="Name a person" description="They come in under their own name, with a token of their own.">
      <form className="form" onSubmit={handleSubmit((fields) => invite.mutate(fields))}>
        <TextField
          label="Name"
          placeholder="Bea"
          autoFocus
          error={formState.errors.name?.message}
          {...register('name', { required: 'What are they called?', maxLength: { value: 80, message: 'At most 80 characters.' } })}
        />
        <SelectField label="Profile" defaultValue="maintainer" help="The most that they may do." {...register('profile')}>
          {Object.entries(PROFILES).map(([profile, words]) => (
            <option key={profile} value={profile}>
              {words}
            </option>
          ))}
        </SelectField>
        <FormEnd error={invite.error} busy={invite.isPending} submit="Let them in" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
