import type { Sentences } from '../../../ui/panel.ts'
import { valueInWords } from './words.ts'

export const sentences: Sentences = {
  'setting.changed': ({ subject, data }) => (
    <>
      <strong>set</strong> <span className="mono">{subject}</span> to <span className="mono">{valueInWords(data.value)}</span>
    </>
  ),
  'decision.logged': ({ data }) => (
    <>
      <strong>decided</strong> {String(data.title)}
    </>
  ),
}
