/** The hooks of the router: one access record per request, and errors that are not sent to the client. */

import { guardErrorHook, guardHook } from '../async/hook.js'
import type { RecordFault } from '../contract/bad-record.js'
import { createChannel } from '../contract/channels.js'
import { checkId } from '../contract/ids.js'
import { defineOptions, func, hook, type Input } from '../contract/options.js'

/** One request, as an audit trail keeps it. Never holds a body, a header or a key. */
export interface AccessRecord {
  /** When the request arrived, by the clock of the router (`now`): RFC 3339, UTC, milliseconds. */
  at: string
  /** The name that the authenticator returned; `null` if authentication failed. */
  principal: string | null
  /** HTTP method of the request. */
  method: string
  /** The route's path, or `null` where none matched. */
  route: string | null
  /** The path parameters, decoded; empty if the request failed before parameters were parsed. */
  params: Readonly<Record<string, string>>
  /**
   * The filters of the request, parsed, required ones too; empty if the request failed before they were parsed.
   */
  filters: Readonly<Record<string, unknown>>
  /** HTTP status of the response. */
  status: number
  /** Time from request to response, in ms. */
  duration_ms: number
  /** Items of a list, else `null`. */
  item_count: number | null
  /** Whether the response is complete; `null` if it does not say. */
  complete: boolean | null
  /** The remote address if the host provides it; behind a proxy it is the address of the proxy. */
  remote_address: string | null
  /** What `requestId` made of the request, where that can be an id; else `null`. */
  request_id: string | null
  /**
   * Unauthenticated requests since the previous record for which no record was made, because there were more than 100
   * in a second.
   */
  suppressed: number
}

/** Where an error that was kept from the client came from. */
export interface ErrorPlace extends Partial<RecordFault> {
  /** The route's path, or `null` before one matched. */
  route: string | null
  /** The inspector that it came from, by its capability, where it came from one. */
  source?: string
}

/** Hooks of the router. */
export const Hooks = defineOptions({
  /**
   * Called once per authenticated request, and for at most 100 unauthenticated requests per second. Errors that it throws don't
   * change the response.
   */
  onAccess: func<(record: AccessRecord) => void>().optional(),
  /**
   * Called with errors that an inspector, an authenticator or a hook throws, and with the `id` and `fields` of each record that
   * a response leaves out as invalid: at most 100 per request, then once with the number of the others; at most 100 per second for
   * unauthenticated requests. Errors that it throws don't change the response. `null` disables it.
   * @default console.error, with the place and the stack
   */
  onError: hook<(error: unknown, place: ErrorPlace) => void>(),
})
export interface Hooks extends Input<typeof Hooks> {}

const REQUEST = createChannel<AccessRecord>('relayscope:request')

// Unauthenticated requests cost their sender nothing and must not fill a log.
const UNAUTHENTICATED_PER_SECOND = 100

/** @returns a function that returns whether the limit of this second allows one more. */
function createBound() {
  let second = 0
  let admitted = 0
  return () => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) admitted = 0
    second = now
    return ++admitted <= UNAUTHENTICATED_PER_SECOND
  }
}

/** Wraps hooks so that they never throw or reject. */
export function guardHooks({ onAccess, onError }: Hooks) {
  const error = guardErrorHook(onError)
  const reportError = guardHook(onAccess, (thrown) => error(thrown, { route: null }))
  const admitsRecord = createBound()
  const admitsError = createBound()
  let suppressed = 0

  function access(record: Omit<AccessRecord, 'suppressed'>): void {
    if (record.principal === null && !admitsRecord()) return void suppressed++
    const whole = { ...record, suppressed }
    suppressed = 0
    if (REQUEST.hasSubscribers) REQUEST.publish(whole)
    reportError(whole)
  }

  /** Whether anything receives access records. */
  const hasAccessHook = () => onAccess != null || REQUEST.hasSubscribers

  /** Reports an error of an unauthenticated request. */
  function unauthenticatedError(thrown: unknown): void {
    if (admitsError()) error(thrown, { route: null })
  }

  return { access, hasAccessHook, error, unauthenticatedError }
}

/** Calls the host's `requestId`; `null` if it fails or returns an invalid id. */
export function requestIdOf(
  name: (request: Request) => unknown,
  request: Request,
  failed: (error: unknown) => void,
): string | null {
  try {
    const id = name(request)
    if (typeof id === 'string') return checkId(id) === undefined ? id : null
    // An async hook is too late, and its rejection must not end the process.
    Promise.resolve(id).catch(failed)
  } catch (error) {
    failed(error)
  }
  return null
}
