import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { attention } from '../task/index.ts'
import { removal } from '../work/index.ts'
import { setupAttention } from './attention.ts'
import { cleanUpWork } from './cleanup.ts'
import { get } from './get.ts'
import { makeSetup } from './make.ts'
import { migrations } from './migrations.ts'
import { forgetKept, KEEP_GB, stock, stockKept } from './packages.ts'
import { ENVIRONMENT, EnvironmentLine, FIRST_PORT, LAST_PORT, leasePorts, PORTS_EACH, VariableName } from './ports.ts'
import { LIMIT, PASSED } from './rules.ts'
import { KEPT, SETUP_STATES, setupCleaned, setupEnded, setupStarted } from './schema.ts'
import { begin, cleaned, ended, forget, kept, undone } from './tools.ts'
import { secretsWatcher } from './watch.ts'

export const setup = defineCapability({
  name: 'setup',
  tools: [get, kept, forget, begin, ended, undone, cleaned, stock, leasePorts],
  migrations,
  values: { setups: { state: SETUP_STATES, kept: KEPT, waiting: JSON_TEXT } },
  events: [setupStarted, setupEnded, setupCleaned],
  effects: [makeSetup, forgetKept, stockKept],
  reactors: [secretsWatcher],
  answers: [answer(attention, setupAttention, 'checkout'), answer(removal, cleanUpWork, 'cleanup')],
  settings: {
    [LIMIT]: setting(z.number().min(0.01).max(1_440), 15, 'How long the setup of a checkout may take, and its cleanup, in minutes'),
    [PASSED]: setting(
      z.array(VariableName).max(50),
      ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'],
      "Names of the daemon's environment variables that setup and cleanup commands get. Agents and checks do not",
    ),
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

export { clean } from './cleanup.ts'
export { committedCopies } from './committed.ts'
export { makeReady } from './make.ts'
export { withPackages } from './packages.ts'
export { environmentOf, environmentOfWork, leaseOfWork, lineHolder, portsOf } from './ports.ts'
export { LIMIT as SETUP_LIMIT, lastLines, PASSED as SETUP_PASSED, setupFailed } from './rules.ts'
export { hideSecretsOf } from './secrets.ts'
export { cleaned as setupCleaned, withdraw } from './tools.ts'
