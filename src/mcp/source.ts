/** Reads a router of this process or over HTTP, with limits on time, size and concurrency. */
import { raceAbort } from '../internal/async/abort.js'
import { limitTime } from '../internal/async/deadline.js'
import { createSemaphore } from '../internal/async/semaphore.js'
import { Traceparent } from '../internal/contract/ids.js'
import { isForwarded, isLoopbackAddress } from '../internal/http/guard.js'
import { problemText } from '../internal/http/problem.js'
import { ANSWER_BYTES, readObject } from '../internal/relay-client/wire.js'
import { escapeHiddenWithin } from './answer.js'

/** The caller and its credentials. */
export interface Caller {
  readonly headers: Headers
  /** The socket's address, where the host passes it. */
  readonly remoteAddress?: string | null
}

/** The metadata of a message. */
export type Meta = Readonly<Record<string, unknown>>

/** `caller` within the trace of `meta`, if that has a W3C `traceparent`. A `tracestate` belongs to its `traceparent`. */
function traced(caller: Caller, { traceparent, tracestate }: Meta): Caller {
  const { success, data } = Traceparent.safeParse(traceparent)
  if (!success) return caller
  const headers = new Headers(caller.headers)
  headers.set('traceparent', data)
  headers.delete('tracestate')
  if (typeof tracestate === 'string' && TRACE_STATE.test(tracestate)) headers.set('tracestate', tracestate)
  return { ...caller, headers }
}

/** Reads one path and query below the router on behalf of a caller. */
export type Source = (route: string, caller: Caller, signal: AbortSignal) => Promise<Response>

/** A response, or the reason for its absence in one line. */
export type RouteResult =
  | {
      readonly value: Record<string, unknown>
      readonly problem?: never
      readonly status?: never
      readonly code?: never
    }
  | { readonly problem: string; readonly status: number | null; readonly code?: unknown; readonly value?: never }

/** Reads a route for one caller, within the trace of `meta`. Never rejects. */
export type RouteFetcher = (route: string, signal: AbortSignal, meta?: Meta) => Promise<RouteResult>

/** Maximum concurrent reads, and maximum waiting ones. */
interface Turns {
  readonly atOnce: number
  readonly waiting: number
}

/** Of the tools; one overview is eight. */
const TOOLS: Turns = { atOnce: 16, waiting: 256 }
/**
 * Separate limits for authentication, which is fast: neither a hanging source nor many callers without a key may block
 * callers with one.
 */
export const AUTH_LIMITS: Turns = { atOnce: 64, waiting: 4_096 }
/** Maximum characters of a problem's text. */
const WORDS = 500

/** What belongs to the request that carried the question, and not to the question. */
const OF_THE_CARRIER = /^(?:accept|connection|content-|expect|if-|keep-alive|mcp-|te$|trailer|transfer-|upgrade)/

const CREDENTIALS = ['x-admin-key', 'authorization']
/** Without it the caller could read another deployment than expected. */
const EXPECTED = 'x-expected-deployment-id'
const TRACE = ['traceparent', 'tracestate']
/** Printable characters, as many as every participant must forward (W3C Trace Context, 3.3.1.5). */
const TRACE_STATE = /^[\x20-\x7e]{1,512}$/

/** The router of this process. It sees the caller's own credentials and address. */
export function routerSource({ prefix, fetch }: McpRouter): Source {
  return (route, caller, signal) => {
    const headers = new Headers([...caller.headers].filter(([name]) => !OF_THE_CARRIER.test(name)))
    return fetch(new Request(`http://localhost${prefix}${route}`, { headers, signal }), {
      remoteAddress: caller.remoteAddress,
    })
  }
}

/** The used part of a router. */
export interface McpRouter {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** `info`: as the host gave it with the caller's own request. */
  fetch(request: Request, info?: unknown): Promise<Response>
}

/** Whether the caller is not on this machine, or may not be. */
function isForeign({ headers, remoteAddress = null }: Caller): boolean {
  return isForwarded(headers.keys()) || (remoteAddress !== null && !isLoopbackAddress(remoteAddress))
}

/**
 * The router at `url`. It receives `key`, or else the caller's credentials, the deployment that the caller expects, its trace, and
 * for a remote caller a `Forwarded` header, because a router without a key would treat this process as a local caller.
 */
export function urlSource(url: string, key: string | null): Source {
  return (route, caller, signal) => {
    const headers = new Headers(key === null ? {} : { 'x-admin-key': key })
    for (const name of key === null ? [...CREDENTIALS, EXPECTED, ...TRACE] : [EXPECTED, ...TRACE]) {
      const value = caller.headers.get(name)
      if (value !== null) headers.set(name, value)
    }
    if (isForeign(caller)) headers.set('forwarded', 'for=unknown')
    return fetch(url + route, { headers, redirect: 'manual', signal })
  }
}

const problem = (words: string, status: number | null = null, code?: unknown): RouteResult => ({
  problem: words,
  status,
  code,
})

/** Of one who found no place to wait. */
export const TOO_MANY = 'too many requests are waiting: retry later'

async function fetchResult(source: Source, route: string, caller: Caller, signal: AbortSignal): Promise<RouteResult> {
  const response = await source(route, caller, signal)
  const body = await readObject(response, ANSWER_BYTES)
  if (!response.ok)
    return problem(escapeHiddenWithin(problemText(response.status, body), WORDS), response.status, body?.code)
  return body === undefined ? problem('the response is not from a router, or too large') : { value: body }
}

/**
 * Creates fetchers over `source`, with limits shared by all callers.
 *
 * @param ms Time limit of each read, including its wait.
 * @param failed Called with errors, which are not sent to the caller.
 */
export function createRouteFetcher(
  source: Source,
  ms: number,
  failed: (error: unknown) => void,
  { atOnce, waiting } = TOOLS,
) {
  const turns = createSemaphore(atOnce, waiting, () => undefined)
  const late = () => new Error(`no response within ${ms} ms`)

  return (caller: Caller): RouteFetcher =>
    async (route, callerSignal, meta = {}) => {
      const { signal, clear } = limitTime({ ms, late, signal: callerSignal })
      let isMine = false
      let turn: ReturnType<typeof turns.acquire>
      try {
        await raceAbort(
          new Promise<void>((resolve, reject) => {
            turn = turns.acquire(1, () => {
              isMine = true
              resolve()
            })
            if (turn === undefined) reject(new Error(TOO_MANY))
          }),
          signal,
        )
        return await raceAbort(fetchResult(source, route, traced(caller, meta), signal), signal)
      } catch (error) {
        if (signal.aborted) return problem(`no response within ${ms / 1_000} s`)
        if (turn === undefined) return problem(TOO_MANY)
        failed(error)
        return problem('no response')
      } finally {
        clear()
        if (isMine) turns.release()
        else if (turn !== undefined) turns.leave(turn)
      }
    }
}
