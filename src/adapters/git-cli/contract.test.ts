import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe } from 'vitest'
import { type GitUnderTest, gitContract } from '../../ports/git.contract.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { LineGround } from '../../testing/line-ground.ts'

const lineRef = (target: string) => `refs/signalbox/line/${target}`

function real(): GitUnderTest {
  const ground = new LineGround()
  const holders: ChildProcess[] = []
  return {
    git: ground.git,
    another: ground.another(),
    impatient: ground.another(ground.env, 0),
    top: ground.top,
    write: (checkout, files) => ground.write(files, checkout),
    commit: (checkout, files) => ground.commit(checkout, files),
    commitOn(branch, files) {
      const changes = Object.entries(files).map(([path, text]) =>
        text === null ? `D ${path}` : `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}`,
      )
      const [ref, who] = [`refs/heads/${branch}`, 'ann <ann@x> now']
      const input = [`commit ${ref}`, `committer ${who}`, 'data 4', 'work', `from ${ref}^0`, ...changes, ''].join('\n')
      execFileSync('git', ['fast-import', '--quiet', '--date-format=now'], { cwd: ground.top, env: ground.env, input })
      return ground.tip(ref)
    },
    read: (checkout, file) => (existsSync(join(checkout, file)) ? readFileSync(join(checkout, file), 'utf8') : undefined),
    detach: (checkout) => void ground.in(checkout, 'checkout', '-q', '--detach'),
    deleteBranch: (branch) => void ground.run('branch', '-q', '-D', branch),
    moveLine: (target, commit) =>
      void (commit ? ground.run('update-ref', lineRef(target), commit) : ground.run('update-ref', '-d', lineRef(target))),
    collect() {
      ground.run('reflog', 'expire', '--expire=now', '--all')
      ground.run('gc', '--quiet', '--prune=now')
    },
    fetched(branch, commit) {
      ground.run('config', 'remote.origin.url', 'https://example.com/web')
      ground.run('update-ref', `refs/remotes/origin/${branch}`, commit)
    },
    lose: (checkout) => rmSync(checkout, { recursive: true }),
    occupy(path) {
      mkdirSync(path, { recursive: true })
      writeFileSync(join(path, 'theirs'), 'mine')
    },
    nest(checkout) {
      ground.run('init', '-q', join(checkout, 'inner'))
      writeFileSync(join(checkout, 'inner', 'only-here'), 'x')
    },
    lock(checkout) {
      const file = join(ground.in(checkout, 'rev-parse', '--absolute-git-dir'), 'index.lock')
      const held = openSync(file, 'wx')
      const holder = spawn('sleep', ['1000'], { stdio: [held, 'ignore', 'ignore'] })
      closeSync(held)
      holders.push(holder)
      return () => {
        rmSync(file)
        holder.kill('SIGKILL')
      }
    },
    close() {
      for (const holder of holders) holder.kill('SIGKILL')
      rmSync(ground.folder, { recursive: true, force: true })
    },
  }
}

function fake(): GitUnderTest {
  const git = new FakeGit()
  const { repo } = git
  return {
    git,
    another: git,
    impatient: git,
    top: repo.top,
    write: (path, files) => void repo.write(path, files),
    commit: (path, files) => repo.commit(path, files),
    commitOn(branch, files) {
      repo.checkOut('/elsewhere', `refs/heads/${branch}`)
      const commit = repo.commit('/elsewhere', files)
      repo.checkouts.delete('/elsewhere')
      return commit
    },
    read: (path, file) => (repo.occupied.get(path) ?? repo.checkouts.get(path)?.files)?.[file],
    detach(path) {
      const checkout = repo.write(path, {})
      checkout.head = repo.headAt(checkout)
    },
    deleteBranch: (branch) => void repo.refs.delete(`refs/heads/${branch}`),
    moveLine: (target, commit) => void (commit ? repo.refs.set(lineRef(target), commit) : repo.refs.delete(lineRef(target))),
    collect: () => repo.collect(),
    fetched: (branch, commit) => void repo.refs.set(`refs/remotes/origin/${branch}`, commit),
    lose: (path) => void repo.checkouts.delete(path),
    occupy: (path) => void repo.occupied.set(path, { theirs: 'mine' }),
    nest(path) {
      repo.write(path, {}).nested = true
    },
    lock(path) {
      const checkout = repo.write(path, {})
      checkout.locked = true
      return () => {
        checkout.locked = false
      }
    },
    close() {},
  }
}

describe('the fake', () => gitContract(fake))
describe('git', () => gitContract(real))
