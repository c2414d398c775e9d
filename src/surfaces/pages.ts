import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'

export interface Page {
  body: string | Buffer<ArrayBuffer>
  headers: Record<string, string>
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
}
const NONCE = '__NONCE__'
/** Addresses of the daemon itself: a mistyped one must not answer with a page. */
const NO_PAGE = /^\/(api|mcp|assets|healthz|metrics)(\/|$)/

/** The dashboard, read once: what is asked for by name, and for every other address the page whose router knows it. */
export function createPages(folder: string): (path: string, accept: string) => Page | undefined {
  if (!existsSync(join(folder, 'index.html'))) return () => undefined
  const files = new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && extname(entry.name) in TYPES && entry.name !== 'index.html')
      .map((entry) => {
        const path = join(entry.parentPath ?? entry.path, entry.name)
        return [path.slice(folder.replace(/\/$/, '').length), readFileSync(path)] as const
      }),
  )
  const html = readFileSync(join(folder, 'index.html'), 'utf8')
  return (path, accept) => {
    const file = files.get(path)
    if (file) return { body: file, headers: fileHeaders(path) }
    // Only a browser that goes somewhere asks for a page: a program that mistyped an address is told so.
    const asked = path === '/' || (accept.includes('text/html') && !NO_PAGE.test(path))
    return asked ? shell(html) : undefined
  }
}

/** What stands in /assets has its hash in its name. */
function fileHeaders(path: string): Record<string, string> {
  const lasting = path.startsWith('/assets/')
  return {
    'content-type': TYPES[extname(path)] as string,
    'cache-control': lasting ? 'public, max-age=31536000, immutable' : 'no-cache',
  }
}

/** Scripts come from files alone; the components that make a style element of their own get this page's nonce. */
function shell(html: string): Page {
  const nonce = randomBytes(18).toString('base64')
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ]
  return {
    body: html.replaceAll(NONCE, nonce),
    headers: { 'content-type': TYPES['.html'] as string, 'content-security-policy': policy.join('; '), 'cache-control': 'no-store' },
  }
}
