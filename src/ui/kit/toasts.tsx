import { Toast } from '@base-ui/react/toast'
import { CircleAlert, CircleCheck, X } from 'lucide-react'
import type { CallError } from '../client.ts'

const manager = Toast.createToastManager()

export function showSuccess(title: string): void {
  manager.add({ title, type: 'success', timeout: 4_000 })
}

/** A refusal stays until it is read: its hint says what to do. */
export function showError(error: CallError): void {
  manager.add({ title: error.message, description: error.body.hint, type: 'error', timeout: 10_000 })
}

export function Toasts() {
  return (
    <Toast.Provider toastManager={manager} limit={4}>
      <Toast.Portal>
        <Toast.Viewport className="toasts">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  const { toasts } = Toast.useToastManager()
  return toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className={`toast toast-${toast.type}`}>
      <Toast.Content className="toast-content">
        {toast.type === 'error' ? <CircleAlert aria-hidden /> : <CircleCheck aria-hidden />}
        <div>
          <Toast.Title className="toast-title" />
          <Toast.Description className="toast-description" />
        </div>
        {/* Of several that lie on each other the library hides it from readers, but not from the keyboard. */}
        <Toast.Close className="icon-button" aria-label="Dismiss" aria-hidden={false}>
          <X aria-hidden />
        </Toast.Close>
      </Toast.Content>
    </Toast.Root>
  ))
}
