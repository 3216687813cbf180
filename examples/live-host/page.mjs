/** The pages of the host: one makes its tab a client, the other its reader a viewer of the shared notes. */
import { readFile } from 'node:fs/promises'

const FILES = {
  '/': ['page/index.html', 'text/html; charset=utf-8'],
  '/page.mjs': ['page/tab.mjs', 'text/javascript; charset=utf-8'],
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

/** Answers the pages and their scripts, else `undefined`. `fill[pathname]()` gives each load of a page its own values. */
export function createPage(fill) {
  return async (pathname) => {
    const [file, type] = FILES[pathname] ?? []
    if (!file) return undefined
    const text = await readFile(new URL(file, import.meta.url), 'utf8')
    const values = (await fill[pathname]?.()) ?? {}
    const body = text.replaceAll(/%([A-Z_]+)%/g, (mark, name) => values[name] ?? mark)
    return new Response(body, { headers: { ...HEADERS, 'content-type': type } })
  }
}
