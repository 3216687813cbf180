/** The idempotency keys that there are, with what each viewer holds of them, for the store of one process. */
import { IDEMPOTENCY_KEPT_MS, type IdempotencyClaim } from '../../contract/idempotency.js'
import { utf8Length } from '../../contract/ids.js'
import type { Invocation } from '../../contract/invocations.js'
import { Refusal } from '../../refusal.js'

export interface Entry extends Pick<IdempotencyClaim, 'user_id' | 'session_id' | 'fingerprint' | 'attempt'> {
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

const idOf = ({ session_id, user_id, key }: IdempotencyClaim) => JSON.stringify([session_id, user_id, key])

/** Whoever holds most: a crowd of one's own costs nobody else. */
function heaviestOf(holders: Iterable<Holder>, weight: (holder: Holder) => number): Holder | undefined {
  let most: Holder | undefined
  for (const holder of holders) if (!most || weight(holder) > weight(most)) most = holder
  return most
}

interface EntriesOptions {
  keysPerViewer: number
  maxKeys: number
  maxBytes: number
  now: () => number
}

export function createIdempotencyEntries({ keysPerViewer, maxKeys, maxBytes, now }: EntriesOptions) {
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

  function add(entry: Entry): Entry {
    const holder = holders.get(entry.user_id) ?? { bytes: 0, entries: new Set(), sessions: new Map() }
    holders.set(entry.user_id, holder)
    entries.set(entry.id, entry)
    holder.entries.add(entry)
    holder.sessions.set(entry.session_id, (holder.sessions.get(entry.session_id) ?? new Set()).add(entry))
    weigh(entry, ENTRY_BYTES + 2 * entry.id.length)
    return entry
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
    const ended = firstEnded(heaviestOf(holders.values(), (holder) => holder.entries.size)?.entries)
    if (!ended) throw new Refusal('capacity_exceeded', `${entries.size} calls with keys are under way`)
    drop(ended)
  }

  /** Forgets answers, the oldest of whoever holds most, until all that is kept fits. Their keys stay. */
  function shed(): void {
    while (bytes > maxBytes) {
      let shed = 0
      for (const entry of heaviestOf(holders.values(), (holder) => holder.bytes)?.entries ?? []) {
        if (!entry.answer) continue
        shed = utf8Length(JSON.stringify(entry.answer))
        entry.answer = null
        weigh(entry, -shed)
        break
      }
      if (shed === 0) return
    }
  }

  return {
    hasEnded,
    drop,
    forgetOld,

    find: (claim: IdempotencyClaim) => entries.get(idOf(claim)),

    /** Enters a claim that is new. @throws Refusal `capacity_exceeded` where all that would have to go is under way. */
    open(claim: IdempotencyClaim): Entry {
      makeRoom(claim)
      const { user_id, session_id, fingerprint, attempt, leaseMs } = claim
      const at = now()
      const entry = { id: idOf(claim), user_id, session_id, fingerprint, attempt, at, until: at + leaseMs, bytes: 0 }
      return add({ ...entry, answer: undefined })
    },

    /** Keeps what a call came to, as long as there is room for it. */
    keep(entry: Entry, answer: Invocation | null): void {
      entry.answer = answer
      if (answer) weigh(entry, utf8Length(JSON.stringify(answer)))
      shed()
    },
  }
}
