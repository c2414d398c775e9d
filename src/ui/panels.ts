import type { Panel, Sentences } from './panel.ts'

const found = import.meta.glob<{ panels: Panel[]; sentences?: Sentences }>('../capabilities/*/panel.tsx', { eager: true })

/** Every screen that a capability brings: a file in its folder is all it takes. */
export const panels: Panel[] = Object.values(found)
  .flatMap((file) => file.panels)
  .sort((a, b) => (a.nav?.order ?? Infinity) - (b.nav?.order ?? Infinity))

export const navigation = panels.filter((panel): panel is Panel & { nav: NonNullable<Panel['nav']> } => panel.nav !== undefined)

const sentences: Sentences = Object.assign({}, ...Object.values(found).map((file) => file.sentences))

export function sentenceOf(type: string): Sentences[string] | undefined {
  return Object.hasOwn(sentences, type) ? sentences[type] : undefined
}
