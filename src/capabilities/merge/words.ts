/** Of files as somebody called them: a line feed or an escape in a name would be words of ours in a letter. */
export function named(files: string[]): string {
  return files.map((file) => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(file) ? JSON.stringify(file) : file)).join(', ')
}
