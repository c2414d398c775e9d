import type { ReactNode } from 'react'
import { visible } from '../../../ui/kit/plain.ts'
import { TaskLink } from '../../../ui/kit/task-link.tsx'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'

export const sentences: Sentences = {
  'work.made': ({ data }) => (
    <About data={data} verb="made">
      the worktree of
    </About>
  ),
  'work.removed': ({ data }) => (
    <About data={data} verb="removed">
      the worktree of
    </About>
  ),
  'work.rescued': ({ data }) => (
    <About data={data} verb="saved">
      what was not committed of
    </About>
  ),
  'work.restored': ({ data }) => (
    <About data={data} verb="brought back">
      what was saved of
    </About>
  ),
  'work.failed': ({ data }) => (
    <>
      <About data={data} verb="could not">
        {String(data.what)} the worktree of
      </About>
      <span className="muted">: {visible(String(data.message)).slice(0, 300)}</span>
    </>
  ),
}

function About({ data, verb, children }: { data: LiveEvent['data']; verb: string; children: ReactNode }) {
  return (
    <>
      <strong>{verb}</strong> {children} <TaskLink handle={data.handle} />
    </>
  )
}
