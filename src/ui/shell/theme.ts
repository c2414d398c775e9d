import { storage } from '../storage.ts'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'signalbox.theme'
const dark = matchMedia('(prefers-color-scheme: dark)')
dark.addEventListener('change', applyTheme)

export function chosenTheme(): Theme {
  const stored = storage.get(KEY)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

export function chooseTheme(theme: Theme): void {
  storage.set(KEY, theme)
  applyTheme()
}

export function applyTheme(): void {
  const chosen = chosenTheme()
  document.documentElement.dataset.theme = chosen === 'system' ? (dark.matches ? 'dark' : 'light') : chosen
}
