import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Installs what `depend` names, without a network. */
export const INSTALL = 'npm ci --offline --no-audit --no-fund'

/** Packages of npm in the repository itself: `module.exports` of each is its own name. */
export function pack(top: string, ...names: string[]): void {
  mkdirSync(join(top, 'vendor'), { recursive: true })
  for (const name of names) {
    const folder = join(top, '..', 'packed', name, 'package')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '1.0.0', main: 'index.js' }))
    writeFileSync(join(folder, 'index.js'), `module.exports = '${name}'\n`)
    execFileSync('tar', ['-czf', join(top, 'vendor', `${name}.tgz`), '-C', join(folder, '..'), 'package'])
  }
}

/** What the project depends on, in its manifest and in its lockfile. */
export function depend(top: string, ...names: string[]): void {
  const dependencies = Object.fromEntries(names.map((name) => [name, `file:vendor/${name}.tgz`]))
  const own = { name: 'shop', version: '1.0.0', scripts: { test: 'node test.js' }, dependencies }
  const packages = Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: '1.0.0', resolved: dependencies[name] }]))
  writeFileSync(join(top, 'package.json'), JSON.stringify(own))
  const lock = { name: 'shop', version: '1.0.0', lockfileVersion: 3, requires: true, packages: { '': own, ...packages } }
  writeFileSync(join(top, 'package-lock.json'), JSON.stringify(lock))
}
