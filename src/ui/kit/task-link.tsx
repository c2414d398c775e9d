import { Link } from '@tanstack/react-router'

/** By the handle that an event or a row tells. */
export function TaskLink({ handle }: { handle: unknown }) {
  return (
    <Link to="/task/$task" params={{ task: String(handle) }} className="mono">
      {String(handle)}
    </Link>
  )
}
