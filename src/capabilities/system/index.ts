import { z } from 'zod'
import { defineCapability, type SettingDefinition, setting } from '../../kernel/capability.ts'
import { PATIENCE } from '../../kernel/patience.ts'
import { exportAudit, verify } from './audit-tools.ts'
import { listDecisions } from './decisions.ts'
import { migrations } from './migrations.ts'
import { audit, decide, decisionLogged, health, listEvents, settingChanged, settingTools, waitForEvents } from './tools.ts'

const Rate = z.int().min(1).max(1_000_000)

/** It lists the settings of all capabilities, so it is told where to find them. */
export function system(definitions: () => Record<string, SettingDefinition>) {
  return defineCapability({
    name: 'system',
    tools: [health, decide, listDecisions, audit, verify, exportAudit, ...settingTools(definitions), listEvents, waitForEvents],
    migrations,
    events: [settingChanged, decisionLogged],
    settings: {
      'limits.retries': setting(
        z.int().min(0).max(10),
        PATIENCE.retries,
        'How often a call is tried again when storage fails for a moment',
      ),
      'limits.retry_delay_ms': setting(z.int().min(0).max(60_000), PATIENCE.delayMs, 'How long a call waits before it is tried again'),
      'limits.agent_calls_per_second': setting(Rate, 100, 'Calls a second that one agent token may make in the long run'),
      'limits.agent_burst': setting(Rate, 500, 'Calls that one agent token may make at once after a pause'),
      'limits.person_calls_per_second': setting(Rate, 5_000, "Calls a second that one person's token may make in the long run"),
      'limits.person_burst': setting(Rate, 20_000, "Calls that one person's token may make at once after a pause"),
    },
    resources: [{ uri: 'signalbox://health', name: 'health', description: 'How the daemon is', tool: 'system_health' }],
  })
}

export { storedSettings } from './store.ts'
export { settingChanged } from './tools.ts'
