// Makes the files of this folder: what a Signalbox of COMMIT had on disk when it was killed in the middle of its work.
//
//   node test/old-database/make.mjs              check that commit out into .cache, build it, let it work, kill it
//   node test/old-database/make.mjs --at DIR     with a checkout of it that is built already
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { brotliCompressSync } from 'node:zlib'
import { DatabaseSync } from '@photostructure/sqlite'
import { build } from 'esbuild'

const COMMIT = '37cabc2'
const HERE = import.meta.dirname
const REPOSITORY = resolve(HERE, '../..')
const PATIENCE_MS = 60_000
/** Not kept: secrets, and what only says where the daemon was. */
const LEFT_OUT = /[.](moved|db|db-wal|db-shm|lock|sock|token)$|\/token$|\/daemon[.]json$|\/logs\//

const { values } = parseArgs({ options: { at: { type: 'string' } } })
const old = resolve(values.at ?? checkedOut())
const root = mkdtempSync(join(tmpdir(), 'sbold-'))
const home = join(root, 'home')
const env = { ...process.env, HOME: root, SIGNALBOX_HOME: home, XDG_RUNTIME_DIR: root, SIGNALBOX_PORT: '0', SHELL: '/bin/sh' }
env.PATH = `${join(root, 'bin')}:${process.env.PATH}`
delete env.SIGNALBOX_TOKEN

try {
  const { url, child } = await startDaemon()
  const ids = await work((tool, input) => call(url, tool, input))
  killEverything()
  await once(child, 'exit')
  keep(ids)
  await keepPostgres()
} finally {
  killEverything()
  rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  if (!values.at) execFileSync('git', ['worktree', 'remove', '--force', old], { cwd: REPOSITORY })
}

function checkedOut() {
  const folder = join(REPOSITORY, '.cache', `signalbox-${COMMIT}`)
  const run = (cwd, command, ...args) => execFileSync(command, args, { cwd, stdio: 'inherit' })
  if (!existsSync(folder)) run(REPOSITORY, 'git', 'worktree', 'add', '--detach', folder, COMMIT)
  run(folder, 'npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund')
  run(folder, 'npm', 'run', 'build')
  return folder
}

async function startDaemon() {
  const child = spawn(process.execPath, [join(old, 'bin/signalbox.js'), 'serve', '--quiet'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [url] = await once(createInterface({ input: child.stdout }), 'line')
  return { url, child }
}

async function call(url, tool, input = {}) {
  const headers = { authorization: `Bearer ${readFileSync(join(home, 'owner.token'), 'utf8').trim()}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}/api/tools/${tool}`, { method: 'POST', headers, body: JSON.stringify(input) })
  const { ok, result, error } = await response.json()
  if (!ok) throw new Error(`${tool} was refused: ${JSON.stringify(error)}`)
  return result
}

/** Everything that has to be there when it is killed, in the order in which it comes about. */
async function work(call) {
  makeRepository()
  const approves = { call: { tool: 'review_decide', arguments: { decision: 'approve' } } }
  const settings = {
    'runs.back_off_seconds': 0.05,
    'runs.linger_seconds': 5,
    'runs.max_lives': 10,
    'mail.notice_seconds': 0,
    'review.harness': 'scripted',
  }
  for (const [key, value] of Object.entries(settings)) await call('setting_update', { key, value })
  const { project_id } = await call('project_create', { name: 'Web' })
  const checks = `test ! -e slow.txt || ${waitsFor('checks')}`
  const { repo_id } = await call('repo_add', { path: join(root, 'repo'), project_id, checks })
  const task = (title, description, more = {}) => call('task_create', { project_id, title, description, ...more })
  const begin = async (title, description, more) => {
    const { task_id } = await task(title, description)
    const { job_id } = await call('job_submit', { task_id, action: 'start_agent', harness: 'scripted', ...more })
    return { task_id, job_id }
  }
  const is = (task_id, status) => until(`${task_id} is ${status}`, async () => (await call('task_get', { task_id })).task.status === status)

  const done = await begin('Greet', scripted(works('greeting.txt')))
  await is(done.task_id, 'DONE')

  const checked = await begin('Slow to check', scripted(works('slow.txt')))
  await until('its checks run', () => existsSync(gate('checks.reached')))

  const reviewed = await begin('Read slowly', scripted(works('read.txt'), [waits('review'), approves]))
  await until('the reviewer reads', () => existsSync(gate('review.reached')))

  const atWork = await begin(
    'Half done',
    scripted([
      ...writes('half.txt'),
      { write: { path: 'draft.txt', text: 'not committed\n' } },
      waits('work'),
      { commit: { message: 'Add the draft' } },
      { review: { summary: 'Both halves are there.' } },
    ]),
  )
  await until('the worker is half done', () => existsSync(gate('work.reached')))
  const worker = (await call('run_list', { task_id: atWork.task_id })).runs[0].agent_id
  const letter = await call('mail_send', { to_agent_id: worker, subject: 'Which port?', body: 'Use 3001.' })
  await call('task_note', { task_id: atWork.task_id, body: 'Half of it is there.' })

  const { epic_id } = await call('epic_create', {
    title: 'All of it',
    description: scripted(leads()),
    project_id,
    max_workers: 1,
    start: false,
  })
  await task('Part one', scripted(works('one.txt')), { epic_id })
  await task('Part two', scripted(works('two.txt'), [waits('part'), approves]), { epic_id })
  await task('Part three', scripted([...writes('three.txt'), waits('three'), { review: { summary: 'three.txt is there.' } }]), { epic_id })
  await call('epic_update', { epic_id, state: 'IN_PROGRESS' })
  await until('the supervisor is at work', () => existsSync(gate('lead.reached')))
  await until('a part is read, and another at work', () => existsSync(gate('part.reached')) && existsSync(gate('three.reached')))

  const asking = await begin('Publish', 'Publish it.', { harness: 'claude', options: { approvals: 'ask' } })
  await until('it asks for permission', async () => (await call('approval_list', {})).approvals.length === 1)

  const { task_id: paired } = await task('Pair on it', '', { task_type: 'PAIR' })
  await call('session_open', { task_id: paired, program: 'claude' })
  await until('the session is open', async () => (await call('session_exists', { task_id: paired })).session?.state === 'open')

  // The reviewer whose approval waits for the merge, two that read, the supervisor, its worker, a worker, and one that asks.
  const living = async () => (await call('job_list', { states: ['queued', 'running'], limit: 100 })).jobs.length
  await until('seven are at work', async () => (await living()) === 7)
  await call('setting_update', { key: 'runs.max_per_project', value: 7 })
  const queued = [await begin('Next', scripted(works('next.txt'))), await begin('After that', scripted(works('after.txt')))]
  const { plan_id } = await call('plan_propose', { project_id, tasks: [{ title: 'Design' }, { title: 'Build', after: [0] }] })
  return { project_id, repo_id, done, checked, reviewed, atWork, worker, letter: letter.mail_id, epic_id, asking, paired, queued, plan_id }
}

function makeRepository() {
  const repo = join(root, 'repo')
  for (const folder of [repo, join(root, 'gates'), join(root, 'bin')]) mkdirSync(folder)
  writeFileSync(join(root, 'bin/claude'), `#!/bin/sh\nexec ${process.execPath} ${join(HERE, 'claude.mjs')} "$@"\n`)
  chmodSync(join(root, 'bin/claude'), 0o755)
  const git = (...args) => execFileSync('git', args, { cwd: repo, env })
  git('init', '--quiet', '--template=', '--initial-branch=main')
  git('config', 'user.name', 'Bea')
  git('config', 'user.email', 'bea@example.invalid')
  git('commit', '--quiet', '--allow-empty', '--message=begin')
}

function gate(name) {
  return join(root, 'gates', name)
}

/** Whoever comes to a gate says so, and passes when somebody has opened it: also in a later life. */
function waitsFor(name) {
  return `{ touch ${gate(`${name}.reached`)}; until [ -e ${gate(name)} ]; do sleep 0.05; done; }`
}

function waits(name) {
  return { run: { argv: ['sh', '-c', waitsFor(name)], timeout_seconds: 600 } }
}

function scripted(steps, review) {
  const block = (name, script) => `\`\`\`${name}\n${JSON.stringify(script)}\n\`\`\`\n`
  return block('signalbox', steps) + (review ? block('signalbox-review', review) : '')
}

function writes(path) {
  return [{ write: { path, text: `${path}\n` } }, { commit: { message: `Write ${path}` } }]
}

function works(path) {
  return [...writes(path), { review: { summary: `${path} is there.` } }]
}

/** Approves whatever was handed in. The round in the words makes the next one another call. */
function leads() {
  const { task_id, feedback } = { task_id: '{{work.task_id}}', feedback: '{{work.review_id}}' }
  const approve = { call: { tool: 'review_decide', arguments: { task_id, decision: 'approve', feedback }, expect: 'any' } }
  return [
    waits('lead'),
    { call: { tool: 'review_queue', save: 'waiting' } },
    { each: { of: '{{waiting.queue}}', as: 'work', steps: [approve] } },
    { call: { tool: 'epic_finish', arguments: { description: 'As of {{waiting.cursor}}.' }, expect: 'any' } },
  ]
}

async function until(what, holds) {
  for (const deadline = performance.now() + PATIENCE_MS; !(await (async () => holds())().catch(() => false)); ) {
    if (performance.now() > deadline) throw new Error(`This never came true: ${what}`)
    await new Promise((go) => setTimeout(go, 20))
  }
}

/** As if the machine had lost its power: stopped first, so that nobody sees the end of another and writes it down. */
function killEverything() {
  for (let left = survivors(); left.length; left = survivors())
    for (const signal of ['SIGSTOP', 'SIGKILL'])
      for (const pid of left)
        try {
          process.kill(pid, signal)
        } catch {
          // It was faster.
        }
}

/** Everything that was started with this home: the daemon, runners, agents, the terminal server. */
function survivors() {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const state = /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))[1]
      return state !== 'Z' && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`HOME=${root}`)
    } catch {
      return false
    }
  })
}

function keep(ids) {
  const database = join(home, 'signalbox.db')
  const small = join(root, 'small.db')
  const db = new DatabaseSync(database)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.exec(`VACUUM INTO '${small}'`)
  const all = (sql) => db.prepare(sql).all()
  const tables = all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").map(({ name }) => name)
  const counts = Object.fromEntries(tables.map((name) => [name, Number(all(`SELECT count(*) AS n FROM ${name}`)[0].n)]))
  const there = {
    tasks: all('SELECT id, number, title, status, lead, reviews_task_id FROM tasks ORDER BY number'),
    jobs: all('SELECT id, number, task_id, action, state, lives FROM jobs ORDER BY number'),
    reviews: all('SELECT id, task_id, round, decision, outcome FROM reviews ORDER BY id'),
    merges: all('SELECT id, task_id, target, state FROM merges ORDER BY number'),
    letters: all('SELECT id, subject FROM letters ORDER BY id'),
    agents: all('SELECT id, handle, role FROM agents ORDER BY id'),
  }
  db.close()
  const description = { commit: COMMIT, root, host: hostname(), ids, counts, there }
  writeFileSync(join(HERE, 'description.json'), `${JSON.stringify(description, null, 1)}\n`)
  writeFileSync(join(HERE, 'signalbox.db.br'), brotliCompressSync(readFileSync(small)))
  writeFileSync(join(HERE, 'files.json.br'), brotliCompressSync(JSON.stringify(filesIn(root))))
}

/** Of the repository and the home, by path: the text of a file, or its bytes in base64. */
function filesIn(folder) {
  const files = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name)
    const name = relative(root, path)
    if (!entry.isFile() || LEFT_OUT.test(path) || !/^(home|repo)\//.test(name)) continue
    const bytes = readFileSync(path)
    const text = bytes.toString('utf8')
    files[name] = Buffer.from(text).equals(bytes) ? { text } : { base64: bytes.toString('base64') }
    if (statSync(path).mode & 0o100) files[name].executable = true
  }
  return files
}

/** What `signalbox db copy` of that commit makes of it. */
async function keepPostgres() {
  const { createDatabase, dumpDatabase, startCluster } = await databases()
  const cluster = await startCluster()
  try {
    const url = await createDatabase(cluster.folder, 'old')
    execFileSync(process.execPath, [join(old, 'bin/signalbox.js'), 'db', 'copy', url], { env, stdio: 'inherit' })
    writeFileSync(join(HERE, 'postgres.sql.br'), brotliCompressSync(dumpDatabase(cluster.folder, 'old')))
  } finally {
    await cluster.remove()
  }
}

/** The bundle stands inside the checkout for the moment of its import: packages are found from there. */
async function databases() {
  const outfile = join(REPOSITORY, '.cache', `databases-${process.pid}.mjs`)
  const entryPoints = [join(REPOSITORY, 'src/testing/databases.ts')]
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', packages: 'external' })
  try {
    return await import(pathToFileURL(outfile).href)
  } finally {
    rmSync(outfile)
  }
}
