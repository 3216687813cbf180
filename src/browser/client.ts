/** The browser end of a cooperative session: two operations over HTTP, for whoever shows a relayed site. */

import type { Invocation } from '../contract/invocations.js'
import type { JsonObject } from '../contract/json.js'
import { ANYTHING, checkOptions, FUNCTION, needed, type Shape, TEXT } from '../contract/options.js'
import { toBase, toSegment } from '../relay-client/answer.js'
import { BASE_URL_OR_PATH } from '../relay-client/base-url.js'
import type { Subscriber } from './frames.js'
import { type InvokeOptions, invoke } from './invoke.js'
import { type ClientHeaders, createSend } from './send.js'
import { subscribe } from './subscribe.js'

export interface CooperativeSiteClientOptions {
  /** Where the relay's routes begin, with its prefix: `/relay`, `https://example.test/relay`. */
  baseUrl: string
  sessionId: string
  /** @default the platform's */
  fetch?: typeof globalThis.fetch | undefined
  /** Sent with every request, e.g. a viewer's token; a function is asked before each. Cookies go to the page's own origin. */
  headers?: ClientHeaders | undefined
}

const OPTIONS: Shape<CooperativeSiteClientOptions> = {
  baseUrl: needed(BASE_URL_OR_PATH),
  sessionId: needed(TEXT),
  fetch: FUNCTION,
  headers: ANYTHING,
}

/** Who listens, by names that a misspelt one is none of. Without `onEvent` a stream would be held open for nobody. */
const SUBSCRIBER = { onEvent: needed(FUNCTION), onGap: FUNCTION, onReady: FUNCTION, onEnd: FUNCTION, signal: ANYTHING }

const INVOKE: Shape<InvokeOptions> = { signal: ANYTHING, idempotencyKey: TEXT, timeoutMs: ANYTHING }

/** Exactly two operations. It opens no session, renders nothing, recovers no missed event and interprets no payload. */
export interface CooperativeSiteClient {
  /**
   * Listens to the session's events until `signal` aborts, reconnecting with jittered backoff.
   *
   * @returns a promise that resolves when the stream has ended for good (`onEnd` knows why) or was aborted. It rejects
   * with `CooperativeSiteError` when the relay refuses (401, 403, 404 …) or redirects; `onEnd` hears that too, so the
   * promise may be left alone.
   */
  subscribe(subscription: Subscriber & { signal?: AbortSignal | undefined }): Promise<void>
  /**
   * Invokes one allowed action, once.
   *
   * @returns the relay's 200 answer; `status: 'failed'` is the application's own no.
   * @throws CooperativeSiteError with `code`, `status` and, where the action may have run, `outcome: 'unknown'`.
   */
  invoke(action: string, parameters?: JsonObject, options?: InvokeOptions): Promise<Invocation>
}

/**
 * The viewer's client of one session. Redirects are never followed: credentials would travel.
 *
 * @throws TypeError for a session id that is not one path segment.
 *
 * @example
 * ```ts
 * import { createCooperativeSiteClient } from 'relayscope/browser'
 *
 * const site = createCooperativeSiteClient({ baseUrl: '/relay', sessionId: 'session-1' })
 * const left = new AbortController()
 * site.subscribe({ onReady: refetch, onGap: refetch, onEvent: refetch, signal: left.signal })
 * await site.invoke('add_note', { text: 'milk' })
 *
 * function refetch() {}
 * ```
 */
export function createCooperativeSiteClient(options: CooperativeSiteClientOptions): CooperativeSiteClient {
  checkOptions(options, OPTIONS)
  const { baseUrl, sessionId, fetch = globalThis.fetch, headers = {} } = options
  const sessionUrl = `${toBase(baseUrl)}/sessions/${toSegment('sessionId', sessionId)}`
  const send = createSend(sessionUrl, fetch, headers)
  return {
    subscribe(given) {
      checkOptions(given, SUBSCRIBER)
      const { signal = new AbortController().signal, ...subscriber } = given
      const ended = subscribe(send, subscriber, signal)
      // Whoever listens to onEnd alone must not be met by an unhandled rejection.
      ended.catch(() => {})
      return ended
    },
    async invoke(action, parameters, invokeOptions = {}) {
      checkOptions(invokeOptions, INVOKE)
      return invoke(send, action, parameters, invokeOptions)
    },
  }
}
