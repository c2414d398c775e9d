import { Link } from '@tanstack/react-router'
import { Bug, SignpostBig } from 'lucide-react'
import { Button } from '../kit/button.tsx'
import { Empty } from '../kit/states.tsx'

export function NoSuchPage() {
  return (
    <Empty icon={SignpostBig} title="There is nothing at this address.">
      <Link to="/" className="button button-primary">
        Go to the board
      </Link>
    </Empty>
  )
}

export function Crashed({ error }: { error: Error }) {
  return (
    <Empty icon={Bug} title="This page failed.">
      <p>Nothing was lost: what you do is stored before it is shown. The reason was:</p>
      <pre>{error.message}</pre>
      <Button kind="primary" onClick={() => location.reload()}>
        Load it again
      </Button>
    </Empty>
  )
}
