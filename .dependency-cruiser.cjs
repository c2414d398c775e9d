// Who may import whom (docs/architecture.md). Type imports count: a kernel that names a capability's type knows the capability.
/** A capability's screens. */
const PANEL = '^src/capabilities/[^/]+/panel([.]tsx$|/)'
const TEST = '[.]test[.]tsx?$'

module.exports = {
  forbidden: [
    {
      name: 'kernel-is-pure',
      comment: 'The kernel imports itself and zod, nothing else: what it needs from outside is passed to it.',
      severity: 'error',
      from: { path: '^src/kernel/', pathNot: TEST },
      to: { pathNot: ['^src/kernel/', '(^|/)node_modules/zod/'] },
    },
    {
      name: 'capability-knows-no-surface',
      comment: 'A capability is called by surfaces and wired by the daemon; it reaches the outside world through ports, never an adapter.',
      severity: 'error',
      from: { path: '^src/capabilities/', pathNot: TEST },
      to: { path: '^src/(surfaces|daemon|adapters)/' },
    },
    {
      name: 'capability-touches-no-system',
      comment: 'Processes, files and sockets belong to adapters. Ask for a port.',
      severity: 'error',
      from: { path: '^src/capabilities/', pathNot: TEST },
      to: { dependencyTypes: ['core'], path: '^(node:)?(child_process|fs|net|https?|http2|tls|dgram)(/|$)' },
    },
    {
      name: 'capability-through-its-index',
      comment: "Another capability's files are private; import its index.ts.",
      severity: 'error',
      from: { path: '^src/capabilities/([^/]+)/' },
      to: { path: '^src/capabilities/[^/]+/', pathNot: ['^src/capabilities/$1/', '^src/capabilities/[^/]+/index[.]ts$'] },
    },
    {
      name: 'surface-knows-no-capability',
      comment: 'Surfaces serve whatever the registry holds: import src/capabilities/index.ts, no capability by name.',
      severity: 'error',
      from: { path: '^src/surfaces/', pathNot: TEST },
      to: { path: '^src/capabilities/[^/]+/' },
    },
    {
      name: 'a-dialect-is-a-folder-and-a-line',
      comment: 'Only the registry of dialects knows one; what others need of it goes into Dialect.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/dialects/[^/]+/', '^src/dialects/index[.]ts$'] },
      to: { path: '^src/dialects/[^/]+/' },
    },
    {
      name: 'dialects-do-not-know-each-other',
      comment: 'What two of them share belongs in src/dialects/define.ts.',
      severity: 'error',
      from: { path: '^src/dialects/([^/]+)/' },
      to: { path: '^src/dialects/[^/]+/', pathNot: '^src/dialects/$1/' },
    },
    {
      name: 'only-panels-know-the-dashboard',
      comment: 'What runs in a browser stands in src/ui and in the panels of the capabilities.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/ui/', PANEL] },
      to: { path: ['^src/ui/', PANEL] },
    },
    {
      name: 'a-page-takes-types-alone',
      comment: 'Of the daemon a page knows types; a value would bring the daemon into the browser.',
      severity: 'error',
      from: { path: ['^src/ui/', PANEL] },
      to: { path: '^src/', pathNot: ['^src/ui/', PANEL], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'runner-needs-only-node',
      comment: 'The runner outlives upgrades of everything else, so it is made of Node and itself.',
      severity: 'error',
      from: { path: '^src/runner/', pathNot: TEST },
      to: { pathNot: '^src/runner/', dependencyTypesNot: ['core'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
