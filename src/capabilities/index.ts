import type { Capability, SettingDefinition } from '../kernel/capability.ts'
import { agent } from './agent/index.ts'
import { approval } from './approval/index.ts'
import { effect } from './effect/index.ts'
import { epic } from './epic/index.ts'
import { escalation } from './escalation/index.ts'
import { job } from './job/index.ts'
import { mail } from './mail/index.ts'
import { merge } from './merge/index.ts'
import { need } from './need/index.ts'
import { pr } from './pr/index.ts'
import { preview } from './preview/index.ts'
import { project } from './project/index.ts'
import { review } from './review/index.ts'
import { run } from './run/index.ts'
import { session } from './session/index.ts'
import { setup } from './setup/index.ts'
import { system } from './system/index.ts'
import { task } from './task/index.ts'
import { transcript } from './transcript/index.ts'
import { work } from './work/index.ts'

/** THE registry: one line per capability. Order matters only for migrations that refer to an earlier one's tables. */
const all = [
  need,
  agent,
  project,
  task,
  work,
  setup,
  transcript,
  review,
  approval,
  job,
  run,
  mail,
  merge,
  pr,
  session,
  preview,
  epic,
  effect,
  escalation,
  system((): Record<string, SettingDefinition> => settingDefinitions),
]

export const capabilities: Capability[] = all

/** Every tool with its name, input and output: what a typed client is inferred from. */
export type Tools = (typeof all)[number]['tools'][number]

const settingDefinitions: Record<string, SettingDefinition> = Object.assign({}, ...capabilities.map((c) => c.settings ?? {}))

/** What the daemon and its streams act on themselves. */
export { createIdentity, ensureOwner, tokenEnded, tokenRotated } from './agent/index.ts'
export { effectStuck } from './effect/index.ts'
export { escalate } from './escalation/index.ts'
export { settingChanged, storedSettings } from './system/index.ts'
