/** The idempotency keys of one process. */

import { utf8Length } from '../../internal/contract/ids.js'
import {
  checkAnswer,
  IDEMPOTENCY_KEPT_MS,
  IDEMPOTENCY_KEYS_MAX,
  type IdempotencyClaim,
  type IdempotencyStore,
  type Invocation,
  readClaim,
} from '../../internal/contract/invocations.js'
import { count, defineOptions, func, type Input, readOptions } from '../../internal/contract/options.js'
import { MaxHeap } from '../../internal/fair-share/fair-share.js'
import { Refusal } from '../../internal/refusal.js'
import { claimHeld, type HeldKey, hasEnded } from '../../internal/rules/idempotency.js'

// The idempotency keys of one process, with the share of each viewer.

interface Entry extends HeldKey, Pick<IdempotencyClaim, 'user_id' | 'session_id'> {
  readonly id: string
  answer: HeldKey['answer']
  bytes: number
}

/** The entries of one viewer, ordered by claim. */
interface Holder {
  bytes: number
  entries: Set<Entry>
  /** Entries with a stored answer, in the order of the answers. */
  answered: Set<Entry>
  sessions: Map<string, Set<Entry>>
}

// Size of an entry without its texts, in bytes.
const ENTRY_BYTES = 512

const idOf = ({ session_id, user_id, key }: IdempotencyClaim) => JSON.stringify([session_id, user_id, key])

/** Creates the index of viewers by the size of their share: a viewer with many entries evicts only its own. */
function createHolders() {
  const holders = new Map<string, Holder>()
  const byKeys = new MaxHeap<Holder>()
  /** Only viewers with an answer that can be dropped. */
  const byBytes = new MaxHeap<Holder>()
  return {
    get: (user: string) => holders.get(user),
    open(user: string): Holder {
      const holder = holders.get(user) ?? { bytes: 0, entries: new Set(), answered: new Set(), sessions: new Map() }
      holders.set(user, holder)
      return holder
    },
    /** Updates a viewer's place after its entries or their size have changed. */
    changed(user: string, holder: Holder): void {
      byKeys.weigh(holder, holder.entries.size)
      byBytes.weigh(holder, holder.answered.size > 0 ? holder.bytes : 0)
      if (holder.entries.size === 0) holders.delete(user)
    },
    mostKeys: () => byKeys.top(),
    mostBytes: () => byBytes.top(),
  }
}

interface EntriesOptions {
  keysPerViewer: number
  maxKeys: number
  maxBytes: number
  now: () => number
}

function createIdempotencyEntries({ keysPerViewer, maxKeys, maxBytes, now }: EntriesOptions) {
  // Ordered by claim.
  const entries = new Map<string, Entry>()
  const holders = createHolders()
  let bytes = 0

  function weigh(entry: Entry, more: number): void {
    const holder = holders.get(entry.user_id) as Holder
    entry.bytes += more
    bytes += more
    holder.bytes += more
    holders.changed(entry.user_id, holder)
  }

  function add(entry: Entry): Entry {
    const holder = holders.open(entry.user_id)
    entries.set(entry.id, entry)
    holder.entries.add(entry)
    holder.sessions.set(entry.session_id, (holder.sessions.get(entry.session_id) ?? new Set()).add(entry))
    weigh(entry, ENTRY_BYTES + 2 * entry.id.length)
    return entry
  }

  function drop(entry: Entry): void {
    const holder = holders.get(entry.user_id) as Holder
    const own = holder.sessions.get(entry.session_id)
    own?.delete(entry)
    if (own?.size === 0) holder.sessions.delete(entry.session_id)
    entries.delete(entry.id)
    holder.entries.delete(entry)
    holder.answered.delete(entry)
    weigh(entry, -entry.bytes)
  }

  function forgetOld(): void {
    for (const entry of entries.values()) {
      if (entry.at + IDEMPOTENCY_KEPT_MS > now()) return
      if (hasEnded(entry, now())) drop(entry)
    }
  }

  const firstEnded = (some: Iterable<Entry> | undefined) => {
    for (const entry of some ?? []) if (hasEnded(entry, now())) return entry
    return undefined
  }

  function makeRoom({ user_id, session_id }: IdempotencyClaim): void {
    const own = holders.get(user_id)?.sessions.get(session_id)
    if (own && own.size >= keysPerViewer) {
      const ended = firstEnded(own)
      if (!ended) throw new Refusal('capacity_exceeded', `${own.size} calls with keys are in progress`)
      drop(ended)
    }
    if (entries.size < maxKeys) return
    const ended = firstEnded(holders.mostKeys()?.entries)
    if (!ended) throw new Refusal('capacity_exceeded', `${entries.size} calls with keys are in progress`)
    drop(ended)
  }

  /** Drops the oldest answers of the largest share until the rest fits. Their keys stay. */
  function shed(): void {
    while (bytes > maxBytes) {
      const [entry] = holders.mostBytes()?.answered ?? []
      if (!entry) return
      const size = utf8Length(JSON.stringify(entry.answer))
      entry.answer = null
      holders.get(entry.user_id)?.answered.delete(entry)
      weigh(entry, -size)
    }
  }

  return {
    drop,
    forgetOld,

    find: (claim: IdempotencyClaim) => entries.get(idOf(claim)),

    /** Adds a new claim. @throws Refusal `capacity_exceeded` if all entries that could be evicted are still running. */
    open(claim: IdempotencyClaim): Entry {
      makeRoom(claim)
      const { user_id, session_id, fingerprint, attempt, lease_ms } = claim
      const at = now()
      const entry = { id: idOf(claim), user_id, session_id, fingerprint, attempt, at, until: at + lease_ms, bytes: 0 }
      return add({ ...entry, answer: undefined })
    },

    /** Stores the outcome of a call as long as there is room for it. */
    keep(entry: Entry, answer: Invocation | null): void {
      entry.answer = answer
      if (answer) {
        holders.get(entry.user_id)?.answered.add(entry)
        weigh(entry, utf8Length(JSON.stringify(answer)))
      }
      shed()
    },
  }
}

/** Options of `createIdempotencyStore`. */
export const IdempotencyStoreOptions = defineOptions({
  /** Maximum number of keys per viewer and session. @default 1000 */
  keysPerViewer: count(IDEMPOTENCY_KEYS_MAX),
  /** Maximum number of keys. Above it, the largest share loses its oldest ended key. @default 100000 */
  maxKeys: count(100_000),
  /**
   * Maximum size of all entries in bytes. Above it, the largest share loses its oldest answers, but not their keys.
   * @default 67108864
   */
  maxBytes: count(67_108_864),
  /** Returns the current time in epoch ms. @default a clock that ignores changes of the wall clock */
  now: func<() => number>().default(() => steadyNow),
})
/** Options of `createIdempotencyStore`. */
export interface IdempotencyStoreOptions extends Input<typeof IdempotencyStoreOptions> {}

/** Changes of the wall clock must not cause a call to run twice. */
const steadyNow = () => performance.timeOrigin + performance.now()

/**
 * Creates an idempotency store in memory. A claimed key identifies its call for ten minutes. Its answer may be dropped
 * earlier for lack of space; the outcome is reported as unknown then. A call never runs twice for lack of memory.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 * @example
 * createCooperativeSiteRouter({ ...ports, idempotency: createIdempotencyStore({ maxBytes: 16_777_216 }) })
 */
export function createIdempotencyStore(options: IdempotencyStoreOptions = {}): IdempotencyStore {
  const read = readOptions(IdempotencyStoreOptions, options)
  const entries = createIdempotencyEntries(read)

  const ofAttempt = (claim: IdempotencyClaim) => {
    const entry = entries.find(claim)
    return entry?.attempt === claim.attempt && entry.answer === undefined ? entry : undefined
  }

  return {
    async claim(given) {
      const claim = readClaim(given)
      entries.forgetOld()
      return claimHeld(entries.find(claim) ?? entries.open(claim), claim, read.now())
    },
    async keep(claim, answer) {
      const entry = ofAttempt(readClaim(claim))
      checkAnswer(answer)
      if (entry) entries.keep(entry, answer)
    },
    async release(claim) {
      const entry = ofAttempt(readClaim(claim))
      if (entry) entries.drop(entry)
    },
  }
}
