/** Follows what lives by being reported (contexts, windows) into its registry: reported while it is there, closed when it has gone. */
import type { Ending } from '../../async/ending.js'
import { guardHook } from '../../async/hook.js'
import { createTicker } from '../../async/timer.js'
import { Refusal } from '../../refusal.js'
import type { PlugErrorPlace } from './options.js'
import { createWriter } from './writer.js'

/** How one of them is told of, once it is known whose it is. */
export interface Presence {
  /** What it is told of as, and whose: what has been written under another key is closed first. */
  readonly key: string
  report(): Promise<unknown>
  close(): Promise<unknown>
}

/** Who says how one is told of; `null` for what is not followed. What it makes counts from when it is called. */
export type Learn = () => Promise<(() => Presence) | null>

export interface Followed {
  /** It is there, and something about it has changed. */
  changed(): void
  /** It has gone for good. */
  leave(): void
  /** Asks once more how it is told of. */
  learn(how: Learn): Promise<void>
}

interface Entry {
  presence: Presence | undefined
  /** What the registry has, or may have: the last that it did not refuse. */
  written: Presence | undefined
  hasGone: boolean
  isDue: boolean
  /** Questions after how it is told of, and which of them the answer in hand is to: a late one does not undo a newer one's. */
  asked: number
  answered: number
}

/** One of which nobody knows yet how it is told of. */
const toEntry = (): Entry => ({
  presence: undefined,
  written: undefined,
  hasGone: false,
  isDue: false,
  asked: 0,
  answered: 0,
})

interface PresenceFollowerParts {
  heartbeatMs: number
  maxFollowed: number
  /** Guarded. */
  report(error: unknown, place: PlugErrorPlace): void
  /** Called before each round of reports. */
  look(): void
}

export interface PresenceFollower {
  follow(how: Learn): Followed
  /** Writes what waits, within 5 s, and reports nothing any more. */
  close(): Promise<Ending>
}

const FINAL = ['invalid_input', 'payload_too_large', 'identity_conflict']
const isFinal = (error: unknown) => error instanceof Refusal && FINAL.includes(error.code)
const isForeign = (error: unknown) => error instanceof Refusal && error.code === 'identity_conflict'
const isFull = (error: unknown) => error instanceof Refusal && error.code === 'capacity_exceeded'

/** What is beyond the bound, or not known yet. */
export const NOBODY: Followed = { changed() {}, leave() {}, learn: async () => {} }

/** Reports `presence`, which the registry then has of `entry` unless it refuses it. Rejects where the store is not there. */
async function tell(entry: Entry, presence: Presence, failed: (error: unknown) => void): Promise<void> {
  const before = entry.written
  entry.isDue = false
  // Whether a report that fails was written, nobody knows, unless it was refused.
  entry.written = presence
  try {
    await presence.report()
  } catch (error) {
    const isRefused = isFinal(error)
    entry.isDue ||= !isRefused
    if (!isRefused && !isFull(error)) throw error
    // What is another client's is nothing of ours; else what was last said of it and taken still holds.
    entry.written = isForeign(error) ? undefined : before
    if (isRefused && entry.presence === presence) entry.presence = entry.written
    failed(error)
  }
}

export function createPresenceFollower(parts: PresenceFollowerParts): PresenceFollower {
  const { heartbeatMs, maxFollowed, report } = parts
  const entries = new Set<Entry>()
  /** Those of `entries` that have gone; the first of them left first. */
  const left = new Set<Entry>()
  const failed = (error: unknown) => report(error, { step: 'write' })
  const look = guardHook(parts.look, failed)
  const writer = createWriter<Entry>({ write, failed, returned: reportAll })
  const ticker = createTicker(tick, heartbeatMs)

  function forget(entry: Entry): void {
    entries.delete(entry)
    left.delete(entry)
  }

  async function write(entry: Entry): Promise<void> {
    const { presence } = entry
    if (entry.hasGone) {
      await entry.written?.close()
      forget(entry)
      return
    }
    if (!presence || !entry.isDue) return
    if (entry.written && entry.written.key !== presence.key) {
      await entry.written.close()
      entry.written = undefined
    }
    await tell(entry, presence, failed)
  }

  function want(entry: Entry): void {
    entry.isDue = true
    if (entry.presence || entry.written) writer.want(entry)
  }

  function reportAll(): void {
    for (const entry of entries) want(entry)
  }

  function tick(): void {
    look()
    reportAll()
    writer.retryRested()
  }

  function leave(entry: Entry): void {
    if (entry.hasGone) return
    entry.hasGone = true
    left.add(entry)
    if (!entry.written && writer.forget(entry)) forget(entry)
    else want(entry)
    const [first] = left
    // Its lease ends it in the store.
    if (left.size > maxFollowed && first && writer.forget(first)) forget(first)
  }

  async function learn(entry: Entry, how: Learn): Promise<void> {
    const turn = ++entry.asked
    try {
      const made = await how()
      if (!entries.has(entry) || entry.hasGone || turn < entry.answered) return
      entry.answered = turn
      if (made === null) {
        leave(entry)
        return
      }
      entry.presence = made()
      want(entry)
    } catch (error) {
      report(error, { step: 'identify' })
    }
  }

  ticker.start()
  return {
    follow(how) {
      if (entries.size - left.size >= maxFollowed) {
        report(new Refusal('capacity_exceeded', `${maxFollowed} are followed`), { step: 'identify' })
        return NOBODY
      }
      const entry = toEntry()
      entries.add(entry)
      void learn(entry, how)
      return {
        changed: () => want(entry),
        leave: () => leave(entry),
        learn: (again) => learn(entry, again),
      }
    },
    async close() {
      ticker.stop()
      const ending = await writer.end()
      entries.clear()
      left.clear()
      return ending
    },
  }
}
