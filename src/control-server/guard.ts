/** Who may enter the control server at all: this machine's own programs that know the token, and no web page. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createHostGuard, LOOPBACK_NAMES, valuesOf } from '../http/guard.js'
import { isForwarded, isLoopbackAddress } from '../http/loopback.js'
import type { ProblemCode } from '../http/problem.js'

/** What is looked at: the socket, and the headers as they stood on the wire. */
interface Caller {
  remoteAddress: string | undefined
  /** Names and values in turn; `headers` would hide that there are two. */
  rawHeaders: readonly string[]
}

// `same-site` is another port of this machine: another program's page.
const OWN_FETCH_SITES = new Set(['none', 'same-origin'])

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * A check of every request before anything of it is read. Its answer is the first that holds, so that nobody learns
 * about the token who could not have used it: `not_loopback`, `forwarded_request`, `bad_host`, `bad_origin`,
 * `unauthenticated`; or `undefined`: come in.
 */
export function createRequestGuard(token: string): (caller: Caller, port: number) => ProblemCode | undefined {
  const wanted = digest(token)
  const guard = createHostGuard([LOOPBACK_NAMES])

  // Digests are equally long, so neither the time nor a throw tells anything about the token.
  function isToken(authorization: string | undefined): boolean {
    const given = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1]
    return given !== undefined && timingSafeEqual(digest(given), wanted)
  }

  return ({ remoteAddress, rawHeaders }, port) => {
    if (!isLoopbackAddress(remoteAddress ?? '')) return 'not_loopback'
    if (isForwarded(rawHeaders.filter((_, i) => i % 2 === 0))) return 'forwarded_request'
    const given = (name: string) => valuesOf(rawHeaders, name)
    // No page has business here, not even one of this address, so an Origin is refused whatever it names.
    if (guard({ hosts: given('host'), origins: [], port }) !== undefined) return 'bad_host'
    if (given('origin').length > 0 || !given('sec-fetch-site').every((site) => OWN_FETCH_SITES.has(site)))
      return 'bad_origin'
    const [authorization, ...more] = given('authorization')
    return more.length === 0 && isToken(authorization) ? undefined : 'unauthenticated'
  }
}
