import { defineTaskSections } from '../../ui/panel.ts'
import { Transcript } from './panel/transcript.tsx'

export const taskSections = defineTaskSections({ tab: 'Transcript', order: 20, needs: 'transcript_read', component: Transcript })
