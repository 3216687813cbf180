/** Follows what lives by being reported (contexts, windows) into its registry: reported while it is there, closed when it has gone. */
import type { Ending } from '../../async/ending.js'
import { guardHook } from '../../async/hook.js'
import { createTicker } from '../../async/timer.js'
import { Refusal } from '../../refusal.js'
import type { PlugErrorPlace } from './options.js'
import { createWriter } from './writer.js'

/** How one of them is told of, once it is known whose it is. */
export interface Presence {
  report(): Promise<unknown>
  close(): Promise<unknown>
}

/** Who says how one is told of; `null` for what is not followed. */
export type Learn = () => Presence | null | PromiseLike<Presence | null>

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
  hasGone: boolean
  isWritten: boolean
  isDue: boolean
}

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
const isFull = (error: unknown) => error instanceof Refusal && error.code === 'capacity_exceeded'

/** What is beyond the bound, or not known yet. */
export const NOBODY: Followed = { changed() {}, leave() {}, learn: async () => {} }

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
      if (entry.isWritten) await presence?.close()
      forget(entry)
      return
    }
    if (!presence || !entry.isDue) return
    entry.isDue = false
    entry.isWritten = true
    try {
      await presence.report()
    } catch (error) {
      entry.isDue = !isFinal(error)
      if (!isFinal(error) && !isFull(error)) throw error
      if (isFinal(error)) Object.assign(entry, { presence: undefined, isWritten: false })
      failed(error)
    }
  }

  function want(entry: Entry): void {
    entry.isDue = true
    if (entry.presence) writer.want(entry)
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
    if (!entry.isWritten && writer.forget(entry)) forget(entry)
    else want(entry)
    const [first] = left
    // Its lease ends it in the store.
    if (left.size > maxFollowed && first && writer.forget(first)) forget(first)
  }

  async function learn(entry: Entry, how: Learn): Promise<void> {
    try {
      const presence = await how()
      if (!entries.has(entry) || entry.hasGone) return
      if (presence === null) leave(entry)
      entry.presence = presence ?? entry.presence
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
      const entry: Entry = { presence: undefined, hasGone: false, isWritten: false, isDue: false }
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
