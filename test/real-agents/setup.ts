import { forgetOwnSettings } from '../../src/testing/real-programs.ts'

forgetOwnSettings()
