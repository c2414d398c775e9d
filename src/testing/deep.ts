import { execFileSync } from 'node:child_process'

/** Folders below this one that no path can name any more. */
export function dig(folder: string): void {
  const down = "for (let i = 0; i < 50; i++) { fs.mkdirSync('x'.repeat(100)); process.chdir('x'.repeat(100)) }"
  execFileSync(process.execPath, ['-e', down], { cwd: folder })
}
