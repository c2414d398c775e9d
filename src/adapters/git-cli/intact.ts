import { createHash } from 'node:crypto'
import { GitRefusal } from '../../ports/git.ts'
import type { Repo } from './run.ts'

/**
 * What is wrong with the objects that one commit has and another has not: one is missing, or its content is not what its id says. Git
 * does not look at that when it reads them, and whoever can write to the repository can put another file in the place of an object.
 */
export async function damageIn(repo: Repo, from: string, to: string): Promise<string | undefined> {
  const { stdout, failed } = await repo.tried(['rev-list', '--objects', '--no-object-names', to, '--not', from])
  if (failed !== undefined) return failed
  const content = new Content()
  const unread = await repo.read(['cat-file', '--batch', '--buffer'], stdout, (bytes) => content.take(bytes))
  return unread ?? content.wrong
}

export async function requireIntact(repo: Repo, from: string, to: string): Promise<void> {
  const damage = await damageIn(repo, from, to)
  if (damage !== undefined) throw new GitRefusal('damaged', `${to} cannot be read: ${damage}`)
}

/** `id type size LF content LF …`, in pieces of any size: a single object can be larger than what we would keep in memory. */
class Content {
  #header = Buffer.alloc(0)
  #left = 0
  #id = ''
  #hash: ReturnType<typeof createHash> | undefined
  wrong: string | undefined

  take(bytes: Buffer): void {
    for (let rest = bytes; rest.length; ) rest = this.#hash ? this.#content(rest) : this.#begin(rest)
  }

  #begin(bytes: Buffer): Buffer {
    const end = bytes.indexOf('\n')
    this.#header = Buffer.concat([this.#header, end < 0 ? bytes : bytes.subarray(0, end)])
    if (end < 0) return Buffer.alloc(0)
    const [id = '', type = '', size] = this.#header.toString().split(' ')
    this.#header = Buffer.alloc(0)
    if (size === undefined) {
      this.wrong ??= `${id} is ${type || 'not there'}`
      return bytes.subarray(end + 1)
    }
    this.#id = id
    this.#left = Number(size)
    this.#hash = createHash(id.length === 40 ? 'sha1' : 'sha256').update(`${type} ${size}\0`)
    return bytes.subarray(end + 1)
  }

  #content(bytes: Buffer): Buffer {
    const own = bytes.subarray(0, this.#left)
    this.#hash?.update(own)
    this.#left -= own.length
    // After it comes a line feed.
    if (this.#left || own.length === bytes.length) return bytes.subarray(own.length)
    if (this.#hash?.digest('hex') !== this.#id) this.wrong ??= `${this.#id} is not what its id says`
    this.#hash = undefined
    return bytes.subarray(own.length + 1)
  }
}
