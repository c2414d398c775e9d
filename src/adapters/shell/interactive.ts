import type { Interactive } from '../../ports/terminal.ts'
import { NETWORK } from '../harness-shared/program.ts'

/** A person's own, in which they start what they like. It is told nothing: a shell would do what the brief says, line by line. */
export const shell: Interactive = {
  name: 'shell',
  title: 'A shell',
  probe: async () => ({ found: true, version: 'any' }),
  launch: () => ({ argv: [process.env.SHELL || '/bin/sh'], env: {}, inherit: NETWORK, files: {}, signs: undefined }),
}
