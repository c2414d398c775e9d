import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'

export type Tone = 'neutral' | 'green' | 'amber' | 'red' | 'blue'

export function Badge({
  tone = 'neutral',
  icon: Icon,
  title,
  children,
}: {
  tone?: Tone
  icon?: LucideIcon
  title?: string
  children: ReactNode
}) {
  return (
    <span className={`badge tone-${tone}`} title={title}>
      {Icon && <Icon aria-hidden />}
      {children}
    </span>
  )
}
