import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createNotifier } from '../adapters/notify/index.ts'
import { createPackages } from '../adapters/packages/index.ts'
import type { AppOptions } from '../daemon/app.ts'
import { FakeListeners } from './fakes/listeners.ts'
import { FakeRunner, fakeHarness, harnessesOf } from './fakes/runs.ts'
import { FakeTerminal, fakeInteractives } from './fakes/terminal.ts'
import { realGit } from './git.ts'

/** What an app in the test's own process stands on: real git, processes that are played. */
export function testSurroundings(folder: string): Pick<AppOptions, 'ports' | 'hostName' | 'address'> {
  return {
    ports: {
      git: realGit({ worktrees: join(folder, 'worktrees') }),
      packages: createPackages({
        folder: join(folder, 'packages'),
        privateFolder: (path) => mkdirSync(path, { recursive: true }),
        env: process.env,
      }),
      listeners: new FakeListeners(),
      ownerFile: { stage: async () => {} },
      runner: new FakeRunner(),
      harnesses: harnessesOf(fakeHarness()),
      terminal: new FakeTerminal(),
      interactives: fakeInteractives(),
      notifier: createNotifier(process.env),
    },
    hostName: 'here',
    address: Promise.resolve('http://127.0.0.1:9'),
  }
}
