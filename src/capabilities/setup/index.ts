import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { get } from './get.ts'
import { makeSetup } from './make.ts'
import { migrations } from './migrations.ts'
import { forgetKept, KEEP_GB } from './packages.ts'
import { ENVIRONMENT, EnvironmentLine, FIRST_PORT, LAST_PORT, leasePorts, PORTS_EACH } from './ports.ts'
import { LIMIT } from './rules.ts'
import { KEPT, SETUP_STATES, setupCleaned, setupEnded, setupStarted } from './schema.ts'
import { begin, cleaned, ended, forget, kept, undone } from './tools.ts'
import { secretsWatcher } from './watch.ts'

export const setup = defineCapability({
  name: 'setup',
  tools: [get, kept, forget, begin, ended, undone, cleaned, leasePorts],
  migrations,
  values: { setups: { state: SETUP_STATES, kept: KEPT, waiting: JSON_TEXT } },
  events: [setupStarted, setupEnded, setupCleaned],
  effects: [makeSetup, forgetKept],
  reactors: [secretsWatcher],
  settings: {
    [LIMIT]: setting(z.number().min(0.01).max(1_440), 15, 'How long the setup of a checkout may take, and its cleanup, in minutes'),
    [ENVIRONMENT]: setting(
      z.array(EnvironmentLine).max(50),
      ['SIGNALBOX_PORT_BASE={port}', 'PORT={port}', 'SIGNALBOX_NAME={name}', 'COMPOSE_PROJECT_NAME={name}'],
      'What programs in a checkout find in their environment: NAME=value lines, with {port}, {port+1} … and {name} of that checkout. An empty list leases no ports',
    ),
    [FIRST_PORT]: setting(z.int().min(1_024).max(LAST_PORT), 20_000, 'The first port that is leased to checkouts'),
    [PORTS_EACH]: setting(z.int().min(1).max(1_000), 10, 'How many ports each checkout gets'),
    [KEEP_GB]: setting(z.number().min(0).max(10_000), 10, 'How much disk the kept packages of setups may take on a machine, in GB'),
  },
})

export { setupAttention } from './attention.ts'
export { clean, cleanUpWork } from './cleanup.ts'
export { makeReady } from './make.ts'
export { withPackages } from './packages.ts'
export { environmentOf, environmentOfWork, leaseOfWork, lineHolder, portsOf } from './ports.ts'
export { LIMIT as SETUP_LIMIT, lastLines, setupFailed } from './rules.ts'
export { hideSecretsOf } from './secrets.ts'
export { withdraw } from './tools.ts'
