import { KeyRound, Terminal } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useForm } from 'react-hook-form'
import { type CallError, check, redeem } from '../client.ts'
import { Button } from '../kit/button.tsx'
import { Refused, TextField } from '../kit/field.tsx'
import { session } from '../session.ts'
import { Mark } from './mark.tsx'

/** By a one-time link; or with a token that somebody was given. */
export function SignIn() {
  const [link, setLink] = useState(session.takeLink)
  const [error, setError] = useState<CallError | null>(null)
  const [busy, setBusy] = useState(link !== undefined)

  useEffect(() => {
    const stop = session.subscribe(() => {
      const fresh = session.takeLink()
      if (fresh !== undefined) setLink(fresh)
    })
    return () => void stop()
  }, [])
  useEffect(() => {
    if (link === undefined) return
    setBusy(true)
    setError(null)
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
  const [error, setError] = useState<CallError | null>(null)
  // Tried first: a token that is no good would be taken, and the page that follows could only send its owner back.
  const submit = handleSubmit(async ({ token }) => {
    setError(null)
    await check(token.trim()).then(
      () => session.begin({ token: token.trim() }),
      (refused: CallError) => setError(refused),
    )
  })
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
        <Refused error={error} />
        <Button kind="primary" type="submit" icon={KeyRound} busy={formState.isSubmitting}>
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
