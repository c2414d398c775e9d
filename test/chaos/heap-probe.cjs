// Loaded into the daemon before its own code: on SIGUSR2 it collects all garbage and prints what is left.
const { isMainThread } = require('node:worker_threads')
const { setFlagsFromString } = require('node:v8')
const { runInNewContext } = require('node:vm')

if (isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  process.on('SIGUSR2', () => {
    collect()
    setImmediate(() => {
      collect()
      process.stderr.write(`heap-probe ${JSON.stringify(process.memoryUsage())}\n`)
    })
  })
}
