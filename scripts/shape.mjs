// `node scripts/shape.mjs`: how much the capabilities depend on each other, as figures.
//
//   node scripts/shape.mjs --at DIR    of another checkout
//   node scripts/shape.mjs --list      with every place that was counted
//   node scripts/shape.mjs --check     only the rows with a limit; fails above one of them
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import ts from 'typescript'

const CAPABILITIES = 'src/capabilities/'
/** Figures that may not rise. Lower a limit together with its figure. */
const LIMITS = { cycle: 0, hooks: 0, writes: 0, strings: 0, nouns: 45 }
/** Pages are bundled apart and name tools through their typed client. */
const NOT_COUNTED = /[.]test[.]ts$|[.]d[.]ts$|\/panel\//
const EMPTY = Object.freeze([])

/** The figures of a checkout, each as the list of places that were counted. */
export function shapeOf(root) {
  const files = [CAPABILITIES, 'src/daemon/'].flatMap((folder) => parsedIn(root, folder))
  const inCapabilities = files.filter(({ path }) => path.startsWith(CAPABILITIES))
  const hooks = files.flatMap(hooksIn)
  const tools = inCapabilities.flatMap(toolsIn)
  const capabilities = new Set(inCapabilities.flatMap(({ owner }) => owner ?? EMPTY))
  return {
    capabilities: capabilities.size,
    tools: tools.length,
    cycle: longestCycle([...capabilities], [...inCapabilities.flatMap(importsIn), ...hooks.flatMap(({ edges }) => edges)]),
    hooks: [...new Set(hooks.map(({ name, owner }) => `${owner}: ${name}`))],
    writes: foreignWrites(inCapabilities),
    strings: names(inCapabilities, tools),
    nouns: tools.filter(({ name, owner }) => !name.startsWith(`${owner}_`)).map(({ name, owner }) => `${owner}: ${name}`),
  }
}

/** One line for each figure above its limit, then the places. */
export function shapeProblems(root, limits = LIMITS) {
  const shape = shapeOf(root)
  return Object.entries(limits).flatMap(([row, limit]) =>
    shape[row].length > limit
      ? [`${row}: ${shape[row].length}, and at most ${limit} are allowed`, ...shape[row].map((at) => `  ${at}`)]
      : [],
  )
}

function parsedIn(root, folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((file) => folder + file.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts') && !NOT_COUNTED.test(path))
    .sort()
    .map((path) => {
      const source = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.ESNext, true)
      return { path, owner: ownerOf(path), source, imported: importedInto(path, source) }
    })
}

/** The capability in whose folder a file stands. */
function ownerOf(path) {
  return path.match(/^src\/capabilities\/([^/]+)\//)?.[1]
}

/** Name → the capability that it is imported from. */
function importedInto(path, source) {
  const imported = new Map()
  for (const statement of source.statements) {
    const bindings = ts.isImportDeclaration(statement) && statement.importClause?.namedBindings
    const from = bindings && ownerOf(resolved(path, statement.moduleSpecifier.text))
    if (from && ts.isNamedImports(bindings)) for (const { name } of bindings.elements) imported.set(name.text, from)
  }
  return imported
}

function resolved(path, specifier) {
  return normalize(join(dirname(path), specifier)).replaceAll('\\', '/')
}

/** Type imports count: a capability does not compile without them. A capability that answers a point imports it, so points count as well. */
function importsIn({ path, owner, source }) {
  return source.statements.flatMap((statement) => {
    const to = statement.moduleSpecifier && ownerOf(resolved(path, statement.moduleSpecifier.text))
    return owner && to && to !== owner ? [[owner, to]] : EMPTY
  })
}

/** A top-level call of something that another capability declares. It makes the owner depend on every capability in the arguments. */
function hooksIn({ owner: here, source, imported }) {
  return source.statements.flatMap((statement) => {
    if (!ts.isExpressionStatement(statement) || !ts.isCallExpression(statement.expression)) return EMPTY
    const name = rootOf(statement.expression.expression)
    const owner = imported.get(name)
    if (owner === undefined || owner === here) return EMPTY
    const answers = new Set(here === undefined ? EMPTY : [here])
    for (const argument of statement.expression.arguments)
      visit(argument, (node) => ts.isIdentifier(node) && imported.has(node.text) && answers.add(imported.get(node.text)))
    return [{ name, owner, edges: [...answers].filter((to) => to !== owner).map((to) => [owner, to]) }]
  })
}

function rootOf(expression) {
  let at = expression
  while (ts.isPropertyAccessExpression(at)) at = at.expression
  return ts.isIdentifier(at) ? at.text : ''
}

/** The largest set of capabilities that all reach each other. */
function longestCycle(capabilities, edges) {
  const reached = new Map(capabilities.map((from) => [from, reachedFrom(from, edges)]))
  const groups = capabilities.map((one) => capabilities.filter((other) => reached.get(one).has(other) && reached.get(other).has(one)))
  return groups.reduce((longest, group) => (group.length > longest.length ? group : longest), [])
}

function reachedFrom(from, edges) {
  const reached = new Set()
  const waiting = [from]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop())
    for (const [one, other] of edges)
      if (one === at && !reached.has(other)) {
        reached.add(other)
        waiting.push(other)
      }
  return reached
}

/** Every `defineTool({ name: '…' })`, and whether it is internal. */
function toolsIn({ owner, source }) {
  const tools = []
  visit(source, (node) => {
    const declared = ts.isCallExpression(node) && /^define\w*Tool$/.test(node.expression.getText(source)) && node.arguments[0]
    if (!declared || !ts.isObjectLiteralExpression(declared)) return
    const name = declared.properties.find((property) => property.name?.getText(source) === 'name')?.initializer
    if (name && ts.isStringLiteralLike(name)) tools.push({ name: name.text, owner, at: name, internal: isInternal(declared, source) })
  })
  return tools
}

function isInternal(declared, source) {
  const spread = declared.properties.filter(ts.isSpreadAssignment).map(({ expression }) => expression.getText(source))
  const text = [
    declared.getText(source),
    ...variablesAt(source.statements).flatMap((v) => (spread.includes(v.name.text) ? v.getText(source) : [])),
  ]
  return text.some((part) => /\binternal: true\b/.test(part))
}

/** Internal tools and events of other capabilities that are named by a string. A tool's `example` is for callers and does not count. */
function names(files, tools) {
  const internal = new Map(tools.filter((tool) => tool.internal).map(({ name, at }) => [name, at]))
  const events = new Map()
  for (const { owner, source } of files)
    visit(source, (node) => {
      const [type] = ts.isCallExpression(node) && node.expression.getText(source) === 'defineEvent' ? node.arguments : EMPTY
      if (type && ts.isStringLiteralLike(type)) events.set(type.text, owner)
    })
  const ownersOf = (text) =>
    text.endsWith('.*') ? [...events].flatMap(([type, owner]) => (type.startsWith(text.slice(0, -1)) ? owner : EMPTY)) : [events.get(text)]
  return files.flatMap(({ path, owner, source }) => {
    const found = []
    visit(source, (node) => {
      if (ts.isPropertyAssignment(node) && node.name.getText(source) === 'example') return NO_FURTHER
      if (!ts.isStringLiteralLike(node)) return
      const reported = internal.has(node.text) ? internal.get(node.text) !== node : isReported(node, source)
      const foreign = ownersOf(node.text).some((declarer) => declarer !== undefined && declarer !== owner)
      if (reported || foreign) found.push(`${place(path, source, node)} ${node.text}`)
    })
    return found
  })
}

function isReported(node, source) {
  const call = node.parent
  return ts.isCallExpression(call) && call.arguments[0] === node && /(^|[.#])report$/.test(call.expression.getText(source))
}

/** Calls of a method that writes, on a store that another capability has declared. */
function foreignWrites(files) {
  const stores = new Map(files.flatMap(storesIn))
  return files.flatMap(({ path, owner, source }) => {
    const found = []
    const look = (node, known) => {
      const inside = ts.isBlock(node) || ts.isFunctionLike(node) ? new Map(known) : known
      if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name)) inside.set(node.name.text, made(node.initializer))
      if (ts.isPropertyAccessExpression(node)) {
        const name = made(node.expression) ?? (ts.isIdentifier(node.expression) ? inside.get(node.expression.text) : undefined)
        const store = name && stores.get(name)
        if (store && store.owner !== owner && store.writes.has(node.name.text))
          found.push(`${place(path, source, node)} ${name}.${node.name.text}`)
      }
      ts.forEachChild(node, (child) => look(child, inside))
    }
    const made = (node) =>
      node && ts.isCallExpression(node) && ts.isIdentifier(node.expression) && stores.has(node.expression.text)
        ? node.expression.text
        : undefined
    look(source, new Map())
    return found
  })
}

/** A store is a function of a transaction that returns an object of statements. A lock that changes nothing is no write. */
function storesIn({ owner, source }) {
  const atTop = new Map(variablesAt(source.statements).map((variable) => [variable.name.text, variable]))
  for (const statement of source.statements)
    if (ts.isFunctionDeclaration(statement) && statement.name) atTop.set(statement.name.text, statement)
  return [...atTop].flatMap(([name, declaration]) => {
    const returned = /Store$/.test(name) && declaration.body?.statements.find(ts.isReturnStatement)?.expression
    if (!returned || !ts.isObjectLiteralExpression(returned)) return EMPTY
    const known = new Map([...atTop, ...variablesAt(declaration.body.statements).map((variable) => [variable.name.text, variable])])
    const writing = returned.properties.filter((method) => method.name?.getText(source) !== 'held' && writes(method, known, new Set()))
    return [[name, { owner, writes: new Set(writing.map((method) => method.name?.getText(source))) }]]
  })
}

function writes(node, known, seen) {
  let found = false
  visit(node, (inside) => {
    if (found || !ts.isIdentifier(inside)) return
    const declared = known.get(inside.text)
    if (/^(insertInto|updateTable|deleteFrom|insertion)$/.test(inside.text)) found = true
    else if (declared && !seen.has(declared)) found = writes(declared, known, seen.add(declared))
  })
  return found
}

function variablesAt(statements) {
  return statements.flatMap((statement) =>
    ts.isVariableStatement(statement) ? statement.declarationList.declarations.filter((d) => ts.isIdentifier(d.name)) : [],
  )
}

const NO_FURTHER = Symbol('no further')

function visit(node, look) {
  if (look(node) !== NO_FURTHER) ts.forEachChild(node, (child) => visit(child, look))
}

function place(path, source, node) {
  return `${path}:${source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1}`
}

/** For each `feat` commit: how many files of src it touched outside the folder in which it changed most. */
function reachOfFeatures(root) {
  const log = execFileSync('git', ['log', '--no-merges', '--format=%x00%s', '--name-only'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  const commits = log.split('\0').map((commit) => commit.split('\n'))
  const features = commits
    .filter(([subject]) => /^feat\b/.test(subject))
    .map(([, ...files]) => files.filter((file) => /^src\/.*[.](ts|tsx|css)$/.test(file)))
  return features
    .filter((files) => files.length)
    .map(outsideItsFolder)
    .sort((a, b) => a - b)
}

function outsideItsFolder(files) {
  const folders = files.map((file) => file.match(/^src\/((capabilities|adapters|dialects)\/[^/]+|[^/]+)/)[0])
  const most = Math.max(...folders.map((folder) => folders.filter((other) => other === folder).length))
  return files.length - most
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const { values } = parseArgs({
    options: { at: { type: 'string', default: root }, list: { type: 'boolean' }, check: { type: 'boolean' } },
  })
  if (values.check) {
    const problems = shapeProblems(values.at)
    for (const problem of problems) console.error(problem)
    process.exitCode = problems.length ? 1 : 0
  } else show(values)
}

function show({ at, list }) {
  const shape = shapeOf(at)
  const features = reachOfFeatures(at)
  const rows = [
    ['capabilities in one cycle, hooks and points counted', `${shape.cycle.length} of ${shape.capabilities}`, shape.cycle],
    ['module-level hooks', shape.hooks.length, shape.hooks],
    ["writes through another capability's store", shape.writes.length, shape.writes],
    ['reports and foreign events named by a string', shape.strings.length, shape.strings],
    ["tools whose noun is not their folder's", `${shape.nouns.length} of ${shape.tools}`, shape.nouns],
    ['files of src that a feat touches outside its folder, median / p90', `${quantile(features, 0.5)} / ${quantile(features, 0.9)}`, []],
  ]
  for (const [name, figure, places] of rows) {
    console.log(`${name.padEnd(68)}${figure}`)
    if (list) for (const one of places) console.log(`    ${one}`)
  }
}
