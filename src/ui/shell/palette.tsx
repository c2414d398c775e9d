import { Autocomplete } from '@base-ui/react/autocomplete'
import { Dialog } from '@base-ui/react/dialog'
import { useNavigate } from '@tanstack/react-router'
import { type LucideIcon, SquareCheck } from 'lucide-react'
import { useTool } from '../live.tsx'
import { navigation } from '../panels.ts'

interface Entry {
  id: string
  label: string
  note: string
  icon: LucideIcon
  to: string
}

/** Anything by a few letters of its name. */
export function Palette({ open, onClose }: { open: boolean; onClose(): void }) {
  const navigate = useNavigate()
  const tasks = useTool('task_list', { limit: 200, order: 'newest' }, { enabled: open }).data?.tasks ?? []
  const entries: Entry[] = [
    ...navigation.map(({ path, title, nav }) => ({ id: path, label: title, note: 'Page', icon: nav.icon, to: path })),
    ...tasks.map(({ id, handle, title, status }) => ({
      id,
      label: `${handle}  ${title}`,
      note: words(status),
      icon: SquareCheck,
      to: `/task/${handle}`,
    })),
  ]
  const go = (entry: Entry) => {
    onClose()
    void navigate({ to: entry.to })
  }
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="dialog palette" aria-label="Find a task or a page">
          <Autocomplete.Root open inline items={entries} itemToStringValue={(entry: Entry) => entry.label} autoHighlight="always">
            <Autocomplete.Input className="input palette-input" placeholder="A page, T-12, or words of a title" />
            <Autocomplete.Empty className="palette-none">Nothing is called that.</Autocomplete.Empty>
            <Autocomplete.List className="palette-list">
              {(entry: Entry) => (
                <Autocomplete.Item key={entry.id} value={entry} className="palette-item" onClick={() => go(entry)}>
                  <entry.icon aria-hidden />
                  <span>{entry.label}</span>
                  <small>{entry.note}</small>
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function words(status: string): string {
  return status.toLowerCase().replace('_', ' ')
}
