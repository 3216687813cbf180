/**
 * The store's clock for readers: read from time to time, and extrapolated with the local monotonic clock in between.
 */
import type { InspectionContext } from '../../contract/page.js'

/** How long a reading is used, in ms: two clocks drift apart by far less than a millisecond in this time. */
const TRUSTED_MS = 10_000
/** A reading that took longer than this is too imprecise to be reused, in ms. */
const PROMPT_MS = 100
/** Maximum number of attempts: `TIME` goes to a node of the client's choice, which on a Cluster may be down. */
const TRIES = 3

/**
 * Creates a clock from `readTime`, which reads the time from the store. After the first reply, readers get a time even
 * while the store does not reply: reading its data fails by itself.
 */
export function createStoreClock(
  readTime: (ctx?: InspectionContext) => Promise<number>,
): (ctx?: InspectionContext) => Promise<number> {
  let offset: number | undefined
  let requestedAt = Number.NEGATIVE_INFINITY

  async function read(ctx: InspectionContext | undefined, tries: number): Promise<number> {
    const sentAt = performance.now()
    try {
      const time = await readTime(ctx)
      const heardAt = performance.now()
      if (heardAt - sentAt > PROMPT_MS) return time
      offset = time - heardAt
      requestedAt = heardAt
      return time
    } catch (error) {
      if (ctx?.signal.aborted) throw error
      if (offset !== undefined) return Math.floor(offset + performance.now())
      if (tries === 1) throw error
      return read(ctx, tries - 1)
    }
  }

  return async (ctx) => {
    const at = performance.now()
    return offset !== undefined && at - requestedAt < TRUSTED_MS ? Math.floor(offset + at) : read(ctx, TRIES)
  }
}
