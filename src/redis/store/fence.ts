/**
 * The latest time at which a write may run, by the clock of the store: never after the sender has given up.
 *
 * The store showed its reply at some instant before the reply arrived. So the reply minus the local time of arrival
 * gives a lower bound of the store's clock: a slow reply makes the fence earlier, never later. Scripts check it in
 * `fence.lua`.
 */
import { Refusal } from '../../internal/refusal.js'
import { Late, toUnknownOutcome } from './reply.js'

/**
 * How long a reading is used, in ms. Clocks drift apart by a few milliseconds in this time, even while they are slewed.
 */
const TRUSTED_MS = 10_000
/** Margin for the drift, and for timers that fire slightly early, in ms. */
const SLACK_MS = 10

export interface Fence {
  /**
   * Calls `send` with a fence for the local time `endsAt` (of `performance.now()`), and once more if it arrived too
   * late because the clock has jumped.
   *
   * @throws Refusal `unavailable` with outcome `not_run` if the clock cannot be read; errors of `send`.
   */
  run<T>(clock: number, endsAt: number, send: (ends: number) => Promise<T>): Promise<T>
}

interface Known {
  offset: number
  heardAt: number
}

/** Marks an error that occurred before the write was sent as `not_run`, whatever happened to the clock reading. */
export function beforeWrite(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.outcome === 'not_run') return error
  return new Refusal(error.code, error.detail, { cause: error, outcome: 'not_run' })
}

/**
 * Creates a fence from `readTime`, which reads one of the store's clocks and replies before the local time `endsAt`. A
 * Cluster has one clock per master.
 *
 * @param resends Whether the client resends commands whose reply was lost. Then a late arrival says nothing about an
 * earlier arrival of the same command.
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
      // Another caller's reading, which started earlier and so timed out earlier.
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
    // Both are lower bounds; the slower reply is the less precise one.
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
