import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { npmProject } from '../../src/testing/packages.ts'
import { git } from '../chaos/kill-runs.ts'
import { OWN_FILE, Site, write } from './setup-site.ts'

/** Those of pnpm and of Python are in test/soak/setup-projects.soak.ts. */
describe('a project', () => {
  test('[SU1] without packages gets no proposal, and lands', async () => {
    const site = await Site.begin((repo) => write(repo, { 'test.sh': 'test -e ./*.txt\n' }))
    const added = await site.register({ checks: 'sh test.sh' })
    expect([added.proposed, added.message]).toEqual([null, `${site.handle} is registered.`])
    await site.lands(await site.start(OWN_FILE))
    expect(await site.setups()).toEqual([])
  })

  test('[SU1] [SU2] [SU6] [SU8] of npm is brought from its registration to its merge by what a person types', async () => {
    const site = await Site.begin((repo) => {
      npmProject(repo, ['greet'], ['greet'])
      write(repo, {
        '.gitignore': 'node_modules\n.env*\n',
        '.env': 'GREETING=hello\n',
        '.npmrc': 'offline=true\naudit=false\nfund=false\n',
      })
    })
    const typed = async (verb: string, rest: string) => JSON.parse(await site.type(`signalbox ${verb} ${rest}`))
    const added = await typed('repo', `add --path '${site.repo}' --checks "npm test"`)
    const [confirming] = /signalbox repo update .*$/m.exec(added.message) ?? []
    expect(confirming).toBe(`signalbox repo update ${added.handle} --setup 'npm ci' --files .env`)
    await site.type(confirming as string)
    const steps = [
      { run: { argv: ['sh', '-c', 'npm test && . ./.env'] } },
      { write: { path: 'work.txt', text: 'x' } },
      { commit: { message: 'Work' } },
      { review: { summary: 'Done.' } },
    ]
    const brief = join(site.beside, 'brief.md')
    writeFileSync(brief, `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`)
    await typed('task', `create --title Work --description @'${brief}'`)
    await typed('start', 'T-1 --harness scripted')
    await typed('task', 'wait T-1 --wait-for-status REVIEW')
    const decided = await typed('review', 'decide T-1 --decision approve')
    expect(decided).toMatchObject({ merged: true })
    const { lines } = await typed('merge', 'status')
    expect(lines.map(({ held }: { held: unknown }) => held)).toEqual([null])
    const { letters } = await typed('mail', 'inbox')
    expect(JSON.stringify([decided, lines, letters, await typed('status', '')])).not.toMatch(/is held|cannot be set up|by themselves/)
    expect(git(site.repo, 'show', 'main:work.txt')).toBe('x')
  })
})
