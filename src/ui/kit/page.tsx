import { type ReactNode, useEffect } from 'react'

/** A screen: its name, what can be done here, and the rest. */
export function Page({
  title,
  subtitle,
  actions,
  wide,
  children,
}: {
  title: ReactNode
  subtitle?: ReactNode
  actions?: ReactNode
  wide?: boolean
  children: ReactNode
}) {
  useEffect(() => {
    if (typeof title === 'string') document.title = `${title} · Signalbox`
  }, [title])
  return (
    <div className={`page ${wide ? 'page-wide' : ''}`}>
      <header className="page-head">
        <div className="page-titles">
          <h1>{title}</h1>
          {subtitle && <p>{subtitle}</p>}
        </div>
        {actions && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function Card({
  title,
  actions,
  children,
  className = '',
}: {
  title?: ReactNode
  actions?: ReactNode
  children: ReactNode
  className?: string
}) {
  return (
    <section className={`card ${className}`}>
      {title && (
        <header className="card-head">
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      {children}
    </section>
  )
}
