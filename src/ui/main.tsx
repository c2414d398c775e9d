import '@fontsource-variable/inter/wght.css'
import './kit/theme.css'
import './kit/kit.css'
import './shell/shell.css'
import { createRoot } from 'react-dom/client'
import { App } from './shell/app.tsx'
import { applyTheme } from './shell/theme.ts'

applyTheme()
createRoot(document.getElementById('root') as HTMLElement).render(<App />)
