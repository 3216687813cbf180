/** How both operations of the client reach their session at the relay. */

import type { HeaderFields } from '../relay-client/headers.js'

/** Headers for every request, or a function that is asked before each: a token may be renewed between two. */
export type ClientHeaders = HeaderFields | (() => HeaderFields | Promise<HeaderFields>)

/** Sends a request to a path below the session. A redirect is an answer, never a way. */
export type Send = (
  path: string,
  request: { method?: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
) => Promise<Response>

export function createSend(sessionUrl: string, fetch: typeof globalThis.fetch, headers: ClientHeaders): Send {
  return async (path, { headers: own, ...request }) => {
    const sent = new Headers(typeof headers === 'function' ? await headers() : headers)
    for (const [name, value] of Object.entries(own)) sent.set(name, value)
    return fetch(`${sessionUrl}/${path}`, { ...request, headers: sent, redirect: 'manual', cache: 'no-store' })
  }
}
