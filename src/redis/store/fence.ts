/**
 * Until when a write may run, by the clock of the store: never after the instant at which its sender gives it up.
 *
 * What a clock answered it showed at some instant before the answer was heard, so the answer minus the local instant of
 * hearing it carries on a lower bound of that clock: a late answer makes the fence earlier, never later. Scripts check it by
 * `fence.lua`.
 */
import { Refusal } from '../../refusal.js'
import { Late, toUnknownOutcome } from './reply.js'

/** Two clocks drift apart by a few milliseconds in this time, slewed ones included. */
const TRUSTED_MS = 10_000
/** For the drift, and for a timer that fires a little before its time. */
const SLACK_MS = 10

export interface Fence {
  /**
   * Sends by a fence for the local instant `endsAt` (of `performance.now()`), and once more where it came too late
   * because the clock has jumped.
   *
   * @throws Refusal `unavailable` that was not run where the clock cannot be read; what `send` throws
   */
  run<T>(clock: number, endsAt: number, send: (ends: number) => Promise<T>): Promise<T>
}

interface Known {
  offset: number
  heardAt: number
}

/** What failed before the write was sent, whatever became of the reading of the clock. */
export function beforeWrite(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.outcome === 'not_run') return error
  return new Refusal(error.code, error.detail, { cause: error, outcome: 'not_run' })
}

/**
 * `readTime` asks one of the store's clocks, and answers by the local instant `endsAt`: a Cluster has one per master.
 *
 * @param resends Whether the client sends a command again whose reply was lost: then that it came too late says nothing of an
 *   earlier arrival.
 */
export function createFence(readTime: (clock: number, endsAt: number) => Promise<number>, resends = false): Fence {
  const clocks = new Map<number, Known>()
  const readings = new Map<number, { answer: Promise<Known>; endsAt: number }>()

  async function read(clock: number, endsAt: number): Promise<Known> {
    const time = await readTime(clock, endsAt)
    const heardAt = performance.now()
    const known = { offset: time - heardAt, heardAt }
    clocks.set(clock, known)
    return known
  }

  function readClock(clock: number, endsAt: number) {
    const answer = read(clock, endsAt).finally(() => readings.delete(clock))
    const reading = { answer, endsAt }
    readings.set(clock, reading)
    return reading
  }

  async function knownOf(clock: number, endsAt: number): Promise<Known> {
    const known = clocks.get(clock)
    if (known && performance.now() - known.heardAt < TRUSTED_MS) return known
    const others = readings.get(clock)
    const { answer, endsAt: until } = others ?? readClock(clock, endsAt)
    try {
      return await answer
    } catch (error) {
      // Somebody else's reading, who asked earlier and so gave up earlier.
      const isGivenUp = others !== undefined && performance.now() >= until && until + SLACK_MS < endsAt
      if (!isGivenUp) throw error
      return knownOf(clock, endsAt)
    }
  }

  async function at(clock: number, endsAt: number): Promise<number> {
    try {
      return Math.floor((await knownOf(clock, endsAt)).offset + endsAt - SLACK_MS)
    } catch (error) {
      throw beforeWrite(error)
    }
  }

  function hear(clock: number, time: number): void {
    const heardAt = performance.now()
    // Both are lower bounds; the answer that was under way for longer says less.
    const offset = Math.max(time - heardAt, clocks.get(clock)?.offset ?? Number.NEGATIVE_INFINITY)
    clocks.set(clock, { offset, heardAt })
  }

  return {
    async run(clock, endsAt, send) {
      try {
        return await send(await at(clock, endsAt))
      } catch (error) {
        if (!(error instanceof Late)) throw error
        hear(clock, error.time)
        try {
          return await send(await at(clock, endsAt))
        } catch (again) {
          throw resends ? toUnknownOutcome(again) : again
        }
      }
    },
  }
}
