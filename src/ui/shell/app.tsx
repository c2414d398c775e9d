import { CSPProvider } from '@base-ui/react/csp-provider'
import { Tooltip } from '@base-ui/react/tooltip'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createRootRoute, createRoute, createRouter, RouterProvider, redirect } from '@tanstack/react-router'
import { useState, useSyncExternalStore } from 'react'
import type { ErrorBody } from '../../kernel/error.ts'
import { CallError } from '../client.ts'
import { Toasts } from '../kit/toasts.tsx'
import { LiveProvider } from '../live.tsx'
import { nonce } from '../nonce.ts'
import { navigation, panels } from '../panels.ts'
import { session } from '../session.ts'
import { Crashed, NoSuchPage } from './errors.tsx'
import { Layout } from './layout.tsx'
import { SignIn } from './sign-in.tsx'

const newQueries = () =>
  new QueryClient({
    defaultOptions: {
      // The stream says when something is out of date; nothing is read again on a guess.
      queries: { staleTime: Infinity, refetchOnWindowFocus: false, refetchOnReconnect: false, retry: mayPass, retryDelay: pauseBefore },
      mutations: { retry: false },
    },
  })

const root = createRootRoute({
  component: Layout,
  notFoundComponent: NoSuchPage,
  errorComponent: ({ error }) => <Crashed error={error as Error} />,
})
const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: navigation[0]?.path as string })
  },
})
const screens = panels.map(({ path, component }) => createRoute({ getParentRoute: () => root, path, component }))
const router = createRouter({
  routeTree: root.addChildren([start, ...screens]),
  // Text stays text: a filter for 12 is no number.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = String(
      new URLSearchParams(Object.entries(search).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]))),
    )
    return text && `?${text}`
  },
})

export function App() {
  const signedIn = useSyncExternalStore(session.subscribe, session.current)
  return (
    <CSPProvider nonce={nonce}>
      <Tooltip.Provider delay={400}>
        {signedIn ? <SignedIn key={signedIn.token} token={signedIn.token} /> : <SignIn />}
        <Toasts />
      </Tooltip.Provider>
    </CSPProvider>
  )
}

/** What one person has read is not shown to the next. */
function SignedIn({ token }: { token: string }) {
  const [queries] = useState(newQueries)
  return (
    <QueryClientProvider client={queries}>
      <LiveProvider token={token} onRefused={() => session.end('This browser was signed out.')}>
        <RouterProvider router={router} />
      </LiveProvider>
    </QueryClientProvider>
  )
}

/** How often each is tried again: a daemon that is being restarted comes back, a fault or too much at once may pass. All else stays refused. */
const TRIED_AGAIN: Partial<Record<ErrorBody['code'], number>> = {
  DISCONNECTED: 60,
  TRANSIENT_ERROR: 60,
  SHUTTING_DOWN: 60,
  RATE_LIMITED: 4,
  INTERNAL_ERROR: 3,
}

function mayPass(failures: number, error: unknown): boolean {
  return error instanceof CallError && failures < (TRIED_AGAIN[error.body.code] ?? 0)
}

function pauseBefore(failures: number, error: unknown): number {
  const busy = error instanceof CallError && ['RATE_LIMITED', 'INTERNAL_ERROR'].includes(error.body.code)
  return busy ? 1_000 * 2 ** failures : 1_000
}
