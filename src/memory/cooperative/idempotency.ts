/** The idempotency keys of one process. */
import {
  IDEMPOTENCY_KEPT_MS,
  IDEMPOTENCY_KEYS_MAX,
  type IdempotencyClaim,
  type IdempotencyStore,
} from '../../contract/idempotency.js'
import { utf8Length } from '../../contract/ids.js'
import type { Invocation } from '../../contract/invocations.js'
import { resolveBounds } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'

export interface IdempotencyStoreOptions {
  /** Keys of one viewer in one session. @default 1000 */
  keysPerViewer?: number | undefined
  /** Keys in all; beyond, whoever holds most loses its oldest that has ended. @default 100000 */
  maxKeys?: number | undefined
  /** Bytes of all that is kept; beyond, whoever holds most loses its oldest answers, not their keys. @default 67108864 */
  maxBytes?: number | undefined
  /** Epoch ms. @default a clock that no wall clock moves */
  now?: (() => number) | undefined
}

interface Entry extends Pick<IdempotencyClaim, 'user_id' | 'session_id' | 'fingerprint' | 'attempt'> {
  id: string
  at: number
  /** Until when it may be under way. */
  until: number
  /** `undefined` while it runs. */
  answer: Invocation | null | undefined
  bytes: number
}

/** What one viewer holds, in the order of the claims. */
interface Holder {
  bytes: number
  entries: Set<Entry>
  sessions: Map<string, Set<Entry>>
}

// What an entry costs beside its texts.
const ENTRY_BYTES = 512

/** Whose wall clock is set back or ahead must not run a call twice. */
const steadyNow = () => performance.timeOrigin + performance.now()

const idOf = ({ session_id, user_id, key }: IdempotencyClaim) => JSON.stringify([session_id, user_id, key])

/**
 * Keys in memory. A key that has been claimed stands for its call for ten minutes; its answer may be forgotten earlier
 * where too much is kept, and then the outcome reads as unknown: the call never runs twice for want of memory.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 * @example
 * createCooperativeSiteRouter({ ...ports, idempotency: createIdempotencyStore({ maxBytes: 16_777_216 }) })
 */
export function createIdempotencyStore(options: IdempotencyStoreOptions = {}): IdempotencyStore {
  const { now = steadyNow } = options
  const { keysPerViewer, maxKeys, maxBytes } = resolveBounds(options, {
    keysPerViewer: IDEMPOTENCY_KEYS_MAX,
    maxKeys: 100_000,
    maxBytes: 67_108_864,
  })
  // In the order of the claims.
  const entries = new Map<string, Entry>()
  const holders = new Map<string, Holder>()
  let bytes = 0

  const hasEnded = (entry: Entry) => entry.answer !== undefined || entry.until <= now()

  function weigh(entry: Entry, more: number): void {
    entry.bytes += more
    bytes += more
    ;(holders.get(entry.user_id) as Holder).bytes += more
  }

  function add(entry: Entry): void {
    const holder = holders.get(entry.user_id) ?? { bytes: 0, entries: new Set(), sessions: new Map() }
    holders.set(entry.user_id, holder)
    entries.set(entry.id, entry)
    holder.entries.add(entry)
    holder.sessions.set(entry.session_id, (holder.sessions.get(entry.session_id) ?? new Set()).add(entry))
    weigh(entry, ENTRY_BYTES + 2 * entry.id.length)
  }

  function drop(entry: Entry): void {
    const holder = holders.get(entry.user_id) as Holder
    weigh(entry, -entry.bytes)
    entries.delete(entry.id)
    holder.entries.delete(entry)
    const own = holder.sessions.get(entry.session_id)
    own?.delete(entry)
    if (own?.size === 0) holder.sessions.delete(entry.session_id)
    if (holder.entries.size === 0) holders.delete(entry.user_id)
  }

  function forgetOld(): void {
    for (const entry of entries.values()) {
      if (entry.at + IDEMPOTENCY_KEPT_MS > now()) return
      if (hasEnded(entry)) drop(entry)
    }
  }

  /** Whoever holds most: a crowd of one's own costs nobody else. */
  function greediest(weight: (holder: Holder) => number): Holder | undefined {
    let most: Holder | undefined
    for (const holder of holders.values()) if (!most || weight(holder) > weight(most)) most = holder
    return most
  }

  const firstEnded = (some: Iterable<Entry> | undefined) => {
    for (const entry of some ?? []) if (hasEnded(entry)) return entry
    return undefined
  }

  function makeRoom({ user_id, session_id }: IdempotencyClaim): void {
    const own = holders.get(user_id)?.sessions.get(session_id)
    if (own && own.size >= keysPerViewer) {
      const ended = firstEnded(own)
      if (!ended) throw new Refusal('capacity_exceeded', `${own.size} calls with keys are under way`)
      drop(ended)
    }
    if (entries.size < maxKeys) return
    const ended = firstEnded(greediest((holder) => holder.entries.size)?.entries)
    if (!ended) throw new Refusal('capacity_exceeded', `${entries.size} calls with keys are under way`)
    drop(ended)
  }

  /** Forgets answers, the oldest of whoever holds most, until all that is kept fits. Their keys stay. */
  function shed(): void {
    while (bytes > maxBytes) {
      let shed = 0
      for (const entry of greediest((holder) => holder.bytes)?.entries ?? []) {
        if (!entry.answer) continue
        shed = utf8Length(JSON.stringify(entry.answer))
        entry.answer = null
        weigh(entry, -shed)
        break
      }
      if (shed === 0) return
    }
  }

  const ofAttempt = (claim: IdempotencyClaim) => {
    const entry = entries.get(idOf(claim))
    return entry?.attempt === claim.attempt && entry.answer === undefined ? entry : undefined
  }

  return {
    claim(claim) {
      forgetOld()
      const id = idOf(claim)
      const known = entries.get(id)
      if (known) {
        if (known.fingerprint !== claim.fingerprint) return { state: 'reused' }
        if (known.answer !== undefined) return { state: 'ended', answer: known.answer }
        if (known.attempt === claim.attempt) return { state: 'claimed', at: known.at }
        return hasEnded(known) ? { state: 'ended', answer: null } : { state: 'running' }
      }
      makeRoom(claim)
      const { user_id, session_id, fingerprint, attempt, leaseMs } = claim
      const at = now()
      add({ id, user_id, session_id, fingerprint, attempt, at, until: at + leaseMs, answer: undefined, bytes: 0 })
      return { state: 'claimed', at }
    },
    keep(claim, answer) {
      const entry = ofAttempt(claim)
      if (!entry) return
      entry.answer = answer
      if (answer) weigh(entry, utf8Length(JSON.stringify(answer)))
      shed()
    },
    release(claim) {
      const entry = ofAttempt(claim)
      if (entry) drop(entry)
    },
  }
}
