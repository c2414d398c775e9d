import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { useAction, useMay } from '../../../ui/live.tsx'

type Project = Output<'project_list'>['projects'][number]
type Repo = Output<'repo_list'>['repos'][number]

/** Refused because of work that is not over, it names that and offers to end it. */
export function RemoveRepo({ repo: { id, handle } }: { repo: Repo }) {
  const [asking, setAsking] = useState(false)
  const may = useMay()
  const remove = useAction('repo_remove', { quiet: true, said: ({ message }) => visible(message), onSuccess: () => setAsking(false) })
  const close = () => {
    setAsking(false)
    remove.reset()
  }
  const error = remove.error?.body
  const isOpen = error?.code === 'CONFLICT'
  if (!may('repo_remove')) return null
  return (
    <>
      <Button icon={Trash2} aria-label={`Remove ${handle}`} onClick={() => setAsking(true)}>
        Remove
      </Button>
      <Confirm
        open={asking}
        onClose={close}
        title={`Unregister ${visible(handle)}?`}
        description={
          error
            ? `${visible(error.message)}${isOpen ? ' If you go on, these are closed, whoever is at work on them is ended, and what is not committed is saved.' : ''}`
            : 'Nothing in its folder is touched: branches and saved trees stay. Its worktrees are taken away, what is not committed is saved first.'
        }
        action={isOpen ? 'Close them and remove it' : 'Remove it'}
        busy={remove.isPending}
        onConfirm={() => remove.mutate({ repo_id: id, close_tasks: isOpen })}
      />
    </>
  )
}

export function DeleteProject({ project: { id, name } }: { project: Project }) {
  const [asking, setAsking] = useState(false)
  const may = useMay()
  const remove = useAction('project_delete', { quiet: true, said: ({ message }) => visible(message), onSuccess: () => setAsking(false) })
  const close = () => {
    setAsking(false)
    remove.reset()
  }
  const error = remove.error?.body
  const isOpen = error?.code === 'CONFLICT'
  if (!may('project_delete')) return null
  return (
    <>
      <Button icon={Trash2} aria-label={`Delete ${visible(name)}`} onClick={() => setAsking(true)}>
        Delete
      </Button>
      <Confirm
        open={asking}
        onClose={close}
        title={`Delete the project ${visible(name)}?`}
        description={
          error
            ? `${visible(error.message)}${isOpen ? ' If you go on, these are deleted too, whoever is at work on them is ended, and what is not committed is saved.' : ''}`
            : 'Its tasks go off the board for good, and its repositories are unregistered. Nothing in their folders is touched.'
        }
        action={isOpen ? 'Delete all of it' : 'Delete it'}
        busy={remove.isPending}
        onConfirm={() => remove.mutate({ project_id: id, with_tasks: isOpen })}
      />
    </>
  )
}
