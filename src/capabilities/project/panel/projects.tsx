import './projects.css'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { FolderGit2, GitBranch, Plus, RefreshCw, SquareKanban } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { Empty, Failed, Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useAll } from '../../../ui/live.tsx'
import { AddRepo } from './add-repo.tsx'
import { EditRepo } from './edit-repo.tsx'
import { NewProject } from './new-project.tsx'
import { DeleteProject, RemoveRepo } from './remove.tsx'
import { short } from './words.ts'

type Project = Output<'project_list'>['projects'][number]
type Repo = Output<'repo_list'>['repos'][number]

export function Projects() {
  const { new: creating } = useSearch({ strict: false }) as { new?: boolean }
  const navigate = useNavigate()
  // In the address, so that the empty board can send somebody straight to it.
  const setCreating = (open: boolean) => void navigate({ to: '/projects', search: open ? { new: true } : {}, replace: true })
  const projects = useAll('project_list', {}, 'after')
  const repos = useAll('repo_list', {}, 'after')
  const create = (
    <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
      New project
    </Button>
  )
  return (
    <Page title="Projects" subtitle="What the tasks are about, and where its code is." actions={create}>
      <Loaded read={projects}>
        {(pages) => {
          const all = pages.flatMap((page) => page.projects)
          if (!all.length)
            return (
              <Empty icon={FolderGit2} title="No project yet.">
                <p>A project holds the tasks that you hand out, and the repositories that they are about.</p>
                {create}
              </Empty>
            )
          const known = repos.data?.flatMap((page) => page.repos)
          return (
            <>
              {repos.error && <Failed error={repos.error} again={() => void repos.refetch()} />}
              {all.map((project) => (
                <ProjectCard key={project.id} project={project} repos={known?.filter((repo) => repo.project_id === project.id)} />
              ))}
            </>
          )
        }}
      </Loaded>
      <NewProject open={Boolean(creating)} onClose={() => setCreating(false)} />
    </Page>
  )
}

function ProjectCard({ project, repos }: { project: Project; repos: Repo[] | undefined }) {
  const [adding, setAdding] = useState(false)
  return (
    <Card
      title={
        <>
          {project.name} <span className="mono muted project-handle">{project.handle}</span>
        </>
      }
      actions={
        <div className="project-actions">
          <Link to="/board" search={{ project: project.handle }} className="button">
            <SquareKanban aria-hidden /> Board
          </Link>
          <Button icon={Plus} onClick={() => setAdding(true)}>
            Add a repository
          </Button>
          <DeleteProject project={project} />
        </div>
      }
    >
      {project.description && <p className="card-body project-description">{project.description}</p>}
      {repos?.length === 0 && (
        <p className="card-body muted">No repository yet. Agents can plan and write notes here, but there is no code to work on.</p>
      )}
      {repos && repos.length > 0 && <Repos label={`Repositories of ${project.name}`} repos={repos} />}
      <AddRepo project={project} open={adding} onClose={() => setAdding(false)} />
    </Card>
  )
}

function Repos({ label, repos }: { label: string; repos: Repo[] }) {
  return (
    <Table
      label={label}
      rows={repos}
      keyOf={(repo) => repo.id}
      columns={[
        {
          title: 'Repository',
          show: ({ handle, path }) => (
            <div className="repo-name">
              <strong>{handle}</strong>
              <span className="mono muted">{path}</span>
            </div>
          ),
        },
        { title: 'Base branch', show: ({ base_branch }) => <Badge icon={GitBranch}>{base_branch}</Badge> },
        {
          title: 'Head',
          show: ({ head }) =>
            head ? (
              <span className="mono" title={head}>
                {short(head)}
              </span>
            ) : (
              <span className="muted">no commit yet</span>
            ),
        },
        { title: 'Remote', show: ({ remote }) => <span className="mono repo-long">{remote ?? '–'}</span> },
        { title: 'Setup', show: ({ setup }) => <span className="mono repo-long">{setup ?? '–'}</span> },
        { title: 'Checks', show: ({ checks }) => <span className="mono repo-long">{checks ?? '–'}</span> },
        {
          title: 'Looked at',
          show: ({ synced_at }) => (
            <span className="muted">
              <Time at={synced_at} />
            </span>
          ),
        },
        {
          title: 'Actions',
          actions: true,
          show: (repo) => (
            <div className="project-actions">
              <Sync repo={repo} />
              <EditRepo repo={repo} />
              <RemoveRepo repo={repo} />
            </div>
          ),
        },
      ]}
    />
  )
}

function Sync({ repo }: { repo: Repo }) {
  const sync = useAction('repo_sync', {
    said: ({ changed }) => (changed ? `${repo.handle} has changed on disk.` : `${repo.handle} is as it was.`),
  })
  return (
    <Button
      icon={RefreshCw}
      aria-label={`Sync ${repo.handle}`}
      title="Read its head and remote again. Nothing in it is changed."
      busy={sync.isPending}
      onClick={() => sync.mutate({ repo_id: repo.id })}
    >
      Sync
    </Button>
  )
}
