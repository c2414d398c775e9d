import type { Panel, Sentences, TaskMenu, TaskSection } from './panel.ts'

interface PanelFile {
  panels?: Panel[]
  sentences?: Sentences
  taskSections?: TaskSection[]
  taskMenu?: TaskMenu
}

const found = Object.values(import.meta.glob<PanelFile>('../capabilities/*/panel.tsx', { eager: true }))

/** Every screen that a capability brings: a file in its folder is all it takes. */
export const panels: Panel[] = found
  .flatMap((file) => file.panels ?? [])
  .sort((a, b) => (a.nav?.order ?? Infinity) - (b.nav?.order ?? Infinity))

export const navigation = panels.filter((panel): panel is Panel & { nav: NonNullable<Panel['nav']> } => panel.nav !== undefined)

/** Functions, because the pages that ask are themselves among the files. */
export const taskSections = (): TaskSection[] => found.flatMap((file) => file.taskSections ?? []).sort((a, b) => a.order - b.order)
export const taskMenus = (): TaskMenu[] => found.flatMap((file) => file.taskMenu ?? [])

const sentences: Sentences = Object.assign({}, ...found.map((file) => file.sentences))

export function sentenceOf(type: string): Sentences[string] | undefined {
  return Object.hasOwn(sentences, type) ? sentences[type] : undefined
}
