/** The page of the host: whoever opens it is a client too, its tab a context, its window a browser window. */
import { readFile } from 'node:fs/promises'

const FILES = {
  '/': ['page/index.html', 'text/html; charset=utf-8'],
  '/page.mjs': ['page/tab.mjs', 'text/javascript; charset=utf-8'],
  '/relay-client.mjs': ['client/relay-client.mjs', 'text/javascript; charset=utf-8'],
}

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
}

/** Answers the page and its scripts, else `undefined`. Each load of the page carries a ticket of its own. */
export function createPage({ ticketFor }) {
  return async (pathname) => {
    const [file, type] = FILES[pathname] ?? []
    if (!file) return undefined
    const text = await readFile(new URL(file, import.meta.url), 'utf8')
    const body = pathname === '/' ? text.replace('%TICKET%', ticketFor) : text
    return new Response(body, { headers: { ...HEADERS, 'content-type': type } })
  }
}
