import { defineCapability } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { projectCreated, repoAdded, repoSynced, repoUpdated } from './schema.ts'
import { projectStore } from './store.ts'
import { addRepo, create, list, listRepos, open, updateRepo } from './tools.ts'

export const project = defineCapability({
  name: 'project',
  tools: [list, create, open, listRepos, addRepo, updateRepo],
  migrations,
  events: [projectCreated, repoAdded, repoUpdated, repoSynced],
  things: [
    {
      kind: 'project',
      async find(tx, ref) {
        const row = await projectStore(tx).project(ref)
        return row && { id: row.id, within: { project: row.id } }
      },
    },
    {
      kind: 'repo',
      async find(tx, ref) {
        const row = await projectStore(tx).repo(ref)
        return row && { id: row.id, within: { project: row.project_id } }
      },
    },
  ],
  resources: [{ uri: 'signalbox://projects', name: 'projects', description: 'All projects', tool: 'project_list' }],
})

export { currentProject } from './current.ts'
export { ProjectView, projectView, RepoView, repoSynced, repoView } from './schema.ts'
export { projectStore, type RepoRow } from './store.ts'
export { noProject } from './tools.ts'
