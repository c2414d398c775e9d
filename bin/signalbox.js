#!/usr/bin/env node
// Syntax an old Node can parse, so that it prints the message below and not a stack trace.
const wanted = [20, 11]
const found = process.versions.node.split('.').map(Number)

if (found[0] < wanted[0] || (found[0] === wanted[0] && found[1] < wanted[1])) {
  console.error(`signalbox: Node.js ${wanted.join('.')} or newer is needed; this is ${process.version}`)
  process.exit(1)
}

import('../dist/main.js').catch((error) => {
  const notBuilt = error.code === 'ERR_MODULE_NOT_FOUND' && /^Cannot find module '[^']*[\\/]dist[\\/]main\.js'/.test(error.message)
  const notInstalled = error.code === 'ERR_MODULE_NOT_FOUND' && error.message.startsWith('Cannot find package')
  if (notBuilt || notInstalled) {
    console.error(
      `signalbox: this checkout ${notBuilt ? 'is not built' : 'has no packages installed'} yet\n` +
        '  Run `npm start` in it (installs, builds and serves)' +
        (notBuilt ? ', or only build it with `npm run build`.' : '.'),
    )
  } else {
    console.error(error)
  }
  process.exit(1)
})
