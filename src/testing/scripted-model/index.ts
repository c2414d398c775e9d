export type { Rule } from './conversation.ts'
export { type Call, type Fault, type Step, script, type Usage } from './script.ts'
export { type Model, type ModelOptions, type ModelRequest, startModel } from './server.ts'
