import { AlertDialog } from '@base-ui/react/alert-dialog'
import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from './button.tsx'

interface DialogProps {
  open: boolean
  onClose(): void
  title: string
  description?: ReactNode
  children: ReactNode
  wide?: boolean
  /** Closing loses something: a click beside it is not enough. */
  firm?: boolean
}

export function Dialog({ open, onClose, title, description, children, wide, firm }: DialogProps) {
  return (
    <Base.Root open={open} disablePointerDismissal={firm} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className={`dialog ${wide ? 'dialog-wide' : ''}`}>
          <header className="dialog-head">
            <Base.Title className="dialog-title">{title}</Base.Title>
            <Base.Close className="icon-button" aria-label="Close">
              <X aria-hidden />
            </Base.Close>
          </header>
          {description && <Base.Description className="dialog-description">{description}</Base.Description>}
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

interface ConfirmProps {
  open: boolean
  onClose(): void
  title: string
  /** What will be so afterwards, and whether it can be undone. */
  description: ReactNode
  action: string
  busy?: boolean
  onConfirm(): void
}

/** Before anything that cannot be taken back. */
export function Confirm({ open, onClose, title, description, action, busy, onConfirm }: ConfirmProps) {
  return (
    <AlertDialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className="backdrop" />
        <AlertDialog.Popup className="dialog">
          <AlertDialog.Title className="dialog-title">{title}</AlertDialog.Title>
          <AlertDialog.Description className="dialog-description">{description}</AlertDialog.Description>
          <div className="actions">
            <Button onClick={onClose}>Cancel</Button>
            <Button kind="danger" busy={busy} onClick={onConfirm}>
              {action}
            </Button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  )
}
