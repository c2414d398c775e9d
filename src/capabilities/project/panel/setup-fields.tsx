import type { UseFormRegister } from 'react-hook-form'
import { TextField } from '../../../ui/kit/field.tsx'

export interface SetupFieldValues {
  setup: string
  files: string
  check_files: string
  cleanup: string
  dev: string
}

const FIELDS: { name: keyof SetupFieldValues; label: string; placeholder: string; help: string }[] = [
  {
    name: 'setup',
    label: 'Setup',
    placeholder: 'npm ci',
    help: 'A command that runs in every new worktree before its agent begins, and before checks.',
  },
  {
    name: 'files',
    label: 'Files to copy',
    placeholder: '.env, config/*.key',
    help: 'Files that git ignores, copied from your checkout into worktrees. Agents can read them.',
  },
  {
    name: 'check_files',
    label: 'Files to copy for checks',
    placeholder: '.env.test',
    help: 'The same, into the checkouts in which checks run.',
  },
  {
    name: 'cleanup',
    label: 'Cleanup',
    placeholder: 'docker compose down --volumes',
    help: 'A command that runs before a worktree is removed, and after checks.',
  },
  {
    name: 'dev',
    label: 'Preview',
    placeholder: 'npm run dev',
    help: 'The command that starts your program in a worktree. It has to listen on $PORT.',
  },
]

interface Props {
  register: UseFormRegister<SetupFieldValues>
  /** Default: all. */
  only?(name: keyof SetupFieldValues): boolean
}

/** What a fresh checkout needs before somebody can work in it. */
export function SetupFields({ register, only = () => true }: Props) {
  return FIELDS.filter(({ name }) => only(name)).map(({ name, ...shown }) => <TextField key={name} {...shown} {...register(name)} />)
}

/** Between commas. */
export function patternsIn(text: string): string[] {
  return text
    .split(',')
    .map((pattern) => pattern.trim())
    .filter(Boolean)
}
