/** Follows contexts and windows: reports them to their registry while they exist, and closes them afterwards. */
import type { CloseResult } from '../../internal/async/deadline.js'
import { guardHook } from '../../internal/async/hook.js'
import { createTicker } from '../../internal/async/timer.js'
import { Refusal } from '../../internal/refusal.js'
import { createWriter, type PlugErrorPlace } from './writer.js'

/** How to report an entry whose owner is known. */
export interface Presence {
  /** The id and owner under which it is reported; a record written under another key is closed first. */
  readonly key: string
  report(): Promise<unknown>
  close(): Promise<unknown>
}

/** Resolves to how to report the entry; `null` if it is not followed. The result counts from when it is called. */
export type Learn = () => Promise<(() => Presence) | null>

export interface Followed {
  /** It is there, and something about it has changed. */
  changed(): void
  /** The entry has closed for good. */
  leave(): void
  /** Resolves again how to report the entry. */
  learn(how: Learn): Promise<void>
}

interface Entry {
  presence: Presence | undefined
  /** The last report that the registry has or may have: the last one it did not refuse. */
  written: Presence | undefined
  hasGone: boolean
  /**
   * Numbers of the latest `learn` call and of the one that produced `presence`: a late result does not replace a newer
   * one.
   */
  asked: number
  answered: number
}

interface PresenceFollowerParts {
  heartbeatMs: number
  maxFollowed: number
  /** Guarded. */
  report(error: unknown, place: PlugErrorPlace): void
  /** Called before each round of reports. */
  look(): void
}

const hasCode = (error: unknown, ...codes: string[]) => error instanceof Refusal && codes.includes(error.code)

/** For entries over `maxFollowed`, and for entries not known yet. */
export const NOT_FOLLOWED: Followed = { changed() {}, leave() {}, learn: async () => {} }

export function createPresenceFollower(parts: PresenceFollowerParts) {
  const { heartbeatMs, maxFollowed, report } = parts
  const entries = new Set<Entry>()
  /** Number of `entries` that are still there. */
  let there = 0
  const failed = (error: unknown) => report(error, { step: 'write' })
  const look = guardHook(parts.look, failed)
  const writer = createWriter<Entry>({ write, failed })
  const ticker = createTicker(tick, heartbeatMs)

  async function write(entry: Entry): Promise<void> {
    const { presence, written } = entry
    if (entry.hasGone || (written && presence && written.key !== presence.key)) {
      await written?.close()
      entry.written = undefined
    }
    if (entry.hasGone) entries.delete(entry)
    else if (presence) await tell(entry, presence)
  }

  /** Rejects if the store is down. */
  async function tell(entry: Entry, presence: Presence): Promise<void> {
    const before = entry.written
    // A report that fails may have been written, unless it was refused.
    entry.written = presence
    try {
      await presence.report()
    } catch (error) {
      const isForeign = hasCode(error, 'identity_conflict')
      const isRefused = isForeign || hasCode(error, 'invalid_input', 'payload_too_large')
      if (!isRefused && !hasCode(error, 'capacity_exceeded')) throw error
      // Another client's record is left alone; otherwise the last accepted report still holds.
      entry.written = isForeign ? undefined : before
      if (isRefused && entry.presence === presence) entry.presence = entry.written
      failed(error)
    }
  }

  function want(entry: Entry): void {
    if (entry.presence || entry.written) writer.want(entry)
  }

  function tick(): void {
    look()
    for (const entry of entries) want(entry)
  }

  function leave(entry: Entry): void {
    if (entry.hasGone) return
    entry.hasGone = true
    there--
    // An entry that cannot be closed ends by its lease; at most `maxFollowed` of those wait here.
    const isDone = !entry.written || entries.size > 2 * maxFollowed
    if (isDone && writer.forget(entry)) entries.delete(entry)
    else writer.want(entry)
  }

  async function learn(entry: Entry, how: Learn): Promise<void> {
    const turn = ++entry.asked
    try {
      const made = await how()
      if (entry.hasGone || turn < entry.answered) return
      entry.answered = turn
      if (made === null) return leave(entry)
      entry.presence = made()
      want(entry)
    } catch (error) {
      report(error, { step: 'identify' })
    }
  }

  ticker.start()
  return {
    follow(how: Learn): Followed {
      if (there >= maxFollowed) {
        report(new Refusal('capacity_exceeded', `${maxFollowed} are followed`), { step: 'identify' })
        return NOT_FOLLOWED
      }
      const entry: Entry = { presence: undefined, written: undefined, hasGone: false, asked: 0, answered: 0 }
      entries.add(entry)
      there++
      void learn(entry, how)
      return { changed: () => want(entry), leave: () => leave(entry), learn: (again) => learn(entry, again) }
    },
    /** Writes what waits, within 5 s, and reports nothing any more. */
    async close(): Promise<CloseResult> {
      ticker.stop()
      const ending = await writer.end()
      entries.clear()
      return ending
    },
  }
}
