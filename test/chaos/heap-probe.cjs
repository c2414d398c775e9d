// Loaded into the daemon before its own code: on SIGUSR2 it collects all garbage and prints what is left, and for how long
// at the most the event loop stood still since the last time.
const { monitorEventLoopDelay } = require('node:perf_hooks')
const { setFlagsFromString } = require('node:v8')
const { runInNewContext } = require('node:vm')
const { isMainThread } = require('node:worker_threads')

if (isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const delay = monitorEventLoopDelay()
  delay.enable()
  process.on('SIGUSR2', () => {
    const stallMs = delay.max / 1e6
    collect()
    setImmediate(() => {
      collect()
      process.stderr.write(`heap-probe ${JSON.stringify({ ...process.memoryUsage(), stallMs })}\n`)
      setImmediate(() => delay.reset())
    })
  })
}
