import { Dialog } from '../kit/dialog.tsx'
import { navigation } from '../panels.ts'

const KEYS: [keys: string, meaning: string][] = [
  ['Ctrl K', 'find a task or a page'],
  ['C', 'new task, on the board'],
  ['/', 'filter the board'],
  ['Enter', 'open the task in focus'],
  ['Space, arrows, Space', 'pick a card up, carry it to another column, put it down'],
  ['Esc', 'close what is open'],
  ['?', 'this page'],
]

export function KeysHelp({ open, onClose }: { open: boolean; onClose(): void }) {
  const all = [...KEYS, ...navigation.map(({ title, nav }): [string, string] => [`G ${nav.key.toUpperCase()}`, title])]
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts">
      <dl className="keys">
        {all.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
