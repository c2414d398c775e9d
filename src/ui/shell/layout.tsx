import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { CircleHelp, LogOut, Monitor, Moon, Search, Sun, WifiOff } from 'lucide-react'
import { useState } from 'react'
import { useHotkeys } from 'react-hotkeys-hook'
import { call } from '../client.ts'
import { Button, IconButton } from '../kit/button.tsx'
import { Menu, MenuItem, MenuLabel } from '../kit/menu.tsx'
import { Skeleton } from '../kit/states.tsx'
import { useStreamState, useTool } from '../live.tsx'
import { navigation } from '../panels.ts'
import { session } from '../session.ts'
import type { StreamState } from '../stream.ts'
import { KeysHelp } from './keys-help.tsx'
import { Mark } from './mark.tsx'
import { Palette } from './palette.tsx'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

const AWAY: Partial<Record<StreamState, string>> = {
  lost: 'The connection to Signalbox is lost. Trying again; what you see may be out of date.',
  unreachable: 'Signalbox does not answer. Trying again.',
}

/** What stands around every screen. */
export function Layout() {
  const stream = useStreamState()
  const [palette, setPalette] = useState(false)
  const [help, setHelp] = useState(false)
  useHotkeys('mod+k', () => setPalette(true), { preventDefault: true, enableOnFormTags: true })
  useHotkeys('shift+slash', () => setHelp(true), { useKey: false })
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <nav className="side" aria-label="Main">
        <Link to="/" className="brand">
          <Mark />
          <span>Signalbox</span>
        </Link>
        <ul>
          {navigation.map((panel) => (
            <Place key={panel.path} {...panel} />
          ))}
        </ul>
        <div className="side-foot">
          <Health />
        </div>
      </nav>
      <div className="stage">
        <header className="top">
          <Link to="/" className="brand top-brand" aria-label="Signalbox">
            <Mark />
          </Link>
          <button type="button" className="find" onClick={() => setPalette(true)}>
            <Search aria-hidden />
            <span>Find a task or a page</span>
            <kbd>Ctrl K</kbd>
          </button>
          <ThemeMenu />
          <IconButton icon={CircleHelp} name="Keyboard shortcuts" onClick={() => setHelp(true)} />
          <Account />
        </header>
        {stream in AWAY && (
          <p className="lost" role="status">
            <WifiOff aria-hidden /> {AWAY[stream]}
          </p>
        )}
        <main id="main" tabIndex={-1}>
          {stream === 'connecting' || stream === 'unreachable' ? <Skeleton /> : <Outlet />}
        </main>
      </div>
      <Palette open={palette} onClose={() => setPalette(false)} />
      <KeysHelp open={help} onClose={() => setHelp(false)} />
    </div>
  )
}

/** Each listens for its own keys: several sequences in one listener share what was typed, and none is ever complete. */
function Place({ path, title, nav: { icon: Icon, key, count: Count } }: (typeof navigation)[number]) {
  const navigate = useNavigate()
  useHotkeys(`g>${key}`, () => void navigate({ to: path }))
  return (
    <li>
      <Link to={path} className="side-link" activeProps={{ 'aria-current': 'page' }}>
        <Icon aria-hidden />
        <span>{title}</span>
        {Count && <Count />}
      </Link>
    </li>
  )
}

function Health() {
  const stream = useStreamState()
  const health = useTool('system_health', {}, { follows: ['setting'], enabled: stream === 'live' }).data
  const [tone, word] =
    stream === 'live' ? (health?.ok === false ? ['amber', 'Needs a look'] : ['green', 'Connected']) : ['red', 'Not connected']
  return (
    <p className="health" title={health?.notices.join('\n')}>
      <span className={`light tone-${tone}`} aria-hidden />
      <span>{word}</span>
      {health && <small>{health.version}</small>}
    </p>
  )
}

const THEMES: Record<Theme, { icon: typeof Sun; name: string }> = {
  system: { icon: Monitor, name: 'Like the system' },
  light: { icon: Sun, name: 'Light' },
  dark: { icon: Moon, name: 'Dark' },
}

function ThemeMenu() {
  const [theme, setTheme] = useState(chosenTheme)
  const Icon = THEMES[theme].icon
  return (
    <Menu
      trigger={
        <button type="button" className="icon-button" aria-label="Theme">
          <Icon aria-hidden />
        </button>
      }
    >
      {Object.entries(THEMES).map(([value, { icon, name }]) => (
        <MenuItem
          key={value}
          icon={icon}
          onClick={() => {
            chooseTheme(value as Theme)
            setTheme(value as Theme)
          }}
        >
          {name}
        </MenuItem>
      ))}
    </Menu>
  )
}

function Account() {
  const me = useTool('agent_me', {}).data
  const signOut = async () => {
    const own = session.current()?.token_id
    // The daemon may be away, or the person may not end tokens: here it is forgotten either way.
    if (own) await call('token_revoke', { token_id: own }).catch(() => {})
    session.end()
  }
  return (
    <Menu
      trigger={
        <Button kind="quiet" className="account">
          <span className="avatar" aria-hidden>
            {(me?.name ?? '?').slice(0, 1).toUpperCase()}
          </span>
          <span className="account-name">{me?.name ?? '…'}</span>
        </Button>
      }
    >
      <MenuLabel>
        {me?.handle}, {me?.profile}
      </MenuLabel>
      <MenuItem icon={LogOut} onClick={() => void signOut()}>
        Sign out of this browser
      </MenuItem>
    </Menu>
  )
}
