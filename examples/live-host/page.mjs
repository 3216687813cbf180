/** The pages of the host: one makes its tab a client, the other its reader a viewer of the shared notes. */
import { readFile } from 'node:fs/promises'

const FILES = {
  '/': ['page/index.html', 'text/html; charset=utf-8'],
  '/page.mjs': ['page/tab.mjs', 'text/javascript; charset=utf-8'],
  '/ask.mjs': ['page/ask.mjs', 'text/javascript; charset=utf-8'],
  '/relay-client.mjs': ['client/relay-client.mjs', 'text/javascript; charset=utf-8'],
  '/notes': ['page/notes.html', 'text/html; charset=utf-8'],
  '/notes.mjs': ['page/notes.mjs', 'text/javascript; charset=utf-8'],
  '/relayscope-browser.mjs': [import.meta.resolve('relayscope/browser'), 'text/javascript; charset=utf-8'],
}

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

/** Answers the pages and their scripts, else `undefined`. To load one changes nothing: it asks for what it needs. */
export async function page(pathname) {
  if (!Object.hasOwn(FILES, pathname)) return undefined
  const [file, type] = FILES[pathname]
  const body = await readFile(new URL(file, import.meta.url), 'utf8')
  return new Response(body, { headers: { ...HEADERS, 'content-type': type } })
}
