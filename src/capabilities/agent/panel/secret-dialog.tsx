import { TriangleAlert } from 'lucide-react'
import { Button } from '../../../ui/kit/button.tsx'
import { CopyLine } from '../../../ui/kit/copy.tsx'
import { Dialog } from '../../../ui/kit/dialog.tsx'
import { connectLines } from './words.ts'

export interface Issued {
  /** Null when the answer was lost on its way and asked for again: a secret is given out once. */
  token: string | null
  handle: string
  kind: 'agent' | 'person'
  replaced?: boolean
}

export function SecretDialog({ issued, onClose }: { issued: Issued | undefined; onClose(): void }) {
  return (
    <Dialog open={issued !== undefined} onClose={onClose} title={titleOf(issued)} wide firm>
      {issued && (issued.token === null ? <Lost /> : <Secret issued={issued} token={issued.token} />)}
      <div className="actions">
        <Button kind="primary" onClick={onClose}>
          {issued?.token === null ? 'Close' : 'I have it'}
        </Button>
      </div>
    </Dialog>
  )
}

function Secret({ issued: { kind, handle }, token }: { issued: Issued; token: string }) {
  return (
    <>
      <p className="once" role="alert">
        <TriangleAlert aria-hidden />
        <span>
          <strong>This is shown once.</strong> Signalbox keeps only a hash of it. Whoever has it acts as {handle}.
        </span>
      </p>
      <CopyLine label="the token" text={token} />
      {kind === 'agent' ? (
        <>
          <h3 className="connect-title">Connect it by pasting one line into a terminal</h3>
          <dl className="connect">
            {connectLines(location.origin, token).map(([client, line]) => (
              <div key={client}>
                <dt>{client}</dt>
                <dd>
                  <CopyLine label={`the line for ${client}`} text={line} />
                </dd>
              </div>
            ))}
          </dl>
        </>
      ) : (
        <p>
          {handle} signs in at <span className="mono">{location.origin}</span> with “I was given a token”. For the command line it goes into{' '}
          <span className="mono">SIGNALBOX_TOKEN</span>.
        </p>
      )}
    </>
  )
}

function Lost() {
  return (
    <p className="once" role="alert">
      <TriangleAlert aria-hidden />
      <span>
        It was made, but the answer with its secret was lost on the way, and a secret is given out once. Replace its token: find it under
        Tokens and choose Rotate.
      </span>
    </p>
  )
}

function titleOf(issued: Issued | undefined): string {
  return issued?.replaced ? `The new token of ${issued.handle}` : `${issued?.handle ?? ''} is invited`
}
