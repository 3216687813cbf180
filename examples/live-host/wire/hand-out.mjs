/** Issues a ticket or a guest token to a page of the host that has no credentials yet. */
import { json, readBody, toAnswer, WireError } from './http.mjs'

/**
 * Whether a page of this host asks. Every page that a browser has open can send requests here, and what they change is
 * changed though their page cannot read the answer: at its bound an older guest leaves, for one. So loading a page
 * changes nothing, and what does is a POST that says where it comes from: a browser writes `Origin` and
 * `Sec-Fetch-Site` itself, and no script can. Routes with a bearer token need no such check, for no page of another
 * site has the token; a cookie, which the browser would add by itself, could not stand in for it.
 */
function isOwnPage(request) {
  const origin = request.headers.get('origin')
  const site = request.headers.get('sec-fetch-site')
  if (origin === null) return site === 'same-origin'
  // The adapter has let in no `Host` but this host's own, so its name can be relied upon.
  return origin === new URL(request.url).origin && (site === null || site === 'same-origin')
}

/** `give[pathname]()` makes what a page is handed. */
export function createHandOut(give) {
  async function answer(request, pathname) {
    if (!Object.hasOwn(give, pathname)) throw new WireError(404, 'no_such_route')
    if (!isOwnPage(request)) throw new WireError(403, 'cross_site')
    // JSON is what no form can send, and no script of another origin without asking first: a second, independent lock.
    await readBody(request)
    return json(await give[pathname](), 201)
  }
  return (request, pathname) => answer(request, pathname).catch(toAnswer)
}
