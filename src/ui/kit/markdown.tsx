import Render from 'react-markdown'
import gfm from 'remark-gfm'

/** Text that an agent or a person wrote. HTML in it is shown as text, images are not fetched, links say where they lead. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <Render
        remarkPlugins={[gfm]}
        disallowedElements={['img']}
        components={{
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noreferrer noopener" title={href}>
              {children}
            </a>
          ),
        }}
      >
        {text}
      </Render>
    </div>
  )
}
