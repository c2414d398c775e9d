// An agent program as one sees it in a terminal: a box that takes pastes, a slow start, a question before it, hooks.
//
// It reads what it is to do from the file that `--plan` names, else from $HOME/tui.json:
//   startMs    how long it takes to start
//   dialog     asks whether the folder is trusted; Enter says no and ends it, `y` says yes
//   swallow    how many Enters do nothing
//   draft      what stands in the box already
//   pastes     false: it does not ask for bracketed pastes
//   silent     it has no hooks
//   unfolds    it shows what it took
//   log        where it writes down each prompt that it took, one JSON a line
//   strays     starts processes that try to get away
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

const argument = (name) => process.argv[process.argv.indexOf(name) + 1 || Infinity]
if (process.argv.includes('--version')) {
  console.log('2.1.325 (an agent program of our own)')
  process.exit(0)
}
const file = argument('--plan') ?? `${process.env.HOME}/tui.json`
const plan = { startMs: 0, swallow: 0, draft: '', ...(existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}) }
const settings = argument('--settings')
const hooks = settings && !plan.silent ? JSON.parse(readFileSync(settings, 'utf8')).hooks : {}
const said = []
let box = plan.draft
let asking = plan.dialog
let pasting
let input = ''

function tell(event, fields = {}) {
  for (const { hooks: list } of hooks[event] ?? [])
    for (const { command } of list) spawnSync('/bin/sh', ['-c', command], { input: JSON.stringify({ hook_event_name: event, ...fields }) })
}

function draw() {
  const shown = box.length > 200 ? `[Pasted text +${box.split('\n').length} lines]` : box.replaceAll('\n', '\\n')
  const page = asking ? ['Do you trust the files in this folder?', '❯ No, exit', '  Yes (y)'] : [...said, '', `❯ ${shown}`, 'ready']
  process.stdout.write(`\x1b[2J\x1b[H${page.join('\r\n')}`)
}

function begin() {
  asking = false
  if (plan.pastes !== false) process.stdout.write('\x1b[?2004h')
  tell('SessionStart')
  draw()
}

function submit() {
  if (plan.swallow-- > 0) return
  const prompt = box
  box = ''
  if (plan.log) appendFileSync(plan.log, `${JSON.stringify(prompt)}\n`)
  tell('UserPromptSubmit', { prompt })
  if (plan.unfolds) said.push(...prompt.split('\n').slice(-3))
  said.push(`● took ${prompt.length} characters`)
  draw()
}

function key(character) {
  if (character === '\x03') process.exit(130)
  if (asking) {
    if (character === 'y') begin()
    else if (character === '\r') process.exit(1)
  } else if (character === '\r') submit()
  else {
    box += character
    draw()
  }
}

function take(chunk) {
  input += chunk
  while (input) {
    const [start, end] = [input.indexOf('\x1b[200~'), input.indexOf('\x1b[201~')]
    if (pasting !== undefined) {
      if (end === -1) return
      box += input.slice(0, end)
      pasting = undefined
      input = input.slice(end + 6)
      draw()
    } else if (start === 0) {
      pasting = true
      input = input.slice(6)
    } else {
      key(input[0])
      input = input.slice(1)
    }
  }
}

if (plan.strays)
  for (const options of [{ detached: true }, {}])
    spawn('/bin/sh', ['-c', 'trap "" TERM HUP; sleep 600 & wait; sleep 600'], { ...options, stdio: 'ignore' }).unref()

process.stdin.setRawMode?.(true)
process.stdin.setEncoding('utf8')
process.stdout.write('starting')
setTimeout(() => {
  if (asking) draw()
  else begin()
  process.stdin.on('data', take)
}, plan.startMs)
