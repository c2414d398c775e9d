import { pause } from '../../kernel/patience.ts'
import type { Reactor } from '../../kernel/reactor.ts'
import { projectStore, repoAdded, repoMoved, repoUpdated } from '../project/index.ts'
import { hideSecretsOf } from './secrets.ts'

const MOST = 1_000
const LONGEST_MS = 3_000

/** Agents go on while there is no daemon, and what they print is read by the next one: it knows the secrets before. */
export const secretsWatcher: Reactor = {
  name: 'secrets',
  async start(ctx) {
    const learn = async (id: string) => {
      const repo = await projectStore(ctx.view).repo(id)
      if (repo) await hideSecretsOf(ctx.ports, repo)
    }
    for (const type of [repoAdded, repoUpdated, repoMoved]) ctx.on(type, ({ subject }) => void learn(subject).catch(ctx.defect))
    const repos = await projectStore(ctx.view).repos(undefined, '', MOST)
    const all = Promise.all(repos.map((repo) => hideSecretsOf(ctx.ports, repo)))
    // A disk that does not answer must not keep the daemon from its start.
    await Promise.race([all, pause(LONGEST_MS, ctx.signal)])
    return { ended: async () => {} }
  },
}
