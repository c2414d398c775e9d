import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Tool } from '../../kernel/tool.ts'
import { parseFlags } from '../../surfaces/cli/flags.ts'
import { named } from '../../surfaces/cli/names.ts'
import { depend, INSTALL, pack } from '../../testing/packages.ts'
import { SetupGround as Ground } from '../../testing/setup-ground.ts'
import { until } from '../../testing/signals.ts'

describe('what is proposed', () => {
  test('[SU1] is what the files of the repository suggest; it has no effect until a person says so', async () => {
    const ground = await Ground.open()
    const path = join(ground.app.folder, 'shop')
    mkdirSync(path)
    ground.git(path, 'init', '-q', '-b', 'main')
    for (const name of ['package.json', 'package-lock.json', 'requirements.txt']) writeFileSync(join(path, name), '{}\n')
    ground.commit(path, 'a.txt', 'x')
    const added = await ground.app.owner.call('repo_add', { path, project_id: await ground.app.project() })
    expect(added).toMatchObject({
      repo: { setup: null, files: [], check_files: [] },
      proposed: {
        setup: 'npm ci && python3 -m venv .venv && .venv/bin/pip install -r requirements.txt',
        because: ['package-lock.json', 'requirements.txt'],
      },
      message: expect.stringContaining("signalbox repo update shop --setup 'npm ci && "),
    })
    await ground.app.owner.call('repo_update', { repo_id: added.repo_id, setup: 'npm ci' })
    const { repos } = await ground.app.owner.call('repo_list', {})
    expect(repos.find(({ id }: { id: string }) => id === added.repo_id)).toMatchObject({ setup: 'npm ci' })
  })

  test('[SU15] is also what its .signalbox.yaml says, and the .env files beside it; what is registered is not proposed again', async () => {
    const ground = await Ground.open()
    const path = join(ground.app.folder, 'shop')
    mkdirSync(path)
    ground.git(path, 'init', '-q', '-b', 'main')
    writeFileSync(join(path, '.gitignore'), '.env*\n')
    for (const name of ['.env', '.env.local', 'pnpm-lock.yaml']) writeFileSync(join(path, name), 'A=1\n')
    ground.commit(path, '.signalbox.yaml', 'checks: npm test\ncleanup: dropdb "$SIGNALBOX_NAME"\ndev: npm run dev\n')
    const added = await ground.app.owner.call('repo_add', { path, project_id: await ground.app.project(), checks: 'make' })
    const setup = 'pnpm install --frozen-lockfile --package-import-method=clone-or-copy'
    const files = ['.env', '.env.local']
    expect(added.proposed).toEqual({
      checks: null,
      setup,
      cleanup: 'dropdb "$SIGNALBOX_NAME"',
      dev: 'npm run dev',
      files,
      check_files: [],
      because: ['pnpm-lock.yaml', '.signalbox.yaml', ...files],
      problem: null,
    })
    expect(added.message).toContain(
      `signalbox repo update shop --setup '${setup}' --cleanup 'dropdb "$SIGNALBOX_NAME"' --dev 'npm run dev' --files .env,.env.local`,
    )
    expect(added.repo).toMatchObject({ setup: null, cleanup: null, dev: null, files: [] })
    await ground.app.owner.call('repo_update', { repo_id: 'shop', setup, cleanup: 'true', dev: 'npm run dev' })
    expect((await ground.app.owner.call('repo_propose', { repo_id: 'shop' })).proposed).toMatchObject({
      setup: null,
      dev: null,
      files,
      because: files,
    })
    await ground.app.owner.call('repo_update', { repo_id: 'shop', files })
    expect(await ground.app.owner.call('repo_propose', { repo_id: 'shop' })).toEqual({
      proposed: null,
      message: 'Nothing more is proposed.',
    })
  })

  test('[SU1] is not what a person has said is not needed: null is none, of files too, from the first on', async () => {
    const ground = await Ground.open()
    const path = join(ground.app.folder, 'shop')
    mkdirSync(path)
    ground.git(path, 'init', '-q', '-b', 'main')
    writeFileSync(join(path, '.gitignore'), '.env\n')
    writeFileSync(join(path, '.env'), 'A=1\n')
    ground.commit(path, 'package-lock.json', '{}')
    const typed = async (tool: string, ...words: string[]) => (await parseFlags(named(tool) as Tool, words, async () => 'stdin')).input
    const given = await typed('repo_add', '--path', path, '--project-id', await ground.app.project(), '--setup', 'null', '--files', 'null')
    const added = await ground.app.owner.call('repo_add', given)
    expect(added).toMatchObject({ repo: { setup: null, files: [] }, proposed: null, message: 'shop is registered.' })
    await ground.app.owner.call('repo_update', { repo_id: 'shop', files: ['.env'], check_files: ['.env'] })
    const none = await typed('repo_update', 'shop', '--files', 'null', '--check-files', 'null')
    expect((await ground.app.owner.call('repo_update', none)).repo).toMatchObject({ files: [], check_files: [] })
  })

  test('[SU1] is shown as a command that means what it says: no file of the person is read, whatever a branch proposes', async () => {
    const ground = await Ground.open()
    const says = {
      setup: '@/etc/hostname',
      cleanup: '--setup',
      dev: '-',
      checks: '@@x',
      files: ['@.env', '[a]', 'b,c'],
      check_files: ['null'],
    }
    ground.commit(ground.top, '.signalbox.yaml', JSON.stringify(says))
    const { message } = await ground.app.owner.call('repo_propose', { repo_id: ground.repo })
    const words = execFileSync('sh', ['-c', `for word in ${message.split('\n').at(-1)}; do printf '%s\\0' "$word"; done`]).toString()
    const { input } = await parseFlags(named('repo_update') as Tool, words.split('\0').slice(4, -1), async () => 'stdin')
    expect(input).toMatchObject(says)
  })

  test.each([
    ['setup: "null"', 'line 1: setup: is the text "null"; write null without quotes.'],
    ['setup: [npm, ci]', 'line 1: setup: '],
    ['checks: npm test\nsetp: npm ci', 'line 2: "setp" is not known. Known: checks, setup, cleanup, dev, files, check_files.'],
    ['checks: npm test\nsetup: "npm ci', 'line 2: '],
    ['checks: &a npm test\nsetup: *a', 'line 1: "an alias" is not known.'],
    ['setup: "npm ci \\u202e# mp"', 'line 1: setup: must be one line of visible characters.'],
    ['files: [../../.ssh/id_rsa]', 'line 1: files: must be a path or a pattern below the top of the repository.'],
    ['files: .env', 'line 1: files: must be a list, such as [.env].'],
    ['- npm ci', 'line 1: it has to hold "name: value" lines.'],
    [`setup: ${'x'.repeat(70_000)}`, ' is not a text file of at most 64 KB.'],
  ])('[SU15] a file that cannot be read proposes nothing and says where it is wrong: %#', async (text, problem) => {
    const ground = await Ground.open()
    ground.commit(ground.top, 'package-lock.json', '{}')
    ground.commit(ground.top, '.signalbox.yaml', text)
    const { proposed } = await ground.app.owner.call('repo_propose', { repo_id: ground.repo })
    expect(proposed).toMatchObject({ checks: null, setup: 'npm ci', files: [], because: ['package-lock.json'] })
    expect(proposed.problem).toContain(`.signalbox.yaml${problem.startsWith('line') ? ', ' : ''}${problem}`)
  })
})

describe('the setup of a worktree', () => {
  test('[SU2] has passed before an agent begins, and is not run again when it goes on there', async () => {
    const ground = await Ground.open({ setup: 'echo packages > packages.txt; pwd' })
    const task = await ground.start()
    await ground.running(task.id)
    const place = await ground.place(task.id)
    expect(readFileSync(join(place, 'packages.txt'), 'utf8')).toBe('packages\n')
    const order = (await ground.app.events({})).filter(({ type }) =>
      ['work.made', 'setup.started', 'setup.ended', 'run.started'].includes(type),
    )
    expect(order.map(({ type }) => type)).toEqual(['work.made', 'setup.started', 'setup.ended', 'run.started'])
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'stop_agent' })
    await until(async () => (await ground.job(task.id)).state !== 'running')
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'resume_agent' })
    await until(async () => ground.agents.length === 2)
    expect(ground.runner.setups).toBe(1)
  })

  test('[SU3] that fails starts no agent, and its job has the last lines', async () => {
    const ground = await Ground.open({ setup: 'echo "ERR! no such package"; exit 7' })
    const task = await ground.start()
    await until(async () => (await ground.job(task.id))?.state === 'failed')
    expect((await ground.job(task.id)).reason).toContain(
      'Setup failed: `echo "ERR! no such package"; exit 7` ended with 7.\nERR! no such package',
    )
    expect(ground.agents).toEqual([])
    expect(ground.runner.living).toEqual([])
  })

  test('[SU20] gets the variables that the setting names, and so does a cleanup; agents and checks do not', async () => {
    const ground = await Ground.open({ setup: 'true', cleanup: 'true', checks: 'true' })
    const work = await ground.handedIn('one.txt')
    expect(await ground.approve(work)).toMatchObject({ merged: true })
    await ground.app.owner.call('setting_update', { key: 'setup.pass_environment', value: ['SSH_AUTH_SOCK'] })
    await until(async () => (await ground.runs(work.task.id))[0]?.state === 'ended')
    await ground.app.owner.call('work_collect', { task_id: work.task.id })
    await until(async () => (await ground.app.events({ type: 'work.removed' })).length === 1)
    const proxy = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']
    const inherited = [...ground.runner.ran].map(([run, { inherit }]) => [run.split(/_|-merge/)[0], inherit])
    expect(inherited).toEqual([
      ['setup', proxy],
      ['setup-check', proxy],
      ['check', []],
      ['cleanup-check', proxy],
      ['cleanup', ['SSH_AUTH_SOCK']],
    ])
    expect(ground.runner.runs.get(ground.agents[0] as string)?.spec?.inherit ?? []).not.toContain('http_proxy')
    expect(await ground.app.owner.refused('setting_update', { key: 'setup.pass_environment', value: ['A=1'] })).toMatchObject({
      code: 'INVALID_INPUT',
    })
  })

  test('[SU3] that waits for an answer gets none; one that hangs ends when its time is over', async () => {
    const ground = await Ground.open({ setup: 'read answer || { echo nobody answers; exit 3; }' })
    const asking = await ground.start()
    await until(async () => (await ground.job(asking.id))?.state === 'failed')
    expect((await ground.job(asking.id)).reason).toContain('nobody answers')
    await ground.app.owner.call('setting_update', { key: 'setup.minutes', value: 0.01 })
    await ground.change({ setup: 'echo it begins; sleep 60' })
    const hanging = await ground.start()
    await until(async () => (await ground.job(hanging.id))?.state === 'failed')
    expect((await ground.job(hanging.id)).reason).toContain('was not over after 0.01 minutes.')
  })

  test('[SU4] goes on over a restart, and is not begun again; who waits for it begins once', async () => {
    const ground = await Ground.open()
    const go = join(ground.app.folder, 'go')
    await ground.change({ setup: `echo once >> begun.txt; until test -e '${go}'; do sleep 0.05; done` })
    const task = await ground.start()
    await until(() => ground.runner.setups === 1)
    await until(async () => (await ground.attention(task.id))[1]?.startsWith('Its worktree is being set up: echo once'))
    await ground.app.reopen()
    writeFileSync(go, '')
    await ground.running(task.id)
    expect(readFileSync(join(await ground.place(task.id), 'begun.txt'), 'utf8')).toBe('once\n')
    expect([ground.runner.setups, ground.agents.length]).toEqual([1, 1])
  })

  test('[SU5] is ended with its task, and when its agent is stopped', async () => {
    const ground = await Ground.open({ setup: 'sleep 60' })
    const closed = await ground.start()
    await until(() => ground.runner.setups === 1)
    const stopped = await ground.start()
    await ground.app.owner.call('task_close', { task_id: closed.id, reason: 'not wanted' })
    await until(() => ground.runner.setups === 2)
    await ground.app.owner.call('job_submit', { task_id: stopped.id, action: 'stop_agent' })
    await until(async () => (await ground.job(stopped.id)).state !== 'running')
    await until(() => ground.runner.living.length === 0)
    expect(ground.agents).toEqual([])
  })
})

describe('the setup of a checkout for checks', () => {
  const checks = 'test -e packages.txt'

  test('[SU6] has passed before the checks run', async () => {
    const ground = await Ground.open({ setup: 'echo x > packages.txt', checks })
    const work = await ground.handedIn('one.txt')
    expect(await ground.approve(work)).toMatchObject({ merged: true })
    expect(ground.landed('main')).toHaveLength(1)
  })

  test('[SU6] that fails with the work in it blames nobody; the line goes on', async () => {
    const ground = await Ground.open({ setup: 'test ! -e broken.lock && echo x > packages.txt', checks })
    const [broken, fine] = [await ground.begun(), await ground.handedIn('fine.txt')]
    ground.commit(broken.path, 'broken.lock', 'x')
    await ground.handIn(broken, 'done')
    expect(await ground.approve(broken)).toMatchObject({ merged: false, status: 'stuck' })
    const [entry] = (await ground.line()).ended
    expect(entry.reason).toContain('With this work in it, a fresh checkout cannot be set up. Setup failed:')
    expect(await ground.approve(fine)).toMatchObject({ merged: true })
  })

  test('[SU6] that fails without any work holds the line, and says how to go on', async () => {
    const ground = await Ground.open({ checks })
    const work = await ground.handedIn('one.txt')
    await ground.change({ setup: 'echo no registry; exit 1' })
    await ground.approve(work)
    expect((await ground.line()).held).toContain(
      'A fresh checkout of main cannot be set up. Setup failed: `echo no registry; exit 1` ended with 1.\nno registry',
    )
    await ground.change({ setup: 'echo x > packages.txt' })
    await ground.app.owner.call('merge_retry', { repo_id: ground.repo, target: 'main' })
    await until(async () => (await ground.line()).waiting.length === 0)
    expect(ground.landed('main')).toHaveLength(1)
  })

  test.each([
    [{ setup: 'true' }, { setup: 'echo x > packages.txt' }],
    [{ setup: 'exit 1' }, { setup: 'echo x > packages.txt' }],
    [{ check_files: [] }, { check_files: ['packages.txt'] }],
  ])('[SU6] that was changed to %j blames nobody for a branch that was green before', async (after, before) => {
    const ground = await Ground.open({ checks, ...before })
    ground.commit(ground.top, '.gitignore', 'packages.txt\n')
    writeFileSync(join(ground.top, 'packages.txt'), 'x')
    const [first, innocent] = [await ground.handedIn('one.txt'), await ground.handedIn('two.txt')]
    expect(await ground.approve(first)).toMatchObject({ merged: true })
    await ground.change(after)
    expect(await ground.approve(innocent)).toMatchObject({ merged: false, status: 'pending' })
    expect((await ground.line()).held).not.toBeNull()
  })

  test('[SU7] that is missing is named where the checks fail without any work', async () => {
    const ground = await Ground.open({ checks: 'test -d node_modules' })
    ground.commit(ground.top, 'package-lock.json', '{}')
    const work = await ground.handedIn('one.txt')
    await ground.approve(work)
    expect((await ground.line()).held).toContain(
      "A fresh checkout has only what git carries, and web has no setup. Suggested by package-lock.json:\nsignalbox repo update web --setup 'npm ci'\nRun it, then let the line go on:\nsignalbox merge retry --repo-id web --target main",
    )
  })

  test('[SU7] that copies no files is told how checks get those that git ignores', async () => {
    const ground = await Ground.open({ setup: 'true', files: ['.env'], checks: 'test -e .env' })
    ground.commit(ground.top, '.gitignore', '.env\n')
    writeFileSync(join(ground.top, '.env'), 'A=1')
    await ground.approve(await ground.handedIn('one.txt'))
    expect((await ground.line()).held).toContain(
      'Checks get no files that git ignores. If they need these, run:\nsignalbox repo update web --check-files .env\nOr correct main, then let the line go on:\nsignalbox merge retry --repo-id web --target main',
    )
    await ground.change({ check_files: ['.env'] })
    await ground.app.owner.call('merge_retry', { repo_id: ground.repo, target: 'main' })
    await until(async () => (await ground.line()).waiting.length === 0)
    expect(ground.landed('main')).toHaveLength(1)
  })
})

describe('files that git does not carry', () => {
  test('[SU8] are copied where they are named, and only what git ignores', async () => {
    const ground = await Ground.open({ files: ['.env*', 'config/*.key', 'loose.txt'], check_files: ['.env.test'] })
    ground.commit(ground.top, '.gitignore', '.env*\nconfig/*.key\n')
    mkdirSync(join(ground.top, 'config'))
    for (const name of ['.env', '.env.test', 'config/a.key', 'config/b.txt', 'loose.txt']) writeFileSync(join(ground.top, name), name)
    const task = await ground.start()
    await ground.running(task.id)
    const place = await ground.place(task.id)
    expect(['.env', '.env.test', 'config/a.key', 'config/b.txt', 'loose.txt'].map((name) => existsSync(join(place, name)))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect(ground.git(place, 'status', '--porcelain')).toBe('')
    await ground.change({ checks: 'test -e .env.test && test ! -e .env' })
    ground.commit(place, 'done.txt', 'x')
    const { assignee_id } = (await ground.app.owner.call('task_get', { task_id: task.id })).task
    await ground.app.owner.call('review_request', { task_id: task.id, summary: 'done' }, { actFor: assignee_id })
    expect(await ground.app.owner.call('review_decide', { task_id: task.id, decision: 'approve' })).toMatchObject({ merged: true })
  })

  test('[SU19] that a work has committed are neither handed in nor landed, and agents see no secret of theirs in what it changed', async () => {
    const ground = await Ground.open({ files: ['.env*'] })
    writeFileSync(join(ground.top, '.env'), 'API_KEY=1234-abcd-5678\n')
    ground.commit(ground.top, '.gitignore', '.env*\n')
    const work = await ground.begun()
    writeFileSync(join(work.path, 'notes.txt'), 'it is 1234-abcd-5678\n')
    ground.commit(work.path, '.gitignore', '# nothing\n')
    const ask = ['review_request', { task_id: work.task.id, summary: 'x' }, { actFor: work.worker }] as const
    expect(await ground.app.owner.refused(...ask)).toMatchObject({ code: 'CONFLICT', message: expect.stringMatching(/with: \.env\.$/) })
    const seen = ['diff_get', { task_id: work.task.id }] as const
    const { patch } = await ground.app.owner.call(...seen, { actFor: work.worker })
    expect([patch.includes('it is [redacted]'), patch.includes('1234-abcd-5678')]).toEqual([true, false])
    expect((await ground.app.owner.call(...seen)).patch).toContain('it is 1234-abcd-5678')
    const read = { task_id: work.task.id, path: 'notes.txt' }
    expect((await ground.app.owner.call('file_read', read, { actFor: work.worker })).content).toBe('it is [redacted]\n')
    // Named only after it was handed in.
    await ground.change({ files: [] })
    await ground.handIn(work, 'x')
    await ground.change({ files: ['.env'] })
    expect(await ground.approve(work)).toMatchObject({ merged: false, message: expect.stringContaining('into the worktree: .env.') })
    expect(ground.landed('main')).toEqual([])
  })

  test('[SU8] are not copied where none is named, neither into a worktree nor into a checkout for checks', async () => {
    const ground = await Ground.open({ setup: 'true', checks: 'test ! -e .env' })
    ground.commit(ground.top, '.gitignore', '.env\n')
    writeFileSync(join(ground.top, '.env'), 'TOKEN=1\n')
    const work = await ground.handedIn('one.txt')
    expect(existsSync(join(work.path, '.env'))).toBe(false)
    expect(await ground.approve(work)).toMatchObject({ merged: true })
  })

  test('[SU8] a link in the person’s checkout is not followed: it could lead to what is hidden from agents', async () => {
    const ground = await Ground.open({ files: ['.env*', 'config/*'] })
    const hidden = join(ground.app.folder, 'hidden')
    mkdirSync(hidden)
    for (const name of ['token', '.env.token']) writeFileSync(join(hidden, name), 'secret')
    ground.commit(ground.top, '.gitignore', '.env*\nconfig\n')
    symlinkSync(join(hidden, 'token'), join(ground.top, '.env.local'))
    symlinkSync(hidden, join(ground.top, 'config'))
    const task = await ground.start()
    await ground.running(task.id)
    const place = await ground.place(task.id)
    expect([existsSync(join(place, '.env.local')), existsSync(join(place, 'config'))]).toEqual([false, false])
  })

  test('[SU8] a link that a branch has in the place of a folder leads nothing out', async () => {
    const ground = await Ground.open({ files: ['config/secret.key'] })
    const outside = join(ground.app.folder, 'outside')
    mkdirSync(outside)
    symlinkSync(outside, join(ground.top, 'config'))
    ground.commit(ground.top, '.gitignore', '*.key\n')
    ground.git(ground.top, 'branch', 'sly')
    ground.git(ground.top, 'rm', '-q', 'config')
    ground.commit(ground.top, 'b.txt', 'x')
    mkdirSync(join(ground.top, 'config'))
    writeFileSync(join(ground.top, 'config', 'secret.key'), 'secret')
    const task = await ground.start({ base_branch: 'sly' })
    await ground.running(task.id)
    expect(existsSync(join(outside, 'secret.key'))).toBe(false)
  })
})

describe('kept packages', () => {
  /** A project with packages that need no network. */
  async function shop(): Promise<Ground> {
    const ground = await Ground.open({ setup: INSTALL })
    pack(ground.top, 'greet', 'leave')
    depend(ground.top, 'greet')
    ground.commit(ground.top, '.gitignore', 'node_modules\n')
    return ground
  }

  async function begun(ground: Ground): Promise<string> {
    const task = await ground.start()
    await ground.running(task.id)
    return ground.place(task.id)
  }

  const installed = (place: string) => readFileSync(join(place, 'node_modules/greet/index.js'), 'utf8')

  test('[SU9] are copied where the same files decide them, and installed anew where others do', async () => {
    const ground = await shop()
    const first = await begun(ground)
    const second = await begun(ground)
    expect([installed(first), installed(second), ground.runner.setups]).toEqual([installed(first), installed(first), 1])
    expect((await ground.app.events({ type: 'setup.ended' })).map(({ data }) => data.how)).toEqual(['made', 'kept'])
    depend(ground.top, 'greet', 'leave')
    ground.commit(ground.top, 'a.txt', 'two\n')
    const third = await begun(ground)
    expect(existsSync(join(third, 'node_modules/leave/index.js'))).toBe(true)
    expect(ground.runner.setups).toBe(2)
    expect((await ground.app.owner.call('setup_kept', {})).kept).toHaveLength(2)
  })

  /** The folder of what is kept, with the copy for the next one. */
  async function spare(ground: Ground): Promise<string> {
    const [kept] = (await ground.app.owner.call('setup_kept', {})).kept
    const folder = join(ground.app.folder, 'packages', kept.key)
    await until(() => existsSync(join(folder, 'spare')))
    return folder
  }

  test('[SU9] lie ready as a copy for the next one, also after a check has taken it, unless that takes more disk than they may', async () => {
    const ground = await shop()
    await ground.change({ checks: 'test -e node_modules/greet/index.js' })
    await begun(ground)
    const kept = await spare(ground)
    const inode = lstatSync(join(kept, 'spare/node_modules/greet/index.js')).ino
    expect(lstatSync(join(await begun(ground), 'node_modules/greet/index.js')).ino).toBe(inode)
    await spare(ground)
    const { size_bytes } = (await ground.app.owner.call('setup_kept', {})).kept[0]
    const work = await ground.handedIn('one.txt')
    await spare(ground)
    expect(await ground.approve(work)).toMatchObject({ merged: true })
    await spare(ground)
    await ground.app.owner.call('setting_update', { key: 'setup.keep_gb', value: size_bytes / 1.5e9 })
    await begun(ground)
    await until(async () => (await ground.app.owner.call('setup_kept', {})).kept[0].size_bytes === size_bytes / 2)
    await begun(ground)
    expect((await ground.app.owner.call('setup_kept', {})).kept[0].size_bytes).toBe(size_bytes / 2)
  })

  test('[SU9] stand in for no command that does more than install', async () => {
    const ground = await shop()
    await ground.change({ setup: `${INSTALL} && echo made > node_modules/.database` })
    for (const place of [await begun(ground), await begun(ground)]) expect(existsSync(join(place, 'node_modules/.database'))).toBe(true)
    expect([ground.runner.setups, (await ground.app.owner.call('setup_kept', {})).kept]).toEqual([2, []])
  })

  test('[SU9] are kept with the hooks that husky makes, which git ignores by a file of their own', async () => {
    const ground = await shop()
    const prepare = "mkdir -p .husky/_ && echo '*' > .husky/_/.gitignore && echo hook > .husky/_/pre-commit"
    const manifest = join(ground.top, 'package.json')
    pack(ground.top, 'husky')
    depend(ground.top, 'greet', 'husky')
    mkdirSync(join(ground.top, '.husky'))
    writeFileSync(join(ground.top, '.husky/pre-commit'), 'npm test\n')
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), scripts: { prepare } }))
    ground.commit(ground.top, 'b.txt', 'x')
    const hook = (place: string) => readFileSync(join(place, '.husky/_/pre-commit'), 'utf8')
    expect([hook(await begun(ground)), hook(await begun(ground)), ground.runner.setups]).toEqual(['hook\n', 'hook\n', 1])
  })

  test('[SU10] of work under review are for its own tree; a check without another lockfile gets a copy', async () => {
    const ground = await shop()
    await ground.change({ checks: 'test -e node_modules/greet/index.js' })
    const same = await ground.handedIn('one.txt')
    expect(await ground.approve(same)).toMatchObject({ merged: true })
    expect(ground.runner.setups).toBe(1)
    const other = await ground.begun()
    depend(other.path, 'greet', 'leave')
    ground.commit(other.path, 'two.txt', 'x')
    await ground.handIn(other, 'done')
    expect(await ground.approve(other)).toMatchObject({ merged: true })
    expect(ground.runner.setups).toBe(2)
    // What it made is for the very same tree: the next worktree, as it has landed.
    const next = await begun(ground)
    expect([existsSync(join(next, 'node_modules/leave/index.js')), ground.runner.setups]).toEqual([true, 2])
  })

  test('[SU8] [SU10] have nothing in them of files that only checks get, or only worktrees', async () => {
    const ground = await shop()
    await ground.change({ check_files: ['.env.test'], checks: 'test -e node_modules/.stash' })
    ground.commit(ground.top, '.gitignore', 'node_modules\n.env.test\n')
    writeFileSync(join(ground.top, '.env.test'), 'TOKEN=for-checks-only\n')
    const work = await ground.begun()
    const manifest = JSON.parse(readFileSync(join(work.path, 'package.json'), 'utf8'))
    const postinstall = 'touch node_modules/.stash; if test -e .env.test; then cp .env.test node_modules/.stash; fi'
    writeFileSync(join(work.path, 'package.json'), JSON.stringify({ ...manifest, scripts: { postinstall } }))
    ground.commit(work.path, 'one.txt', 'x')
    await ground.handIn(work, 'done')
    expect(await ground.approve(work)).toMatchObject({ merged: true })
    expect(readFileSync(join(await begun(ground), 'node_modules/.stash'), 'utf8')).toBe('')
  })

  test('[SU10] are not made where somebody was before the setup: an edit can be hidden from git', async () => {
    const ground = await shop()
    await ground.change({ setup: null })
    const task = await ground.start()
    await ground.running(task.id)
    const place = await ground.place(task.id)
    ground.git(place, 'update-index', '--skip-worktree', 'package.json')
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'stop_agent' })
    await until(async () => (await ground.job(task.id)).state !== 'running')
    await ground.change({ setup: INSTALL })
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'resume_agent' })
    await until(() => ground.agents.length === 2)
    expect([ground.runner.setups, installed(place), (await ground.app.owner.call('setup_kept', {})).kept]).toEqual([
      1,
      installed(place),
      [],
    ])
  })

  test('[SU9] that cannot be copied are installed', async () => {
    const ground = await shop()
    await begun(ground)
    const kept = await spare(ground)
    for (const copy of ['tree', 'spare']) rmSync(join(kept, copy, 'node_modules'), { recursive: true })
    expect(installed(await begun(ground))).toBe("module.exports = 'greet'\n")
    expect(ground.runner.setups).toBe(2)
  })

  test('[SU11] are everybody’s own: what one changes stays where it is', async () => {
    const ground = await shop()
    const [ann, bob] = [await begun(ground), await begun(ground)]
    const before = installed(ann)
    for (const place of [ann, bob]) {
      writeFileSync(join(place, 'node_modules/greet/index.js'), 'process.exit(1)\n')
      expect(installed(await begun(ground))).toBe(before)
    }
  })

  test('[SU13] take no more disk than they may, and are deleted when a person says so', async () => {
    const ground = await shop()
    await begun(ground)
    const kept = await ground.app.owner.call('setup_kept', {})
    expect(kept).toMatchObject({ kept: [{ command: INSTALL, size_bytes: expect.any(Number) }], limit_bytes: 10_000_000_000 })
    expect(kept.total_bytes).toBeGreaterThan(0)
    const worker = await ground.app.agent('worker')
    expect(await worker.refused('setup_forget')).toMatchObject({ code: 'PERMISSION_DENIED' })
    await ground.app.owner.call('setup_forget', { key: kept.kept[0].key })
    await until(async () => (await ground.app.owner.call('setup_kept', {})).kept.length === 0)
    expect(await ground.app.owner.refused('setup_forget', { key: kept.kept[0].key })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await ground.app.owner.call('setup_forget', {})).toEqual({ message: 'There are no kept packages.' })
    await ground.app.owner.call('setting_update', { key: 'setup.keep_gb', value: 0 })
    await begun(ground)
    expect((await ground.app.owner.call('setup_kept', {})).kept).toEqual([])
  })
})

describe('ports and a name of its own', () => {
  const environmentOf = (ground: Ground, run: string) => ground.runner.runs.get(run)?.spec?.env ?? {}

  test('[SU14] stand in the environment of an agent, of its setup and of checks, and no two have the same', async () => {
    const ground = await Ground.open({ setup: 'echo "$PORT $SIGNALBOX_NAME" > ports.txt', checks: 'echo "$PORT" && test -e ports.txt' })
    const one = await ground.start()
    await ground.running(one.id)
    const two = await ground.start()
    await ground.running(two.id)
    const [first, second] = ground.agents.map((run) => environmentOf(ground, run)) as [Record<string, string>, Record<string, string>]
    expect(first).toMatchObject({
      PORT: '20000',
      SIGNALBOX_PORT_BASE: '20000',
      SIGNALBOX_NAME: `web-${one.handle.toLowerCase()}`,
      COMPOSE_PROJECT_NAME: `web-${one.handle.toLowerCase()}`,
    })
    expect(second).toMatchObject({ PORT: '20010', SIGNALBOX_NAME: `web-${two.handle.toLowerCase()}` })
    const work = await ground.handedIn('one.txt')
    const seen: string[] = []
    ground.runner.beforeCheck = ({ env }) => void seen.push(env.PORT as string)
    expect(await ground.approve(work)).toMatchObject({ merged: true })
    expect(seen).toEqual(['20030'])
  })

  test('[SU14] are told to the agent, stay over its lives, and are free when its worktree is gone', async () => {
    const ground = await Ground.open()
    const task = await ground.start()
    await ground.running(task.id)
    expect(ground.runner.kept.get(`${ground.agents[0]}/brief`)).toContain(
      'Servers that you start listen on your own ports, 20000 to 20009: others have theirs.',
    )
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'stop_agent' })
    await until(async () => (await ground.job(task.id)).state !== 'running')
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'resume_agent' })
    await until(() => ground.agents.length === 2)
    expect(environmentOf(ground, ground.agents[1] as string).PORT).toBe('20000')
    await ground.app.owner.call('task_close', { task_id: task.id, reason: 'not wanted' })
    await until(async () => (await ground.job(task.id)).state !== 'running')
    await ground.app.owner.call('work_collect', { task_id: task.id })
    await until(async () => (await ground.app.events({ type: 'work.removed' })).length === 1)
    const next = await ground.start()
    await ground.running(next.id)
    expect(environmentOf(ground, ground.agents[2] as string).PORT).toBe('20000')
  })

  test('[SU14] are none on which a program listens when they are leased, and stay when one listens later', async () => {
    const ground = await Ground.open()
    ground.listeners.open.add(20_003).add(20_010)
    const task = await ground.start()
    await ground.running(task.id)
    expect(environmentOf(ground, ground.agents[0] as string).PORT).toBe('20020')
    // Its own server.
    ground.listeners.open.add(20_020)
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'stop_agent' })
    await until(async () => (await ground.job(task.id)).state !== 'running')
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'resume_agent' })
    await until(() => ground.agents.length === 2)
    expect(environmentOf(ground, ground.agents[1] as string).PORT).toBe('20020')
  })

  test("[SU14] of the checks of an epic's line are free when the epic is over, and not before", async () => {
    const ground = await Ground.open({ checks: 'true' })
    const { owner } = ground.app
    const project_id = await ground.app.project()
    const { epic } = await owner.call('epic_create', { title: 'Passkeys', project_id, repo_id: ground.repo, start: false })
    let ofLine: string | undefined
    ground.runner.beforeCheck = ({ env }) => {
      ofLine = env.PORT
    }
    const inEpic = await ground.handedIn('one.txt', 'x', { epic_id: epic.id })
    expect(await ground.approve(inEpic)).toMatchObject({ merged: true })
    expect(ofLine).toBe('20010')
    const before = await ground.begun()
    await owner.call('epic_update', { epic_id: epic.id, state: 'CANCELLED' })
    const after = await ground.begun()
    const ports = await Promise.all(
      [before, after].map(async ({ task }) => (await owner.call('setup_get', { task_id: task.id })).ports.first),
    )
    expect(ports).toEqual([20_020, 20_010])
  })

  test('[SU14] have the names of the setting; an empty list leases none; all taken is said', async () => {
    const ground = await Ground.open()
    const set = (key: string, value: unknown) => ground.app.owner.call('setting_update', { key, value })
    await set('setup.environment', ['API_PORT={port+1}', 'DATABASE=shop_{name}'])
    await set('setup.first_port', 32_760)
    await set('setup.ports_each', 8)
    const one = await ground.start()
    await ground.running(one.id)
    expect(environmentOf(ground, ground.agents[0] as string)).toMatchObject({
      API_PORT: '32761',
      DATABASE: `shop_web-${one.handle.toLowerCase()}`,
    })
    const two = await ground.start()
    await until(async () => (await ground.job(two.id))?.state === 'failed')
    expect((await ground.job(two.id)).reason).toContain('All ports up to 32767 are taken by 1 checkouts.')
    await set('setup.environment', [])
    const three = await ground.start()
    await ground.running(three.id)
    expect(environmentOf(ground, ground.agents[1] as string)).not.toHaveProperty('API_PORT')
    expect((await ground.app.owner.refused('setting_update', { key: 'setup.environment', value: ['no line'] })).code).toBe('INVALID_INPUT')
  })
})
