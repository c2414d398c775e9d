import { NETWORK, type Program } from '../harness-shared/program.ts'

const ENVIRONMENT = [
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'GOOGLE_CLOUD_LOCATION',
  'GOOGLE_CLOUD_PROJECT',
  'GOOGLE_GEMINI_BASE_URL',
  'GOOGLE_GENAI_USE_GCA',
  'GOOGLE_GENAI_USE_VERTEXAI',
  ...NETWORK,
]

export const PROGRAM: Program = {
  command: 'gemini',
  title: 'Gemini CLI',
  package: '@google/gemini-cli',
  least: '0.61.0',
  install: 'npm install -g @google/gemini-cli',
  account: {
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_GCA', 'GOOGLE_GENAI_USE_VERTEXAI'],
    files: () => [
      { path: '.gemini/oauth_creds.json' },
      { path: '.gemini/google_accounts.json', says: /"active"\s*:\s*"/ },
      { path: '.gemini/.env', says: /^\s*(GEMINI|GOOGLE)_API_KEY\s*=/m },
    ],
    login: 'Run gemini once in a terminal, or set GEMINI_API_KEY where the daemon is started.',
  },
  environment: () => ENVIRONMENT,
}
