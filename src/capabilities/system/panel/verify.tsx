import { ShieldAlert, ShieldCheck } from 'lucide-react'
import { useForm } from 'react-hook-form'
import type { Output } from '../../../ui/client.ts'
import { Button } from '../../../ui/kit/button.tsx'
import { CopyLine } from '../../../ui/kit/copy.tsx'
import { Refused, TextField } from '../../../ui/kit/field.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { useLook } from '../../../ui/live.tsx'

type Verdict = Output<'audit_verify'>
type Bad = NonNullable<Verdict['first_bad']>

export function Verify() {
  const { register, handleSubmit, formState } = useForm<{ expect: string }>()
  const verify = useLook('audit_verify')
  return (
    <div className="verify">
      <Card title="Is the log as it was written?">
        <form className="form card-body" onSubmit={handleSubmit(({ expect }) => verify.mutate({ expect: expect.trim() || undefined }))}>
          <p className="muted">
            Every event and every call is sealed, each seal on the one before. This reads them all and names the first that somebody
            changed, took out or put in.
          </p>
          <TextField
            label="Expected head"
            className="input mono"
            placeholder="Optional: a head that you noted elsewhere"
            help="Without it, somebody who rewrote everything and sealed it anew would not be noticed."
            error={formState.errors.expect?.message}
            {...register('expect', {
              pattern: { value: /^\s*([1-9][0-9]{0,14}\.[0-9a-f]{64})?\s*$/, message: 'A head is a number, a dot and 64 hex digits.' },
            })}
          />
          <Refused error={verify.error} />
          <div className="actions">
            <Button kind="primary" type="submit" icon={ShieldCheck} busy={verify.isPending}>
              Verify the audit
            </Button>
          </div>
        </form>
      </Card>
      {verify.data && <Result verdict={verify.data} />}
    </div>
  )
}

function Result({ verdict }: { verdict: Verdict }) {
  const { ok, head, first_bad, expected, meaning } = verdict
  const Icon = ok ? ShieldCheck : ShieldAlert
  return (
    <Card className="verdict">
      <div className="card-body" role="status">
        <h2 className={ok ? 'verdict-good' : 'verdict-bad'}>
          <Icon aria-hidden /> {titleOf(verdict)}
        </h2>
        {first_bad && <p>{inWords(first_bad)}</p>}
        {expected && <p>{EXPECTED[expected]}</p>}
        <p className="muted">{meaning}</p>
        <dl className="facts">
          <dt>Sealed</dt>
          <dd>
            {verdict.sealed_events.toLocaleString('en')} events, {verdict.sealed_calls.toLocaleString('en')} calls
          </dd>
          <dt>Not yet</dt>
          <dd>
            {verdict.unsealed_events.toLocaleString('en')} events, {verdict.unsealed_calls.toLocaleString('en')} calls
          </dd>
        </dl>
        {head && (
          <div className="verdict-head">
            <h3>Head</h3>
            <CopyLine label="the head" text={head} />
            <p className="muted">Note it where nobody who can write to this machine’s disk can: it is what you compare with later.</p>
          </div>
        )}
      </div>
    </Card>
  )
}

/** Without a head from elsewhere a chain that was rebuilt as a whole fits as well: no more is said than is known. */
function titleOf({ ok, expected }: Verdict): string {
  if (!ok) return 'It does not fit.'
  return expected === 'found' ? 'Nothing was changed since that head.' : 'Every row fits its seal.'
}

const EXPECTED: Record<NonNullable<Verdict['expected']>, string> = {
  found: 'The head that you expected is in the chain.',
  rewritten: 'The chain has another seal in the place of the head that you expected: it was rewritten since.',
  cut: 'The chain ends before the head that you expected: its end was cut off.',
}

const PROBLEM: Record<Bad['problem'], string> = {
  changed: 'was changed after it was sealed',
  missing: 'is missing',
  inserted: 'was put in afterwards',
  moved: 'stands in another place',
}

const ROW: Record<Bad['table'], string> = { events: 'Event', calls: 'Call', seals: 'Seal' }

function inWords({ table, seq, problem, seal, sealed_at }: Bad): string {
  const when = sealed_at === null ? '' : `, made ${new Date(sealed_at).toLocaleString()}`
  return `${ROW[table]} number ${seq} ${PROBLEM[problem]} (seal ${seal}${when}).`
}
