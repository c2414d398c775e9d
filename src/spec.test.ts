import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Rule {
  id: string
  text: string
  file: string
}

function files(ending: string): string[] {
  return ['src', 'test']
    .filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
    .filter((file) => file.endsWith(ending) && !file.includes('node_modules'))
}

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

const rules: Rule[] = files('SPEC.md').flatMap((file) =>
  [...read(file).matchAll(/^- \*\*([A-Z]+[0-9]+)\*\* (.*)$/gm)].map(([, id, text]) => ({ id: id as string, text: text as string, file })),
)

/** The ids at the beginning of a test's name: `'[K4] [K8] a refusal …'`. */
function citations(source: string): string[] {
  const names = source.match(/['"`](?:\[[A-Z]+[0-9]+\] ?)+/g) ?? []
  return names.flatMap((name) => [...name.matchAll(/\[([A-Z]+[0-9]+)\]/g)].map((match) => match[1] as string))
}

const cited = [...files('.test.ts'), ...files('.contract.ts')].flatMap((file) => citations(read(file)).map((id) => ({ id, file })))

describe('rules and the tests that cite them', () => {
  test('there are some of both', () => {
    expect(rules.length).toBeGreaterThan(50)
    expect(cited.length).toBeGreaterThan(100)
  })

  test('every rule is cited by a test', () => {
    const known = new Set(cited.map((citation) => citation.id))
    expect(rules.filter((rule) => !known.has(rule.id)).map((rule) => `${rule.id} of ${rule.file}`)).toEqual([])
  })

  test('every citation is of a rule that exists', () => {
    const known = new Set(rules.map((rule) => rule.id))
    const unknown = cited.filter((citation) => !known.has(citation.id)).map((citation) => `${citation.id} in ${citation.file}`)
    expect([...new Set(unknown)]).toEqual([])
  })

  test('an id stands for one rule', () => {
    const ids = [...new Set(rules.map((rule) => rule.id))]
    const twice = ids.map((id) => rules.filter((rule) => rule.id === id)).filter((same) => same.length > 1)
    expect(twice.map((same) => same.map((rule) => `${rule.id} of ${rule.file}`))).toEqual([])
  })

  test('a line that looks like a rule is one', () => {
    const lines = files('SPEC.md').flatMap((file) =>
      read(file)
        .split('\n')
        .map((line) => ({ line, file })),
    )
    const almost = lines.filter(({ line }) => /\*\*[A-Z]+[0-9]+\*\*/.test(line) && !/^- \*\*[A-Z]+[0-9]+\*\* \S.{10,}$/.test(line))
    expect(almost).toEqual([])
  })
})
