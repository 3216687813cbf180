/** Normalises replies and errors of a store, whatever the client and the protocol version. */
import { Refusal, type RefusalCode, type WriteOutcome } from '../../internal/refusal.js'

/** A reply. Maps (RESP3) are flattened to name, value, name, value, as in RESP2. */
export type StoreReply = null | string | number | StoreReply[]

/** A key has an unexpected type: it was written by something else. Readers skip it and call `onError`. */
export class WrongType extends Error {
  override readonly name = 'WrongType'
}

/** The store does not have the script cached. */
export class UnknownScript extends Error {
  override readonly name = 'UnknownScript'
}

/** The script arrived after its sender had given up, and did nothing. */
export class Late extends Refusal {
  /** Time of the shard's clock, in epoch ms. */
  readonly time: number

  constructor(time: number, cause: unknown) {
    super('unavailable', 'the command reached the store after its deadline', { cause, outcome: 'not_run' })
    this.time = time
  }
}

/** The shard has another number of shards stored than the sender uses. The script did nothing. */
export class OtherShards extends Refusal {
  constructor(cause: unknown) {
    super('unavailable', 'the stored number of shards is missing or has changed', { cause, outcome: 'not_run' })
  }
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Converts a reply of any client to a `StoreReply`.
 *
 * @param isText Whether strings of `raw` are numbers, because the client returns all strings as bytes.
 */
export function toReply(raw: unknown, isText = false): StoreReply {
  if (raw === null || raw === undefined) return null
  if (typeof raw === 'string') return isText && !Number.isNaN(Number(raw)) ? Number(raw) : raw
  if (typeof raw === 'number') return raw
  if (typeof raw === 'boolean' || typeof raw === 'bigint') return Number(raw)
  if (raw instanceof Uint8Array) return utf8.decode(raw)
  const items =
    Array.isArray(raw) || raw instanceof Set ? [...raw] : [...(raw instanceof Map ? raw : Object.entries(raw))].flat()
  return items.map((item) => toReply(item, isText))
}

/** Reads the reply of a script that returns a boolean. */
export const parseFlag = (reply: StoreReply): boolean => reply === 1

/** Returns a string, or `null` for anything else. */
export const parseText = (reply: StoreReply | undefined): string | null => (typeof reply === 'string' ? reply : null)

/** Returns a list, or an empty list for anything else. */
export const listOf = (reply: StoreReply | undefined): StoreReply[] => (Array.isArray(reply) ? reply : [])

/** Reads the reply of a script that returns nothing. */
export const ignoreReply = (): void => {}

/** Returns the strings of a list, or an empty list for anything else. */
export function strings(reply: StoreReply): string[] {
  return Array.isArray(reply) ? reply.filter((item) => typeof item === 'string') : []
}

/** Parses a score: RESP2 writes infinite scores in a form that `Number` does not accept. */
function toScore(score: StoreReply | undefined): number {
  return score === 'inf' ? Number.POSITIVE_INFINITY : score === '-inf' ? Number.NEGATIVE_INFINITY : Number(score)
}

/** Returns members with their scores: RESP2 returns a flat list, RESP3 a list of pairs. */
export function scored(reply: StoreReply): { member: string; score: number }[] {
  const items = Array.isArray(reply) ? reply : []
  const pairs: { member: string; score: number }[] = []
  const add = (member: StoreReply | undefined, score: StoreReply | undefined) =>
    pairs.push({ member: String(member), score: toScore(score) })
  if (Array.isArray(items[0])) for (const item of items) Array.isArray(item) && add(item[0], item[1])
  else for (let i = 0; i + 1 < items.length; i += 2) add(items[i], items[i + 1])
  return pairs
}

/** Returns a non-negative safe integer, or 0 for anything else. */
export function count(reply: StoreReply): number {
  const number = Math.trunc(Number(reply))
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** Returns the sum of `counts`, at most the largest safe integer. */
export function sumCounts(counts: readonly number[]): number {
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    counts.reduce((sum, one) => sum + one, 0),
  )
}

// Errors that mean "not now" or "not this node": the request was valid, but this store cannot serve it.
const UNAVAILABLE =
  /^(?:(?:LOADING|READONLY|NOPERM|NOAUTH|WRONGPASS|OOM|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNKILLABLE|MISCONF|NOREPLICAS|UNBLOCKED)\b|ERR unknown command ['`])/
/** Errors that the store returns before a command, or the first write of a script, has done anything. */
const NOT_RUN =
  /^(?:(?:LOADING|READONLY|NOAUTH|WRONGPASS|OOM|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|MISCONF|NOREPLICAS|NOPERM)\b|ERR unknown command ['`])/
/** How the store marks errors inside a running script. */
const INSIDE = / script: [0-9a-f]{40}/
/** After its first write, a script can no longer fail for lack of memory, disk or replicas. */
const BEFORE_FIRST_WRITE = /^(READONLY|OOM|MISCONF|NOREPLICAS)\b/
/** Names of errors that clients throw without sending the command. */
const UNSENT = new Set(['ClientClosedError', 'ClientOfflineError'])
const REPLY = /^-?[A-Z][A-Z0-9]+\b/
/** How scripts of this library refuse a request: `return redis.error_reply('REFUSE identity_conflict')`. */
const REFUSED = /^REFUSE ([a-z_]+)/
const LATE = /^LATE (\d+)/

/** Prefixes of errors that this library handles. */
const OURS = /^(NOSCRIPT|WRONGTYPE|REFUSE|LATE|SHARDS) /
/** Text that clients add before the store's message when they wrap an error. */
const WRAPPING = /^(?:.*\bLast error: )?(?:[A-Za-z]*Error: )?/
/** Maximum depth of nested errors: enough for every client, and a guard against cycles. */
const DEPTH = 4

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).replace(WRAPPING, '')

/** Returns the store's message from a client's error, wherever the client put it, or `undefined`. */
function errorText(error: unknown, depth = DEPTH): string | undefined {
  const message = messageOf(error)
  if (OURS.test(message) || UNAVAILABLE.test(message)) return message
  if (depth === 0 || error === null || typeof error !== 'object') return undefined
  const { cause, lastNodeError, errors } = error as { cause?: unknown; lastNodeError?: unknown; errors?: unknown }
  for (const inner of [cause, lastNodeError, ...(Array.isArray(errors) ? errors : [])]) {
    const text = inner === undefined || inner === null ? undefined : errorText(inner, depth - 1)
    if (text !== undefined) return text
  }
  return undefined
}

function outcomeOf(error: unknown, message: string, isInside: boolean): WriteOutcome {
  if (error instanceof Error && UNSENT.has(error.name)) return 'not_run'
  const isBefore = isInside ? BEFORE_FIRST_WRITE.test(message) : NOT_RUN.test(message)
  return isBefore ? 'not_run' : 'unknown'
}

/** Returns the error with outcome `unknown`, for a command of which an earlier arrival may have run. */
export function toUnknownOutcome(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.outcome !== 'not_run') return error
  return new Refusal(error.code, error.detail, { cause: error, outcome: 'unknown' })
}

/** Whether `error` is the store's own reply; otherwise the reply was lost, or the command was not sent. */
export const isErrorReply = (error: unknown): boolean =>
  !(error instanceof Refusal && error.code === 'unavailable') || REPLY.test(error.detail ?? '')

/** Returns the error for a message that a script caught in one of its steps and reported in its reply. */
export const toScriptError = (text: string): Error => toError(new Error(text), true)

/**
 * Converts an error of a client. Anything that is not an error reply of the store becomes `unavailable`, including a
 * TypeError: Cluster clients throw that while they discover which node has a slot.
 */
export function toError(cause: unknown, isInScript = false): Error {
  if (cause instanceof Refusal) return cause
  const message = errorText(cause) ?? messageOf(cause)
  const isInside = isInScript || INSIDE.test(message)
  const refused = REFUSED.exec(message)
  if (refused) return new Refusal(refused[1] as RefusalCode)
  const late = LATE.exec(message)
  if (late) return new Late(Number(late[1]), cause)
  if (message.startsWith('SHARDS ')) return new OtherShards(cause)
  if (message.startsWith('WRONGTYPE'))
    return new WrongType('a key holds another type than its command expects', { cause })
  if (message.startsWith('NOSCRIPT')) return new UnknownScript('script not cached', { cause })
  if (!REPLY.test(message) || UNAVAILABLE.test(message))
    return new Refusal('unavailable', message, { cause, outcome: outcomeOf(cause, message, isInside) })
  return new Error(`the store rejected a command: ${message}`, { cause })
}
