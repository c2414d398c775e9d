import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Installs what `depend` names, without a network. */
export const INSTALL = 'npm ci --offline --no-audit --no-fund'

/** A project of npm whose test needs its first package. Of its packages, all in the repository, it depends on some. */
export function npmProject(top: string, packed: string[], depended: string[]): void {
  pack(top, ...packed)
  depend(top, ...depended)
  writeFileSync(join(top, 'test.js'), `if (require('${depended[0]}') !== '${depended[0]}') process.exit(1)\n`)
}

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
  for (const [path, text] of Object.entries(dependenciesOf(...names))) writeFileSync(join(top, path), text)
}

export function dependenciesOf(...names: string[]): { 'package.json': string; 'package-lock.json': string } {
  const dependencies = Object.fromEntries(names.map((name) => [name, `file:vendor/${name}.tgz`]))
  const own = { name: 'shop', version: '1.0.0', scripts: { test: 'node test.js' }, dependencies }
  const packages = Object.fromEntries(names.map((name) => [`node_modules/${name}`, { version: '1.0.0', resolved: dependencies[name] }]))
  const lock = { name: 'shop', version: '1.0.0', lockfileVersion: 3, requires: true, packages: { '': own, ...packages } }
  return { 'package.json': JSON.stringify(own), 'package-lock.json': JSON.stringify(lock) }
}
