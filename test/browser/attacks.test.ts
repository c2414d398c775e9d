import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { databaseOf, rowCounts } from '../e2e/support.ts'
import { someTasks, test, withoutBrowser } from './support.ts'
import { tour } from './tour.ts'

/** Everything that a page of another origin can try, each with what it got to see. */
const ATTEMPTS = (target: string, token: string) => `
  const target = ${JSON.stringify(target)}, seen = {}
  const heard = (source, good) => new Promise((resolve) => {
    source.addEventListener(good, () => resolve('HEARD'))
    source.addEventListener('error', () => resolve('refused'))
  })
  const read = (path, init) => fetch(target + path, init).then(async (answer) => answer.type + ' ' + answer.status + ' ' + (await answer.text()), (error) => 'refused')
  const input = JSON.stringify({ name: 'Taken over' })
  const part = (name) => document.body.appendChild(document.createElement(name))
  const framed = (path) => new Promise((resolve) => {
    const frame = part('iframe')
    frame.onload = () => { try { resolve('READ ' + frame.contentDocument.body.innerHTML) } catch { resolve('unreadable') } }
    frame.src = target + path
  })
  const posted = (type) => new Promise((resolve) => {
    const frame = document.createElement('iframe'), form = part('form'), field = form.appendChild(document.createElement('input'))
    frame.name = 'into ' + type
    document.body.append(frame)
    frame.onload = () => { try { resolve('READ ' + frame.contentDocument.body.innerHTML) } catch { resolve('unreadable') } }
    Object.assign(field, { name: '{"name":"Taken over","x":"', value: '"}' })
    Object.assign(form, { method: 'post', enctype: type, action: target + '/api/tools/project_create', target: frame.name })
    form.submit()
  })
  window.attempts = (async () => {
    seen.json = await read('/api/tools/project_create', { method: 'POST', body: input, headers: { 'content-type': 'application/json' } })
    seen.withToken = await read('/api/tools/project_create', { method: 'POST', body: input, headers: { 'content-type': 'application/json', authorization: 'Bearer ${token}' } })
    seen.plain = await read('/api/tools/project_create', { method: 'POST', body: input, mode: 'no-cors', credentials: 'include' })
    seen.beacon = navigator.sendBeacon(target + '/api/tools/project_create', input) && 'sent, unread'
    seen.list = await read('/api/tools', { credentials: 'include' })
    seen.blind = await read('/api/tools/task_list', { mode: 'no-cors', credentials: 'include' })
    seen.page = await read('/board')
    seen.stream = await heard(new EventSource(target + '/api/events', { withCredentials: true }), 'open')
    for (const path of ['/api/events', '/mcp']) seen['socket ' + path] = await heard(new WebSocket(target.replace('http', 'ws') + path), 'open')
    for (const name of ['img', 'script']) {
      const element = part(name)
      const result = heard(element, 'load')
      element.src = target + '/api/tools/task_list'
      seen[name] = await result
    }
    seen.dashboard = await framed('/board')
    seen.answer = await framed('/api/tools/task_list')
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) seen[type] = await posted(type)
    seen.storage = String(localStorage.getItem('signalbox.session'))
    return seen
  })()`

/** As text, or in a field that holds it. */
const TEXT_IS_SHOWN = `[document.body.innerText, ...[...document.querySelectorAll('input, textarea')].map((field) => field.value)].join().includes('hacked=1')`

/** Screens that show what was written. */
const SHOWING = [
  'board',
  'projects',
  'agents',
  'mail',
  'letters',
  'activity',
  'settings',
  'task',
  'edit-task',
  'palette',
  'new-task',
  'closed task',
  'board of the project',
]

describe.skipIf(withoutBrowser('[S3] [S13] [U9] attacks on the dashboard'))('attacks on the dashboard', () => {
  let foreign: Server
  let foreignUrl = ''
  let page = ''
  beforeAll(async () => {
    foreign = createServer((_, response) => response.setHeader('content-type', 'text/html').end(page))
    await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve))
    foreignUrl = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}`
  })
  afterAll(() => new Promise((resolve) => foreign.close(resolve)))

  test('[S3] [U9] a page of another port changes nothing, reads nothing and frames nothing, in a browser that is signed in', async ({
    visitor,
    daemon,
  }) => {
    await someTasks(daemon, 'The secret of the house')
    await visitor.signIn()
    const { context, page: dashboard } = visitor
    const { token } = await dashboard.evaluate<{ token: string }>(`JSON.parse(localStorage.getItem('signalbox.session'))`)
    const before = rowCounts(databaseOf(daemon))
    page = `<!doctype html><body><script>${ATTEMPTS(daemon.url, token)}</script>`
    const evil = await context.newPage()
    await evil.goto(foreignUrl)
    const seen = await evil.evaluate<Record<string, string>>('window.attempts')
    expect(seen).toEqual({
      json: 'refused',
      withToken: 'refused',
      plain: 'opaque 0 ',
      beacon: 'sent, unread',
      list: 'refused',
      blind: 'opaque 0 ',
      page: 'refused',
      stream: 'refused',
      'socket /api/events': 'refused',
      'socket /mcp': 'refused',
      img: 'refused',
      script: 'refused',
      dashboard: 'unreadable',
      answer: 'unreadable',
      'application/x-www-form-urlencoded': 'unreadable',
      'multipart/form-data': 'unreadable',
      'text/plain': 'unreadable',
      storage: 'null',
    })
    // Refused by the browser before it draws anything of it.
    expect(
      evil
        .frames()
        .map((frame) => frame.url())
        .filter((url) => url.startsWith(daemon.url) && url.endsWith('/board')),
    ).toEqual([])
    expect(await evil.frames()[1]?.content()).not.toContain('Signalbox')
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
    expect((await daemon.call('project_list')).projects).not.toContainEqual(expect.objectContaining({ name: 'Taken over' }))
    await evil.close()
  })

  test('[S3] on the dashboard itself nothing speaks for whoever is signed in but the token', async ({ visitor, daemon }) => {
    await visitor.signIn()
    visitor.expects(/status of 40[01]/, /form-action/)
    const before = rowCounts(databaseOf(daemon))
    const codes = await visitor.page.evaluate<string[]>(`Promise.all([
      fetch('/api/tools/project_create', { method: 'POST', body: '{"name":"x"}', headers: { 'content-type': 'application/json' } }),
      fetch('/api/tools/project_create', { method: 'POST', body: '{"name":"x"}' }),
      fetch('/api/tools/project_create', { method: 'POST', body: '{"name":"x"}', headers: { authorization: 'Bearer ' + JSON.parse(localStorage['signalbox.session']).token } }),
      fetch('/api/tools/project_create', { method: 'POST', body: new URLSearchParams({ name: 'x' }), headers: { authorization: 'Bearer ' + JSON.parse(localStorage['signalbox.session']).token } }),
      fetch('/api/events'),
    ].map((sent) => sent.then((answer) => answer.json()).then((answer) => answer.error.code)))`)
    expect(codes).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED', 'INVALID_INPUT', 'INVALID_INPUT', 'UNAUTHENTICATED'])
    const blocked = visitor.page.waitForEvent('console', (message) => message.text().startsWith('policy form-action'))
    await visitor.page.evaluate(`{
      const form = document.body.appendChild(document.createElement('form'))
      Object.assign(form, { method: 'post', action: '/api/tools/project_create' })
      form.submit()
    }`)
    await blocked
    expect(visitor.page.url()).toBe(`${daemon.url}/board`)
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })

  test('[U9] the policy of a page lets scripts come from files alone, and holds in the browser', async ({ visitor, daemon }) => {
    const answers = await Promise.all([1, 2].map(() => fetch(`${daemon.url}/board`, { headers: { accept: 'text/html' } })))
    const nonces = await Promise.all(
      answers.map(async (answer) => {
        const policy = Object.fromEntries(
          (answer.headers.get('content-security-policy') ?? '')
            .split('; ')
            .map((part) => [part.split(' ')[0], part.split(' ').slice(1).join(' ')]),
        )
        const nonce = /content="([^"]+)"/.exec(/<meta name="csp-nonce"[^>]*>/.exec(await answer.text())?.[0] ?? '')?.[1]
        expect(policy).toMatchObject({
          'default-src': `'none'`,
          'script-src': `'self'`,
          'style-src': `'self' 'nonce-${nonce}'`,
          'connect-src': `'self'`,
          'frame-ancestors': `'none'`,
          'form-action': `'none'`,
          'base-uri': `'none'`,
          'require-trusted-types-for': `'script'`,
        })
        expect(JSON.stringify(policy)).not.toMatch(/unsafe|https?:|\*/)
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
        expect(answer.headers.get('access-control-allow-origin')).toBe(null)
        expect(answer.headers.get('set-cookie')).toBe(null)
        return nonce
      }),
    )
    expect(new Set(nonces).size).toBe(2)

    await visitor.signIn()
    visitor.expects(/policy|Content Security Policy|TrustedHTML|TrustedScript|Trusted Type/i)
    const results = await visitor.page.evaluate<string[]>(`[
      () => document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hacked=1">'),
      () => { const s = document.createElement('script'); s.textContent = 'window.hacked=1'; document.body.append(s) },
      () => { const s = document.createElement('script'); s.src = '${foreignUrl}/x.js'; document.body.append(s) },
      () => document.body.setAttribute('onclick', 'window.hacked=1'),
      () => setTimeout('window.hacked=1'),
    ].map((act) => { try { act(); return 'ran' } catch (error) { return error.name } })`)
    expect(results).toEqual(['TypeError', 'TypeError', 'TypeError', 'TypeError', 'TypeError'])
    await visitor.page.locator('body').click({ position: { x: 5, y: 400 } })
    expect(await visitor.page.evaluate('window.hacked')).toBe(undefined)
  })

  test('[S13] script, HTML and addresses that run code are text on every screen, wherever they stand', async ({ visitor, daemon }) => {
    const evil = [
      '<script>hacked=1</script>',
      '<img src=x onerror=hacked=1>',
      '<svg onload=hacked=1>',
      `<iframe srcdoc="<script>top.hacked=1</script>">`,
      '[go](javascript:hacked=1)',
      '<a href="javascript:hacked=1">x</a>',
      `![spy](${foreignUrl}/spy.png)`,
      `<style>*{background:url(${foreignUrl}/s)}</style>`,
    ]
    const all = evil.join('\n\n')
    const short = '<img src=x onerror=hacked=1><script>hacked=1</script>'
    const { handle: project, project_id } = await daemon.call('project_create', { name: short, description: all })
    const { handle: emptyProject } = await daemon.call('project_create', { name: `"><svg onload=hacked=1>` })
    const { agent_id, token } = await daemon.call('agent_invite', { role: 'worker', name: short })
    await daemon.call('mail_send', { to_human: true, subject: short, body: all, needs_ack: true }, token)
    await daemon.call('person_invite', { name: short, profile: 'viewer' })
    const { epic_id } = await daemon.call('epic_create', { project_id, title: short, description: all, start: false })
    const { task_id: part } = await daemon.call('task_create', { epic_id, title: short, description: all })
    await daemon.call('task_move', { task_id: part, status: 'IN_PROGRESS' })
    await daemon.call('review_request', { task_id: part, summary: all })
    const { handle: task } = await daemon.call('task_create', {
      project_id,
      title: `${short} javascript:hacked=1`,
      description: all,
      acceptance_criteria: evil,
    })
    await daemon.call('task_note', { task_id: task, body: all })
    await daemon.call('task_assign', { task_id: task, agent_id })
    const { handle: closed } = await daemon.call('task_create', { project_id, title: short, base_branch: 'x' })
    await daemon.call('task_close', { task_id: closed, reason: all.slice(0, 400) })
    await daemon.call('setting_update', { key: 'roles.worker.deny', value: evil.map((text) => text.slice(0, 60)) })

    const { page: screen } = visitor
    const shown: string[] = []
    const look = async (name: string) => {
      // What comes a moment later than its screen is looked at as well.
      if (SHOWING.includes(name)) await expect.poll(() => screen.evaluate(TEXT_IS_SHOWN), { message: name }).toBe(true)
      expect(await screen.evaluate('window.hacked'), name).toBe(undefined)
      const built = 'script:not([src]), img, iframe, object, embed, base, form[action], [onerror], [onload], [onclick], [srcdoc]'
      expect(await screen.locator(built).count(), name).toBe(0)
      expect(await screen.locator('a[href*="javascript:" i], [style*="url("]').count(), name).toBe(0)
      // Of the pages' own icons alone.
      expect(await screen.locator('svg[onload], svg:not(.lucide):not(.mark)').count(), name).toBe(0)
      shown.push(name)
    }
    for await (const name of tour(visitor, { task, emptyProject })) await look(name)
    await visitor.visit(`/task/${closed}`)
    await look('closed task')
    await visitor.visit(`/board?project=${project}`)
    await look('board of the project')
    expect(shown).toEqual(expect.arrayContaining(SHOWING))

    await visitor.visit(`/task/${task}`)
    for (const text of evil.slice(0, 4)) await screen.locator('.task-main .markdown').first().getByText(text).waitFor()
    // A link that ran code leads nowhere, and an image is a link that nobody followed.
    for (const link of await screen.locator('.notes').getByText('go', { exact: true }).all()) await link.click()
    expect(await screen.evaluate('window.hacked')).toBe(undefined)
    expect(await screen.locator('.notes').getByRole('link', { name: 'spy' }).getAttribute('href')).toBe(`${foreignUrl}/spy.png`)
  })
})
