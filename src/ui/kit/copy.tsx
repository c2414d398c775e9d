import { Check, Copy } from 'lucide-react'
import { useRef, useState } from 'react'
import { IconButton } from './button.tsx'

/** Text that is meant to be taken elsewhere, as it is. */
export function CopyLine({ label, text }: { label: string; text: string }) {
  const shown = useRef<HTMLElement>(null)
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
    } catch {
      // A browser that forbids it, or a page that is not on this machine: it is marked, so that one key copies it.
      if (shown.current) getSelection()?.selectAllChildren(shown.current)
    }
  }
  return (
    <div className="copy-line">
      <code ref={shown}>{text}</code>
      <IconButton icon={copied ? Check : Copy} name={copied ? `${label}: copied` : `Copy ${label}`} onClick={() => void copy()} />
    </div>
  )
}
