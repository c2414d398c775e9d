import type { UseFormRegister } from 'react-hook-form'
import { TextField } from '../../../ui/kit/field.tsx'

export interface SetupFieldValues {
  setup: string
  files: string
  check_files: string
}

/** What a fresh checkout needs before somebody can work in it. */
export function SetupFields({ register }: { register: UseFormRegister<SetupFieldValues> }) {
  return (
    <>
      <TextField
        label="Setup"
        placeholder="npm ci"
        help="A command that runs in every new worktree before its agent begins, and before checks."
        {...register('setup')}
      />
      <TextField
        label="Files to copy"
        placeholder=".env, config/*.key"
        help="Files that git ignores, copied from your checkout into worktrees. Agents can read them."
        {...register('files')}
      />
      <TextField
        label="Files to copy for checks"
        placeholder=".env.test"
        help="The same, into the checkouts in which checks run."
        {...register('check_files')}
      />
    </>
  )
}

/** Between commas. */
export function patternsIn(text: string): string[] {
  return text
    .split(',')
    .map((pattern) => pattern.trim())
    .filter(Boolean)
}
