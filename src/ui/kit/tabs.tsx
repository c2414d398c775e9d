import { Tabs as Base } from '@base-ui/react/tabs'
import type { ReactNode } from 'react'

interface Tab {
  id: string
  title: string
  content: ReactNode
  /** Stays as it is while another one is open: somebody may have typed something there. */
  keep?: boolean
}

/** Several views in one place; which of them is open stands in the address, so it is the caller's. */
export function Tabs({ label, tabs, open, onOpen }: { label: string; tabs: Tab[]; open: string; onOpen(id: string): void }) {
  return (
    <Base.Root className="tabs" value={open} onValueChange={(id) => onOpen(String(id))}>
      <Base.List className="tab-list" aria-label={label}>
        {tabs.map(({ id, title }) => (
          <Base.Tab key={id} value={id} className="tab">
            {title}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map(({ id, content, keep }) => (
        <Base.Panel key={id} value={id} keepMounted={keep} className="tab-panel">
          {content}
        </Base.Panel>
      ))}
    </Base.Root>
  )
}
