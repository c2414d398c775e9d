/** Where the owner's secret lives on disk. */
export interface OwnerFile {
  /** Writes the next secret beside the current one; it takes the place when the rotation has committed. */
  stage(secret: string): Promise<void>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    ownerFile: OwnerFile
  }
}
