import { Search } from 'lucide-react'
import type { InputHTMLAttributes, Ref } from 'react'

/** A field that narrows what is shown, while it is typed. */
export function SearchInput({ label, ...rest }: InputHTMLAttributes<HTMLInputElement> & { label: string; ref?: Ref<HTMLInputElement> }) {
  return (
    <div className="search">
      <Search aria-hidden />
      <input className="input" type="search" aria-label={label} placeholder="Filter" {...rest} />
    </div>
  )
}
