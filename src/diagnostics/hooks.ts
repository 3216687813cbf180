/** What a host hears of each request: one access record, and the errors that no client is shown. */
import { guardHook } from '../async/hook.js'

/** One authenticated request. Never holds a body, a header or a key. */
export interface AccessRecord {
  /** The name that the authenticator gave. */
  principal: string
  /** The route's path, or `null` where none matched. */
  route: string | null
  /** The filters that were given, typed; empty where the query was refused. */
  filters: Record<string, unknown>
  status: number
  duration_ms: number
  /** Items of a list, else `null`. */
  item_count: number | null
  /** Whether the answer says that it is complete; `null` where it says nothing about it. */
  complete: boolean | null
}

/** Where an error that was kept from the client came from. */
export interface ErrorPlace {
  /** The route's path, or `null` before one matched. */
  route: string | null
  /** The source that failed within an aggregate. */
  source?: string
}

export interface Hooks {
  /** Called once per authenticated request. What it throws changes no answer. */
  onAccess?: ((record: AccessRecord) => void) | undefined
  /** Called with whatever an inspector, an authenticator or a hook threw. What it throws changes no answer. */
  onError?: ((error: unknown, place: ErrorPlace) => void) | undefined
}

/** Hooks that never throw and never reject: what they do wrong ends here. */
export function guardHooks({ onAccess, onError }: Hooks) {
  const error = guardHook(onError)
  return { access: guardHook(onAccess, (thrown) => error(thrown, { route: null })), error }
}
