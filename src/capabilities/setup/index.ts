import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { LIMIT, makeSetup } from './make.ts'
import { migrations } from './migrations.ts'
import { forgetKept, KEEP_GB } from './packages.ts'
import { KEPT, SETUP_STATES, setupEnded, setupStarted } from './schema.ts'
import { begin, ended, forget, kept } from './tools.ts'

export const setup = defineCapability({
  name: 'setup',
  tools: [kept, forget, begin, ended],
  migrations,
  values: { setups: { state: SETUP_STATES, kept: KEPT, waiting: JSON_TEXT } },
  events: [setupStarted, setupEnded],
  effects: [makeSetup, forgetKept],
  settings: {
    [LIMIT]: setting(z.number().min(0.01).max(1_440), 15, 'How long the setup of a checkout may take, in minutes'),
    [KEEP_GB]: setting(z.number().min(0).max(10_000), 10, 'How much disk the kept packages of setups may take on a machine, in GB'),
  },
})

export { setupAttention } from './attention.ts'
export { LIMIT as SETUP_LIMIT, makeReady, setupFailed } from './make.ts'
export { withPackages } from './packages.ts'
