export { sentences } from './panel/sentences.tsx'
