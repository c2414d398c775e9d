export interface RepoFacts {
  /** The real path of the top of the work tree: links resolved, so one repository has one name. */
  top: string
  /** The branch that is checked out; null when detached. */
  branch: string | null
  /** Local branches by name. */
  branches: string[]
  remote: string | null
  head: string | null
}

/** Only the git CLI, argv arrays, no shell; hooks and configuration of an untrusted repository do not run. */
export interface Git {
  /** Undefined when the folder does not exist or is not inside a work tree. */
  inspect(path: string): Promise<RepoFacts | undefined>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    git: Git
  }
}
