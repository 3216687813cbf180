/** What a store answers, in one shape whatever the client and its protocol, and what its errors mean. */
import { Refusal, type RefusalCode, type WriteOutcome } from '../../refusal.js'

/** A reply. Maps (RESP3) are flattened to name, value, name, value, as RESP2 has them. */
export type StoreReply = null | string | number | StoreReply[]

/** A key that holds another type than it should: somebody else wrote it. Readers skip it, and `onError` hears of it. */
export class WrongType extends Error {
  override readonly name = 'WrongType'
}

/** The store does not know the script (yet, or any more). */
export class UnknownScript extends Error {
  override readonly name = 'UnknownScript'
}

/** The script came after the instant at which its sender gives up, and did nothing. */
export class Late extends Refusal {
  /** What the clock of the shard showed, in epoch ms. */
  readonly time: number

  constructor(time: number, cause: unknown) {
    super('unavailable', 'the store was reached too late', { cause, outcome: 'not_run' })
    this.time = time
  }
}

/** The shard does not hold the number of shards that the script was sent with, and the script did nothing. */
export class OtherShards extends Refusal {
  constructor(cause: unknown) {
    super('unavailable', 'the number of shards was lost or changed', { cause, outcome: 'not_run' })
  }
}

/** `raw` as a `Reply`. */
export function toReply(raw: unknown): StoreReply {
  if (raw === null || raw === undefined) return null
  if (typeof raw === 'string' || typeof raw === 'number') return raw
  if (typeof raw === 'boolean' || typeof raw === 'bigint') return Number(raw)
  if (Array.isArray(raw)) return raw.map(toReply)
  if (raw instanceof Uint8Array) return new TextDecoder().decode(raw)
  if (raw instanceof Map) return [...raw].flat().map(toReply)
  if (raw instanceof Set) return [...raw].map(toReply)
  return Object.entries(raw).flat().map(toReply)
}

/** What a script answers that has something to say yes to. */
export const parseFlag = (reply: StoreReply): boolean => reply === 1

/** A text, or `null` for anything else. */
export const parseText = (reply: StoreReply | undefined): string | null => (typeof reply === 'string' ? reply : null)

/** A list, or an empty one for anything else. */
export const listOf = (reply: StoreReply | undefined): StoreReply[] => (Array.isArray(reply) ? reply : [])

/** For a script that says nothing. */
export const ignoreReply = (): void => {}

/** A reply that should be a list of strings; anything else is an empty one. */
export function strings(reply: StoreReply): string[] {
  return Array.isArray(reply) ? reply.filter((item) => typeof item === 'string') : []
}

/** RESP2 spells the endless scores as no number of JavaScript is spelled. */
function toScore(score: StoreReply | undefined): number {
  return score === 'inf' ? Number.POSITIVE_INFINITY : score === '-inf' ? Number.NEGATIVE_INFINITY : Number(score)
}

/** Members with their scores: RESP2 answers a flat list, RESP3 a list of pairs. */
export function scored(reply: StoreReply): { member: string; score: number }[] {
  const items = Array.isArray(reply) ? reply : []
  const pairs: { member: string; score: number }[] = []
  const add = (member: StoreReply | undefined, score: StoreReply | undefined) =>
    pairs.push({ member: String(member), score: toScore(score) })
  if (Array.isArray(items[0])) for (const item of items) Array.isArray(item) && add(item[0], item[1])
  else for (let i = 0; i + 1 < items.length; i += 2) add(items[i], items[i + 1])
  return pairs
}

/** A whole number from 0 that a record can carry, or 0 for anything else. */
export function count(reply: StoreReply): number {
  const number = Math.trunc(Number(reply))
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}

/** What `counts` make together, as far as a record can carry it. */
export function sumCounts(counts: readonly number[]): number {
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    counts.reduce((sum, one) => sum + one, 0),
  )
}

// Replies that say "not now" or "not you": the request was fine, this store cannot serve it.
const UNAVAILABLE =
  /^(LOADING|READONLY|NOPERM|NOAUTH|WRONGPASS|OOM|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNKILLABLE|MISCONF|NOREPLICAS|UNBLOCKED)\b/
/** Those that the store says before a command, or the first write of a script, has done anything. */
const NOT_RUN =
  /^(LOADING|READONLY|NOAUTH|WRONGPASS|OOM|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|MISCONF|NOREPLICAS|NOPERM)\b/
/** How the store marks what a script met while it ran. */
const INSIDE = / script: [0-9a-f]{40}/
/** A script that has written is refused nothing for want of memory, disk or replicas any more. */
const BEFORE_FIRST_WRITE = /^(READONLY|OOM|MISCONF|NOREPLICAS)\b/
/** What the clients throw instead of sending. */
const UNSENT = new Set(['ClientClosedError', 'ClientOfflineError'])
const REPLY = /^-?[A-Z][A-Z0-9]+\b/
/** How our scripts say no: `return redis.error_reply('REFUSE identity_conflict')`. */
const REFUSED = /^REFUSE ([a-z_]+)/
const LATE = /^LATE (\d+)/

/** Words that our scripts and their errors begin with. */
const OURS = /^(NOSCRIPT|WRONGTYPE|REFUSE|LATE|SHARDS) /
/** What clients put before the words of the store where they wrap its reply. */
const WRAPPING = /^(?:.*\bLast error: )?(?:[A-Za-z]*Error: )?/
/** Errors within errors: deep enough for every client, and never round in a circle. */
const DEPTH = 4

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).replace(WRAPPING, '')

/** The words of the store in what a client rejects with, wherever it put them; else the client's own. */
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

/** What fails where another arrival of the same command may have run. */
export function toUnknownOutcome(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.outcome !== 'not_run') return error
  return new Refusal(error.code, error.detail, { cause: error, outcome: 'unknown' })
}

/** What the store said to a part of a script, which has told of it and gone on. */
export const toScriptError = (text: string): Error => toError(new Error(text), true)

/**
 * What a rejection of the client means for a caller of ours. Whatever is not a reply of the store is `unavailable`, a
 * TypeError too: that is what the clients of a Cluster throw while they look for who has a slot.
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
    return new WrongType('a key holds another type than its command reads', { cause })
  if (message.startsWith('NOSCRIPT')) return new UnknownScript('script not cached', { cause })
  if (!REPLY.test(message) || UNAVAILABLE.test(message))
    return new Refusal('unavailable', message, { cause, outcome: outcomeOf(cause, message, isInside) })
  return new Error(`the store refused a command: ${message}`, { cause })
}
