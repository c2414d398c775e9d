import './effects.css'
import { Link } from '@tanstack/react-router'
import { ArrowLeft, CircleCheck, RotateCcw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useTool } from '../../../ui/live.tsx'

type Effect = Output<'effect_list'>['effects'][number]

/** What should have happened outside and did not, or perhaps did: a person looks and decides. */
export function Effects() {
  const read = useTool('effect_list', { limit: 50 })
  const [dropping, setDropping] = useState<Effect>()
  const drop = useAction('effect_drop', { said: () => 'It will not be done.', onSuccess: () => setDropping(undefined) })
  const back = (
    <Link to="/activity" className="back">
      <ArrowLeft aria-hidden /> Activity
    </Link>
  )
  return (
    <Page title="Stuck effects" subtitle={back}>
      <Loaded read={read}>
        {({ effects, counts }) =>
          effects.length ? (
            <>
              {effects.map((effect) => (
                <EffectCard key={effect.id} effect={effect} onDrop={() => setDropping(effect)} />
              ))}
              {counts.dead + counts.unknown > effects.length && (
                <p className="muted">Decide about these; {counts.dead + counts.unknown - effects.length} more follow.</p>
              )}
            </>
          ) : (
            <Empty icon={CircleCheck} title="Nothing is stuck.">
              <p>
                {counts.waiting} waiting, {counts.running} running.
              </p>
            </Empty>
          )
        }
      </Loaded>
      <Confirm
        open={dropping !== undefined}
        onClose={() => setDropping(undefined)}
        title={`Drop ${dropping?.type ?? ''}?`}
        description="It will not be done. That cannot be taken back."
        action="Drop"
        busy={drop.isPending}
        onConfirm={() => dropping && drop.mutate({ effect_id: dropping.id })}
      />
    </Page>
  )
}

function EffectCard({ effect, onDrop }: { effect: Effect; onDrop(): void }) {
  const retry = useAction('effect_retry', { said: () => 'It is tried again.' })
  const dead = effect.state === 'dead'
  return (
    <Card
      title={
        <>
          <span className="mono">{effect.type}</span> <Badge tone={dead ? 'red' : 'amber'}>{effect.state}</Badge>
        </>
      }
      actions={
        <div className="effect-actions">
          <Button
            icon={RotateCcw}
            aria-label={`Retry ${effect.type}`}
            busy={retry.isPending}
            onClick={() => retry.mutate({ effect_id: effect.id })}
          >
            Retry
          </Button>
          <Button icon={Trash2} aria-label={`Drop ${effect.type}`} onClick={onDrop}>
            Drop
          </Button>
        </div>
      }
    >
      <div className="card-body effect">
        <p>
          {dead
            ? `It failed ${effect.attempts} of ${effect.max_attempts} times.`
            : 'It was cut off, and nobody can tell whether it happened. Look outside before you retry it.'}
        </p>
        {effect.error && <pre className="block">{effect.error}</pre>}
        <details>
          <summary>What it was to do</summary>
          <pre className="block">{JSON.stringify(effect.payload, null, 2)}</pre>
        </details>
        <p className="muted">
          Asked for <Time at={effect.created_at} />
        </p>
      </div>
    </Card>
  )
}
