import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EFFECT_TIMES } from '../../kernel/effect.ts'
import type { Git } from '../../ports/git.ts'
import { openTestApp } from '../../testing/app.ts'
import { realGit } from '../../testing/git.ts'
import { deferred, until } from '../../testing/signals.ts'
import { CheckingRunner, type Work, WorkGround } from '../../testing/work.ts'

const LINE = 'refs/signalbox/line/main'

class Ground extends WorkGround {
  readonly runner: CheckingRunner

  constructor(app: WorkGround['app'], runner: CheckingRunner) {
    super(app)
    this.runner = runner
  }

  approve({ task }: Work) {
    return this.app.owner.call('review_decide', { task_id: task.id, decision: 'approve' })
  }

  sync() {
    return this.app.owner.call('repo_sync', { repo_id: this.repo })
  }

  async line() {
    return (await this.app.owner.call('merge_status', { repo_id: this.repo })).lines[0]
  }

  tip(ref: string): string {
    return this.git(this.top, 'rev-parse', ref)
  }

  /** What nobody has approved, on top of a commit. */
  evil(parent: string): string {
    const path = join(this.app.folder, `evil-${Math.random().toString(36).slice(2)}`)
    this.git(this.top, 'worktree', 'add', '-q', '--detach', path, parent)
    return this.commit(path, 'evil.txt', 'evil\n')
  }

  async toPeople(subject: string) {
    const { letters } = await this.app.owner.call('mail_inbox')
    return letters.filter((letter: { subject: string }) => letter.subject === subject)
  }

  async idle(work: Work) {
    const [run] = (await this.app.owner.call('run_list', { task_id: work.task.id })).runs
    this.runner.exit(run.id, 0)
    await until(async () => (await this.app.owner.call('run_list', { task_id: work.task.id })).runs[0].state === 'ended')
  }
}

async function ground(checks?: string, ports: { git?: Git } = {}): Promise<Ground> {
  const runner = new CheckingRunner()
  const app = await openTestApp({ ports: { runner, ...ports }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
  onTestFinished(() => app.close())
  return new Ground(app, runner).prepare(checks ? { checks } : {})
}

/** `after` happens once, when the line was moved and nobody was told. */
async function atLanding(checks?: string) {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-trust-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const real = realGit({ worktrees: join(folder, 'worktrees') })
  const landing: { after?: (() => Promise<void>) | undefined } = {}
  const land: Git['land'] = async (...asked) => {
    const done = await real.land(...asked)
    const { after } = landing
    landing.after = undefined
    await after?.()
    return done
  }
  return { at: await ground(checks, { git: { ...real, land } }), landing }
}

describe('a line that somebody else moved', () => {
  test('[ML20] is not followed: it is held, and a person is told, once', async () => {
    const at = await ground()
    await at.approve(await at.handedIn('one.txt'))
    const landed = at.tip('main')
    const evil = at.evil(LINE)
    at.git(at.top, 'update-ref', LINE, evil)
    for (const _ of [1, 2])
      expect(await at.sync()).toMatchObject({
        branches: [{ target: 'main', behind: 0, reason: expect.stringContaining(evil.slice(0, 12)) }],
      })
    expect([at.tip('main'), existsSync(join(at.top, 'evil.txt'))]).toEqual([landed, false])
    expect(await at.line()).toMatchObject({ head: landed, held: expect.stringContaining(`git update-ref ${LINE} ${landed}`) })
    const [letter, ...more] = await at.toPeople('Nothing lands on main')
    expect([letter.body.includes(evil), more]).toEqual([true, []])
  })

  test('[ML20] takes nothing in, and goes on when it is put back', async () => {
    const at = await ground()
    await at.approve(await at.handedIn('one.txt'))
    const landed = at.tip('main')
    at.git(at.top, 'update-ref', LINE, at.evil(LINE))
    const work = await at.handedIn('two.txt')
    expect(await at.approve(work)).toMatchObject({ status: 'pending', message: expect.stringContaining('nothing lands on main') })
    expect(at.tip('main')).toBe(landed)
    const free = () => at.app.owner.call('merge_retry', { repo_id: at.repo, target: 'main' })
    await free()
    await until(async () => (await at.line()).held !== null)
    at.git(at.top, 'update-ref', LINE, landed)
    await free()
    await until(async () => (await at.app.owner.call('task_get', { task_id: work.task.id })).task.status === 'DONE')
    expect(at.git(at.top, 'ls-tree', '--name-only', 'main').split('\n')).toEqual(['a.txt', 'one.txt', 'two.txt'])
  })

  test('[ML20] to work that is still being checked is not followed, and what is red there does not land', async () => {
    const at = await ground('test ! -e red.txt')
    const [begun, go] = [deferred(), deferred()]
    at.runner.beforeCheck = () => {
      begun.resolve()
      return go.promise
    }
    const before = at.tip('main')
    const work = await at.handedIn('red.txt')
    await at.app.owner.call('merge_submit', { task_id: work.task.id })
    await begun.promise
    const { commit } = (await at.line()).waiting[0]
    at.git(at.top, 'update-ref', LINE, commit)
    await at.sync()
    expect(at.tip('main')).toBe(before)
    at.git(at.top, 'update-ref', LINE, before)
    go.resolve()
    await until(async () => (await at.line()).waiting.length === 0)
    expect((await at.line()).ended[0]).toMatchObject({ state: 'red' })
  })

  test('[ML20] is what we know it to be after a restart at any point', async () => {
    const at = await ground('true')
    const work = await at.handedIn('one.txt')
    await at.approve(work)
    // As if the daemon had died before it could tell that the line has taken something in.
    at.commit(at.top, 'theirs.txt', 'x\n')
    at.git(at.top, 'update-ref', LINE, 'main')
    await at.app.reopen()
    expect(await at.approve(await at.handedIn('two.txt'))).toMatchObject({ status: 'merged' })
    expect((await at.line()).held).toBeNull()
  })

  test('[ML20] is not one that lands between two looks', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-trust-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const real = realGit({ worktrees: join(folder, 'worktrees') })
    let meanwhile: (() => Promise<void>) | undefined
    const line: Git['line'] = async (of) => {
      const before = meanwhile
      meanwhile = undefined
      await before?.()
      return real.line(of)
    }
    const at = await ground('true', { git: { ...real, line } })
    // So that the branch stays behind, and then goes its own way.
    writeFileSync(join(at.top, 'a.txt'), 'not committed\n')
    await at.approve(await at.handedIn('zero.txt'))
    const [begun, go] = [deferred(), deferred()]
    at.runner.beforeCheck = () => {
      begun.resolve()
      return go.promise
    }
    await at.app.owner.call('merge_submit', { task_id: (await at.handedIn('one.txt')).task.id })
    await begun.promise
    at.git(at.top, 'commit', '-q', '-a', '-m', 'theirs')
    meanwhile = async () => {
      writeFileSync(join(at.top, 'a.txt'), 'not committed either\n')
      go.resolve()
      await until(async () => (await at.line()).waiting.length === 0)
    }
    await at.sync()
    expect(meanwhile).toBeUndefined()
    expect(await at.line()).toMatchObject({ held: null, ended: [{ state: 'landed' }, { state: 'landed' }] })
  })

  test.for([undefined, 'true'])(
    '[ML20] is not one with work that is taken out in the moment in which it lands (checks: %s)',
    async (checks) => {
      const { at, landing } = await atLanding(checks)
      const work = await at.handedIn('one.txt')
      landing.after = async () => void (await at.app.owner.call('merge_cancel', { task_id: work.task.id }))
      await at.app.owner.call('merge_submit', { task_id: work.task.id })
      await until(async () => (await at.line())?.ended[0]?.state === 'landed')
      expect(await at.line()).toMatchObject({ held: null, behind: 0, head: at.tip('main') })
      expect(await at.approve(await at.handedIn('two.txt'))).toMatchObject({ status: 'merged' })
    },
  )

  test('[ML20] is not one on which such work is found again, when others have landed on top of it', async () => {
    const { at, landing } = await atLanding()
    const work = await at.handedIn('one.txt')
    landing.after = async () => {
      await at.app.owner.call('merge_cancel', { task_id: work.task.id })
      throw new Error('killed before it could tell')
    }
    await at.app.owner.call('merge_submit', { task_id: work.task.id })
    await until(async () => (await at.line())?.ended[0]?.state === 'withdrawn')
    expect(await at.approve(await at.handedIn('two.txt'))).toMatchObject({ status: 'merged' })
    const head = at.tip(LINE)
    await at.app.owner.call('merge_retry', { task_id: work.task.id })
    await until(async () => (await at.app.owner.call('task_get', { task_id: work.task.id })).task.status === 'DONE')
    expect(await at.line()).toMatchObject({ held: null, head })
    expect(await at.approve(await at.handedIn('three.txt'))).toMatchObject({ status: 'merged' })
  })

  test('[ML20] is never one that we move ourselves, whoever looks meanwhile', async () => {
    const at = await ground('true')
    const works: Work[] = []
    for (let n = 0; n < 5; n++) works.push(await at.handedIn(`f${n}.txt`, `${n}\n`))
    for (const { task } of works) await at.app.owner.call('merge_submit', { task_id: task.id })
    for (let n = 0; (await at.line()).waiting.length; n++) {
      if (n === 2) at.commit(at.top, `mine-${n}.txt`, 'x\n')
      await Promise.all([at.sync(), at.sync()])
    }
    expect((await at.line()).ended.map(({ state }: { state: string }) => state)).toEqual(works.map(() => 'landed'))
    expect(await at.toPeople('Nothing lands on main')).toEqual([])
  })

  test('[ML20] can begin anew at its branch, when a person says so', async () => {
    const at = await ground()
    await at.approve(await at.handedIn('one.txt'))
    at.git(at.top, 'checkout', '-q', '--orphan', 'rewritten')
    const anew = at.commit(at.top, 'a.txt', 'anew\n')
    at.git(at.top, 'branch', '-f', 'main', anew)
    at.git(at.top, 'checkout', '-q', 'main')
    at.git(at.top, 'update-ref', LINE, anew)
    expect(await at.sync()).toMatchObject({ branches: [{ reason: expect.stringContaining('held') }] })
    await at.app.owner.call('merge_retry', { repo_id: at.repo, target: 'main', anew: true })
    expect(await at.approve(await at.handedIn('two.txt'))).toMatchObject({ status: 'merged' })
    expect(at.git(at.top, 'rev-parse', 'main~1')).toBe(anew)
  })
})

describe('a branch that somebody else moved', () => {
  test('[ML21] is taken in, and a person is told what came', async () => {
    const at = await ground()
    await at.approve(await at.handedIn('one.txt'))
    const landed = at.tip('main')
    expect(await at.toPeople('main of web was moved')).toEqual([])
    const theirs = at.commit(at.top, 'theirs.txt', 'x\n')
    await at.approve(await at.handedIn('two.txt'))
    const second = at.tip('main')
    const more = at.commit(at.top, 'more.txt', 'x\n')
    await at.approve(await at.handedIn('three.txt'))
    const told = (await at.app.events({ type: 'line.moved' })).map(({ data }) => [data.target, data.from, data.to])
    expect(told).toEqual([
      ['main', landed, theirs],
      ['main', second, more],
    ])
    const letters: string[] = (await at.toPeople('main of web was moved')).map(({ body }: { body: string }) => body)
    for (const [, from, to] of told) expect(letters.filter((body) => body.includes(`git log ${from}..${to}`))).toHaveLength(1)
  })

  test.for([false, true])(
    '[ML25] before anything has landed is ignored or told, not taken in silently (with a remote: %s)',
    async (remote) => {
      const at = await ground()
      if (remote) at.git(at.top, 'remote', 'add', 'origin', 'https://example.com/web')
      const before = at.tip('main')
      const work = await at.handedIn('one.txt')
      const evil = at.evil('main')
      at.git(work.path, 'update-ref', 'refs/remotes/origin/main', evil)
      expect(await at.approve(work)).toMatchObject({ status: 'merged' })
      expect(existsSync(join(at.top, 'evil.txt'))).toBe(remote)
      const letters = (await at.toPeople('main of web was moved')).map(({ body }: { body: string }) => body)
      expect(letters).toEqual(remote ? [expect.stringContaining(`git log ${before}..${evil}`)] : [])
    },
  )

  test('[ML25] and that nothing lands on yet is told when it is looked at for the first time', async () => {
    const at = await ground()
    const first = await at.begun('one')
    const evil = at.evil('main')
    at.git(first.path, 'branch', 'release', evil)
    await at.begun('two', { base_branch: 'release' })
    const subject = 'The line of release of web begins'
    expect(await at.toPeople(subject)).toMatchObject([{ body: expect.stringContaining(`git log ${evil}`) }])
    await at.begun('three', { base_branch: 'release' })
    expect([await at.toPeople(subject), await at.toPeople('The line of main of web begins')]).toMatchObject([[{}], []])
  })
})

describe('what was shown', () => {
  test('[ML22] is what lands: work that began elsewhere waits until it is put on the line, and shown from there', async () => {
    const at = await ground()
    const main = at.tip('main')
    await at.begun('zero')
    const evil = at.evil('main')
    // While somebody begins.
    at.git(at.top, 'checkout', '-q', '--detach')
    at.git(at.top, 'update-ref', 'refs/heads/main', evil)
    const work = await at.begun('one')
    at.git(at.top, 'update-ref', 'refs/heads/main', main)
    at.git(at.top, 'checkout', '-q', 'main')
    at.commit(work.path, 'one.txt', 'x\n')
    await at.handIn(work, 'one.txt is there')
    const shown = async () => {
      const { files } = await at.app.owner.call('diff_get', { task_id: work.task.id })
      return files.map(({ path }: { path: string }) => path)
    }
    expect(await at.approve(work)).toMatchObject({ status: 'stuck', message: expect.stringContaining('review_rebase') })
    expect(at.tip('main')).toBe(main)
    await at.idle(work)
    expect(await at.app.owner.call('review_rebase', { task_id: work.task.id })).toMatchObject({ status: 'even' })
    expect(await shown()).toEqual(['evil.txt', 'one.txt'])
  })

  test('[ML22] has what the work takes back of what has landed, and follows no ref', async () => {
    const at = await ground()
    const work = await at.begun('two')
    await at.approve(await at.handedIn('one.txt'))
    at.git(work.path, 'merge', '-q', LINE)
    at.git(work.path, 'rm', '-q', 'one.txt')
    at.commit(work.path, 'two.txt', 'quite another\n')
    await at.handIn(work, 'two.txt is there')
    const shown = async () => {
      const { files } = await at.app.owner.call('diff_get', { task_id: work.task.id })
      return files.map(({ path, status }: { path: string; status: string }) => `${status} ${path}`)
    }
    expect(await shown()).toEqual(['D one.txt', 'A two.txt'])
    for (const ref of [LINE, 'refs/heads/main']) at.git(at.top, 'update-ref', ref, at.git(work.path, 'rev-parse', 'HEAD'))
    expect(await shown()).toEqual(['D one.txt', 'A two.txt'])
  })
})

test('[W11] the difference has nothing that people committed before the work began, and no line has taken in yet', async () => {
  const at = await ground()
  await at.approve(await at.handedIn('one.txt'))
  at.commit(at.top, 'theirs.txt', 'x\n')
  const work = await at.handedIn('two.txt')
  const shown = async () => (await at.app.owner.call('diff_get', { task_id: work.task.id })).files.map(({ path }: { path: string }) => path)
  expect(await shown()).toEqual(['two.txt'])
  await at.approve(await at.handedIn('three.txt'))
  at.git(work.path, 'merge', '-q', '--no-edit', LINE)
  expect(await shown()).toEqual(['two.txt'])
})

describe('what was handed in', () => {
  const collect = (at: Ground) => {
    at.git(at.top, 'reflog', 'expire', '--expire=now', '--expire-unreachable=now', '--all')
    at.git(at.top, 'gc', '-q', '--prune=now')
  }
  const kept = (at: Ground) =>
    at.git(at.top, 'for-each-ref', '--format=%(objectname)', 'refs/signalbox/handed-in').split('\n').filter(Boolean)

  test('[ML23] is there until it has landed, wherever its branch goes', async () => {
    const at = await ground()
    const work = await at.handedIn('one.txt')
    const head = at.git(work.path, 'rev-parse', 'HEAD')
    await until(() => kept(at).includes(head))
    at.git(work.path, 'reset', '-q', '--hard', 'main')
    collect(at)
    const later = at.commit(work.path, 'later.txt', 'x\n')
    const commit = at.git(at.top, 'rev-parse', head)
    expect(commit).toBe(head)
    expect(await at.app.owner.call('review_decide', { task_id: work.task.id, decision: 'approve', commit: later })).toMatchObject({
      status: 'merged',
    })
    await until(() => kept(at).length === 0)
    const again = await at.handedIn('two.txt')
    await until(() => kept(at).length === 1)
    at.git(at.top, 'merge', '-q', '--ff-only', at.git(again.path, 'rev-parse', 'HEAD'))
    expect(await at.approve(again)).toMatchObject({ status: 'merged' })
    await until(() => kept(at).length === 0)
  })

  test('[ML23] is merged though its branch was moved and everything collected while it waited', async () => {
    const at = await ground('true')
    const [begun, go] = [deferred(), deferred()]
    at.runner.beforeCheck = () => {
      begun.resolve()
      return go.promise
    }
    const [first, second] = [await at.handedIn('one.txt'), await at.handedIn('two.txt')]
    for (const { task } of [first, second]) await at.app.owner.call('merge_submit', { task_id: task.id })
    await begun.promise
    await until(() => kept(at).length === 2)
    at.git(second.path, 'reset', '-q', '--hard', 'main')
    collect(at)
    go.resolve()
    await until(async () => (await at.line()).waiting.length === 0)
    expect((await at.line()).ended.map(({ state }: { state: string }) => state)).toEqual(['landed', 'landed'])
  })

  test('[ML24] holds the line when it cannot be read once it has landed', async () => {
    const at = await ground('true')
    const work = await at.handedIn('one.txt', 'only here\n')
    const before = at.tip('main')
    const blob = at.git(work.path, 'rev-parse', 'HEAD:one.txt')
    const file = join(at.top, '.git/objects', blob.slice(0, 2), blob.slice(2))
    at.runner.beforeCheck = () => {
      rmSync(file)
      rmSync(join(at.top, '.git/objects/pack'), { recursive: true })
    }
    expect(await at.approve(work)).toMatchObject({ status: 'pending' })
    expect(await at.line()).toMatchObject({ held: expect.stringContaining(blob), waiting: [{ state: 'waiting' }] })
    expect([at.tip('main'), at.tip(LINE)]).toEqual([before, before])
    at.runner.beforeCheck = () => {}
    writeFileSync(join(at.top, 'one.txt'), 'only here\n')
    at.git(at.top, 'hash-object', '-w', 'one.txt')
    rmSync(join(at.top, 'one.txt'))
    await at.app.owner.call('merge_retry', { repo_id: at.repo, target: 'main' })
    await until(async () => (await at.line()).waiting.length === 0)
    expect((await at.line()).ended[0]).toMatchObject({ state: 'landed' })
  })
})
