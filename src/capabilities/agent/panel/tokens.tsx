import { KeyRound } from 'lucide-react'
import { useState } from 'react'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Toggle } from '../../../ui/kit/toggle.tsx'
import { type Known, useEverybody, Who } from '../../../ui/kit/who.tsx'
import { useAction, useAll } from '../../../ui/live.tsx'
import { session } from '../../../ui/session.ts'
import type { Issued } from './secret-dialog.tsx'
import { KINDS, type Token } from './words.ts'

const PAGE = 25

interface Props {
  me: string | undefined
  onIssued(issued: Issued): void
}

export function Tokens({ me, onIssued }: Props) {
  const read = useAll('token_list', {}, 'after', { follows: ['token', 'agent', 'person'] })
  const [ended, setEnded] = useState(false)
  const all = read.data?.flatMap((page) => page.tokens) ?? []
  const over = all.filter((token) => token.status !== 'active').length
  return (
    <Card
      title={`Tokens${read.data ? ` (${all.length - over})` : ''}`}
      actions={over > 0 && <Toggle on={ended} onChange={setEnded} word={`ended (${over})`} />}
    >
      <Loaded read={read}>{() => <Rows tokens={inOrder(all, ended)} me={me} onIssued={onIssued} />}</Loaded>
    </Card>
  )
}

function Rows({ tokens, me, onIssued }: Props & { tokens: Token[] }) {
  const [shown, setShown] = useState(PAGE)
  const [revoking, setRevoking] = useState<Token>()
  const [rotating, setRotating] = useState<Token>()
  const everybody = useEverybody()
  const revoke = useAction('token_revoke', { said: () => 'The token has ended.', onSuccess: () => setRevoking(undefined) })
  const rotate = useAction('token_rotate', {
    onSuccess({ token }) {
      if (rotating) onIssued({ token, handle: rotating.holder, kind: rotating.kind === 'agent' ? 'agent' : 'person', replaced: true })
      setRotating(undefined)
    },
  })
  if (!tokens.length) return <Empty icon={KeyRound} title="No token." />
  return (
    <>
      <Table
        label="Tokens"
        rows={tokens.slice(0, shown)}
        keyOf={(token) => token.id}
        columns={[
          { title: 'Holder', show: ({ holder_id }) => <Who id={holder_id} /> },
          { title: 'Kind', show: ({ kind }) => <span className="token-kind">{KINDS[kind]}</span> },
          { title: 'State', show: (token) => <State token={token} here={isHere(token, me)} /> },
          {
            title: 'Made',
            show: ({ created_at, created_by }) => (
              <span className="muted made">
                <Time at={created_at} />{' '}
                {everybody.has(created_by) && (
                  <>
                    by <Who id={created_by} />
                  </>
                )}
              </span>
            ),
          },
          {
            title: 'Ends',
            show: (token) => (
              <span className="muted">
                <End token={token} />
              </span>
            ),
          },
          {
            title: 'Actions',
            actions: true,
            show: (token) =>
              token.status === 'active' && (
                <div className="token-actions">
                  {mayRotate(token, me) && (
                    <Button aria-label={`Rotate the token of ${token.holder}`} onClick={() => setRotating(token)}>
                      Rotate
                    </Button>
                  )}
                  {!isOwnersFile(token, everybody.get(token.holder_id)) && (
                    <Button aria-label={`Revoke the token of ${token.holder}`} onClick={() => setRevoking(token)}>
                      Revoke
                    </Button>
                  )}
                </div>
              ),
          },
        ]}
      />
      {tokens.length > shown && (
        <div className="card-body more">
          <Button onClick={() => setShown(shown + 4 * PAGE)}>Show more of {tokens.length}</Button>
        </div>
      )}
      <Confirm
        open={revoking !== undefined}
        onClose={() => setRevoking(undefined)}
        title={`Revoke this token of ${revoking?.holder ?? ''}?`}
        description={
          revoking && isHere(revoking, me)
            ? 'You are signed in with it: this browser will be signed out at once.'
            : 'Whoever uses it is refused from the next call on. It cannot be taken back; a new one can be made.'
        }
        action="Revoke"
        busy={revoke.isPending}
        onConfirm={() => revoking && revoke.mutate({ token_id: revoking.id })}
      />
      <Confirm
        open={rotating !== undefined}
        onClose={() => setRotating(undefined)}
        title={`Replace this token of ${rotating?.holder ?? ''}?`}
        description="The old secret stops working at once. You get the new one to pass on; it is shown once."
        action="Replace"
        busy={rotate.isPending}
        onConfirm={() => rotating && rotate.mutate({ token_id: rotating.id })}
      />
    </>
  )
}

function State({ token: { status }, here }: { token: Token; here: boolean }) {
  if (status !== 'active') return <Badge>{status}</Badge>
  return here ? <Badge tone="blue">this browser</Badge> : <Badge tone="green">active</Badge>
}

function End({ token: { ended_at, ended_why, expires_at } }: { token: Token }) {
  if (ended_at)
    return (
      <>
        {ended_why} <Time at={ended_at} />
      </>
    )
  return expires_at ? <Time at={expires_at} /> : 'when revoked'
}

/** Active first, and of each the newest. */
function inOrder(tokens: Token[], ended: boolean): Token[] {
  const shown = tokens.filter((token) => ended || token.status === 'active')
  const rank = (token: Token) => (token.status === 'active' ? 0 : 1)
  return shown.sort((a, b) => rank(a) - rank(b) || b.created_at.localeCompare(a.created_at))
}

function isHere(token: Token, me: string | undefined): boolean {
  const own = session.current()?.token_id
  // Somebody who pasted a token did not tell which of theirs it is.
  return own === undefined ? token.kind === 'person' && token.holder_id === me : token.id === own
}

/** A browser that replaced its own token would be signed out before anybody could read the new one. */
function mayRotate(token: Token, me: string | undefined): boolean {
  return token.kind !== 'link' && !isHere(token, me)
}

/** The one in the state folder: it can be replaced, never ended. */
function isOwnersFile(token: Token, holder: Known | undefined): boolean {
  return token.kind === 'person' && token.expires_at === null && holder?.owner === true
}
