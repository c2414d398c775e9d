import { Menu as Base } from '@base-ui/react/menu'
import type { LucideIcon } from 'lucide-react'
import type { ReactElement, ReactNode } from 'react'

export function Menu({ trigger, children }: { trigger: ReactElement<Record<string, unknown>>; children: ReactNode }) {
  return (
    <Base.Root modal={false}>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} align="end" className="above">
          <Base.Popup className="menu">{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

export function MenuItem({
  icon: Icon,
  onClick,
  danger,
  children,
}: {
  icon?: LucideIcon
  onClick(): void
  danger?: boolean
  children: ReactNode
}) {
  return (
    <Base.Item className={`menu-item ${danger ? 'menu-danger' : ''}`} onClick={onClick}>
      {Icon && <Icon aria-hidden />}
      {children}
    </Base.Item>
  )
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <div className="menu-label">{children}</div>
}
