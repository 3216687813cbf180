/** The store's clock as a reader knows it: asked now and then, carried on by this machine's monotonic clock between. */
import type { InspectionContext } from '../../contract/page.js'

/** Two clocks drift apart by far less than a millisecond in this time. */
const TRUSTED_MS = 10_000
/** An answer that took longer says too little about which instant it speaks of, and is used once. */
const PROMPT_MS = 100
/** `TIME` goes to a node of the client's choice, which on a Cluster may be one that is lost. */
const TRIES = 3

/**
 * `readTime` asks the store. Once it has answered, a store that does not answer costs no reader the time: what it says of
 * its data is another matter.
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
