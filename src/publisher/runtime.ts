/** The connected runtime of an application, and how its requests reach the relay. */

import { checkOptions, checkParts, FUNCTION, needed, OBJECT, type Shape } from '../contract/options.js'
import type { Awaitable } from '../contract/page.js'
import { readObject, toBase } from '../relay-client/answer.js'
import { BASE_URL } from '../relay-client/base-url.js'
import type { HeaderFields } from '../relay-client/headers.js'
import { RelayError } from './relay-error.js'

/**
 * The one client that the application already is. A second identity would be a stale or unrelated instance and defeat
 * instance fencing, so nothing here ever makes one.
 */
export interface PublisherRuntime {
  /** The current identity; asked at each attempt, because a reconnect changes `instance_id`. */
  identity(): Awaitable<{ client_id: string; instance_id: string }>
  /** Where the relay's routes begin, with its prefix: an http(s) URL. */
  baseUrl: string
  /** Puts the runtime's credentials on the headers of a request, or returns headers to add. */
  // biome-ignore lint/suspicious/noConfusingVoidType: `headers.set` returns nothing, and that is the usual body
  authorize(headers: Headers): Awaitable<HeaderFields | void>
  /** @default the platform's */
  fetch?: typeof globalThis.fetch | undefined
}

const RUNTIME: Shape<PublisherRuntime> = {
  identity: needed(FUNCTION),
  baseUrl: needed(BASE_URL),
  authorize: needed(FUNCTION),
  fetch: FUNCTION,
}

/** Refuses what publisher and registry cannot be made with. A runtime may have more than they ask of it. */
export function checkRuntime(options: { runtime: PublisherRuntime }): void {
  checkOptions(options, { runtime: needed(OBJECT) })
  checkParts(options.runtime, RUNTIME, 'runtime.')
}

/** A site record is at most 64 KiB and a problem 2 KiB; beyond this it is not an answer of a relay. */
const ANSWER_BYTES = 131_072

/** An answer of the relay; `body` is `undefined` where it is not JSON object. */
export interface RelayAnswer {
  status: number
  body: Record<string, unknown> | undefined
}

/**
 * One request to the relay, with the runtime's credentials.
 *
 * @throws RelayError `unreachable`; whatever `authorize` throws.
 */
export async function request(
  runtime: PublisherRuntime,
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<RelayAnswer> {
  const headers = new Headers({ accept: 'application/json' })
  if (body !== undefined) headers.set('content-type', 'application/json')
  const returned = await runtime.authorize(headers)
  const more = returned !== null && typeof returned === 'object' ? new Headers(returned) : []
  // Assigned like fields of a plain object they would be lost in silence.
  for (const [name, value] of [...Object.entries(headers), ...more]) headers.set(name, value)
  const url = `${toBase(runtime.baseUrl)}${path}`
  const send = runtime.fetch ?? globalThis.fetch
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  try {
    // Followed, a redirect would take the credentials along.
    const response = await send(url, { method, headers, redirect: 'manual', signal, ...sent })
    return { status: response.status, body: await readObject(response, ANSWER_BYTES) }
  } catch (cause) {
    throw new RelayError('unreachable', null, { cause })
  }
}
