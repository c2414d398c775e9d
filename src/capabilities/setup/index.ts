import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { LIMIT, makeSetup } from './make.ts'
import { migrations } from './migrations.ts'
import { SETUP_STATES, setupEnded, setupStarted } from './schema.ts'
import { begin, ended } from './tools.ts'

export const setup = defineCapability({
  name: 'setup',
  tools: [begin, ended],
  migrations,
  values: { setups: { state: SETUP_STATES, waiting: JSON_TEXT } },
  events: [setupStarted, setupEnded],
  effects: [makeSetup],
  settings: {
    [LIMIT]: setting(z.number().min(0.01).max(1_440), 15, 'How long the setup of a checkout may take, in minutes'),
  },
})

export { setupAttention } from './attention.ts'
export { LIMIT as SETUP_LIMIT, makeReady, setupFailed } from './make.ts'
