import type { Dialect } from '../kernel/dialect.ts'
import { codex } from './codex.ts'
import { factory } from './factory.ts'

/** One line per dialect; each comes with the capabilities that it speaks about. */
export const dialects: Dialect[] = [factory, codex]
