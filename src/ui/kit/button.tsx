import { Loader2, type LucideIcon } from 'lucide-react'
import type { ButtonHTMLAttributes } from 'react'
import { Hint } from './hint.tsx'

interface Look {
  kind?: 'primary' | 'plain' | 'quiet' | 'danger'
  icon?: LucideIcon
  /** Under way: shows so, and cannot be pressed again. */
  busy?: boolean
}

export function Button({
  kind = 'plain',
  icon: Icon,
  busy,
  children,
  className = '',
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & Look) {
  return (
    <button type="button" {...rest} disabled={rest.disabled || busy} className={`button button-${kind} ${className}`}>
      {busy ? <Loader2 className="spin" aria-hidden /> : Icon && <Icon aria-hidden />}
      {children}
    </button>
  )
}

/** Of an icon alone: its name is what a screen reader says, and what hovering shows. */
export function IconButton({ icon: Icon, name, ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { icon: LucideIcon; name: string }) {
  return (
    <Hint text={name}>
      <button type="button" {...rest} aria-label={name} className={`icon-button ${rest.className ?? ''}`}>
        <Icon aria-hidden />
      </button>
    </Hint>
  )
}
