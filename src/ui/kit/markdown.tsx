import type { ReactNode } from 'react'
import Render from 'react-markdown'
import gfm from 'remark-gfm'
import { visible } from './plain.ts'

/** Text that an agent or a person wrote. HTML in it is shown as text, an image is a link to it, links say where they lead. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <Render
        remarkPlugins={[gfm]}
        components={{
          a: ({ href, children }) => <Away to={href}>{children}</Away>,
          img: ({ src, alt }) => <Away to={typeof src === 'string' ? src : undefined}>{alt || src}</Away>,
        }}
      >
        {visible(text)}
      </Render>
    </div>
  )
}

function Away({ to, children }: { to: string | undefined; children: ReactNode }) {
  return (
    <a href={to} target="_blank" rel="noreferrer noopener" title={to}>
      {children}
    </a>
  )
}
