import { KeyRound, Terminal } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useForm } from 'react-hook-form'
import { type CallError, redeem } from '../client.ts'
import { Button } from '../kit/button.tsx'
import { TextField } from '../kit/field.tsx'
import { session } from '../session.ts'
import { Mark } from './mark.tsx'

/** By a one-time link; or with a token that somebody was given. */
export function SignIn() {
  const [link] = useState(session.takeLink)
  const [error, setError] = useState<CallError | null>(null)
  const [busy, setBusy] = useState(link !== undefined)

  useEffect(() => {
    if (link === undefined) return
    signIn(link)
      .catch((refused: CallError) => setError(refused))
      .finally(() => setBusy(false))
  }, [link])

  if (busy) return <main className="sign-in" aria-busy="true" />
  return (
    <main className="sign-in">
      <div className="sign-in-box">
        <Mark />
        <h1>Sign in to Signalbox</h1>
        {session.whyEnded() && <p className="refused">{session.whyEnded()}</p>}
        {error && (
          <p className="refused" role="alert">
            {error.body.code === 'DISCONNECTED'
              ? 'Signalbox does not answer. Open the link again when it runs.'
              : 'This link does not work any more: each signs one browser in, once, within an hour.'}
          </p>
        )}
        <p>In a terminal on the machine where Signalbox runs:</p>
        <pre className="command">
          <Terminal aria-hidden />
          signalbox open
        </pre>
        <p className="muted">It prints a link, and opens it where it can.</p>
        <WithToken />
      </div>
    </main>
  )
}

function WithToken() {
  const { register, handleSubmit, formState } = useForm<{ token: string }>()
  const submit = handleSubmit(({ token }) => session.begin({ token: token.trim() }))
  return (
    <details className="sign-in-token">
      <summary>I was given a token</summary>
      <form onSubmit={submit}>
        <TextField
          label="Token"
          type="password"
          help="It stays in this browser, for this address alone."
          error={formState.errors.token?.message}
          {...register('token', {
            required: 'Paste your token here.',
            pattern: { value: /^\s*sbx_person_\S+\s*$/, message: 'A person’s token begins with sbx_person_.' },
          })}
        />
        <Button kind="primary" type="submit" icon={KeyRound}>
          Sign in
        </Button>
      </form>
    </details>
  )
}

async function signIn(secret: string): Promise<void> {
  const { token, token_id } = await redeem(secret)
  if (token) session.begin({ token, token_id })
}
