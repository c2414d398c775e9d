// `npm start`: make the checkout runnable, then become `signalbox serve`.
import { join } from 'node:path'
import { bootstrap, ROOT } from './bootstrap.mjs'

await bootstrap()

// In this very process: signals, terminal and exit code then need no forwarding, and Ctrl-C arrives once.
process.argv = [process.argv[0], join(ROOT, 'bin', 'signalbox.js'), 'serve', ...process.argv.slice(2)]
await import('../bin/signalbox.js')
