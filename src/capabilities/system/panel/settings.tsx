import './settings.css'
import { RefreshCw, Search } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { IconButton } from '../../../ui/kit/button.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { SearchInput } from '../../../ui/kit/search.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { useTool } from '../../../ui/live.tsx'
import { SettingRow } from './setting-row.tsx'

export type Setting = Output<'setting_get'>['settings'][number]

export function Settings() {
  const [filter, setFilter] = useState('')
  const settings = useTool('setting_get', {})
  return (
    <Page
      title="Settings"
      subtitle="Each holds from the next call on; nothing restarts."
      actions={
        <search className="filters">
          <SearchInput label="Filter the settings" value={filter} onChange={(event) => setFilter(event.target.value)} />
        </search>
      }
    >
      <div className="settings">
        <div className="settings-main">
          <Loaded read={settings}>{({ settings: all }) => <Groups settings={all.filter((one) => fits(one, filter))} />}</Loaded>
        </div>
        <aside className="settings-side">
          <Health />
          <ThisBrowser />
        </aside>
      </div>
    </Page>
  )
}

function Groups({ settings }: { settings: Setting[] }) {
  if (!settings.length) return <Empty icon={Search} title="No setting fits the filter." />
  return Object.entries(Object.groupBy(settings, groupOf)).map(([group, members = []]) => (
    <Card key={group} title={group}>
      <ul>
        {members.map((one) => (
          <SettingRow key={one.key} setting={one} />
        ))}
      </ul>
    </Card>
  ))
}

const groupOf = ({ key }: Setting) => key.split('.')[0] as string

function fits({ key, description }: Setting, filter: string): boolean {
  const text = `${key} ${description}`.toLowerCase()
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function Health() {
  const read = useTool('system_health', {}, { follows: [] })
  return (
    <Card title="Health" actions={<IconButton icon={RefreshCw} name="Look again" onClick={() => void read.refetch()} />}>
      <Loaded read={read}>
        {({ ok, version, uptime_seconds, database, event_readers, waiting_calls, mcp_sessions, notices }) => (
          <dl className="card-body facts">
            <dt>State</dt>
            <dd>{ok ? <Badge tone="green">well</Badge> : <Badge tone="amber">needs a look</Badge>}</dd>
            {notices.length > 0 && (
              <>
                <dt>Notices</dt>
                <dd>{notices.join(' ')}</dd>
              </>
            )}
            <dt>Version</dt>
            <dd>{version}</dd>
            <dt>Running for</dt>
            <dd>{lasting(uptime_seconds)}</dd>
            <dt>Database</dt>
            <dd>
              {database.engine}, {(database.size_bytes / 1_048_576).toFixed(1)} MiB
            </dd>
            <dt>Writes</dt>
            <dd>
              {database.committed_calls.toLocaleString('en')} calls in {database.commits.toLocaleString('en')} commits,{' '}
              {database.queued_writes} waiting
            </dd>
            <dt>Connected</dt>
            <dd>
              {mcp_sessions} MCP sessions, {event_readers} event readers, {waiting_calls} waiting calls
            </dd>
          </dl>
        )}
      </Loaded>
    </Card>
  )
}

function ThisBrowser() {
  const me = useTool('agent_me', {})
  const days = useTool('setting_get', { key: 'dashboard.sign_in_days' }).data?.settings[0]?.value
  return (
    <Card title="This browser">
      <Loaded read={me}>
        {({ name, handle, profile }) => (
          <div className="card-body this-browser">
            <p>
              Signed in as <strong>{name}</strong> <span className="mono muted">{handle}</span>, with profile {profile.replace('_', ' ')}.
            </p>
            <p className="muted">
              A browser stays signed in for {String(days ?? '…')} days. Sign out in the menu under your name at the top; the theme is chosen
              beside it.
            </p>
          </div>
        )}
      </Loaded>
    </Card>
  )
}

function lasting(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} seconds`
  if (seconds < 3_600) return `${Math.round(seconds / 60)} minutes`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} hours` : `${Math.round(seconds / 86_400)} days`
}
