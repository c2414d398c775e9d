import { defineCapability, JSON_TEXT } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { deleteProject, removeRepo } from './remove.ts'
import { projectCreated, projectDeleted, repoAdded, repoMoved, repoRemoved, repoSynced, repoUpdated } from './schema.ts'
import { projectStore } from './store.ts'
import { addRepo, create, list, listRepos, open, propose } from './tools.ts'
import { moved, moveRepo, updateRepo } from './update-repo.ts'

export const project = defineCapability({
  name: 'project',
  tools: [list, create, open, deleteProject, listRepos, addRepo, propose, updateRepo, removeRepo, moved],
  migrations,
  values: { repos: { files: JSON_TEXT, check_files: JSON_TEXT } },
  events: [projectCreated, projectDeleted, repoAdded, repoUpdated, repoMoved, repoRemoved, repoSynced],
  effects: [moveRepo],
  things: [
    {
      kind: 'project',
      async find(tx, ref) {
        const row = await projectStore(tx).project(ref)
        return row?.deleted_at === null ? { id: row.id, within: { project: row.id } } : undefined
      },
    },
    {
      kind: 'repo',
      async find(tx, ref) {
        const row = await projectStore(tx).repo(ref)
        return row?.removed_from === null ? { id: row.id, within: { project: row.project_id } } : undefined
      },
    },
  ],
  resources: [{ uri: 'signalbox://projects', name: 'projects', description: 'All projects', tool: 'project_list' }],
})

export { type Belonging, belongings, type Owner } from './belongings.ts'
export { currentProject } from './current.ts'
export { confirming, listed, proposalAt, stillProposed } from './propose.ts'
export { ProjectView, projectView, RepoView, repoAdded, repoMoved, repoUpdated, repoView } from './schema.ts'
export { projectStore, type RepoRow } from './store.ts'
export { followedTo, synced } from './synced.ts'
export { noProject } from './tools.ts'
export { gone } from './words.ts'
