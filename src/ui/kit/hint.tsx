import { Tooltip } from '@base-ui/react/tooltip'
import type { ReactElement } from 'react'

/** A word on hovering or focus. */
export function Hint({ text, children }: { text: string; children: ReactElement<Record<string, unknown>> }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children} />
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} className="above">
          <Tooltip.Popup className="hint">{text}</Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}
