import type { Dialect } from '../kernel/dialect.ts'
import { codex } from './codex/index.ts'
import { factory } from './factory/index.ts'

/** One line per dialect; each comes with the capabilities that it speaks about. */
export const dialects: Dialect[] = [factory, codex]
