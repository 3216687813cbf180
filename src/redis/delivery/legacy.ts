/** Looks at the single command stream of an installation that is being left behind, and never touches it. */
import { needed, optionsOf, TEXT } from '../../contract/options.js'
import type { Ask } from '../../contract/page.js'
import { type StoreReply, WrongType } from '../store/reply.js'
import type { Store } from '../store/store.js'

/** An older command stream and the consumer group that works on it. */
export interface LegacyStream {
  stream: string
  group: string
}

export const LEGACY_STREAM = optionsOf({ stream: needed(TEXT), group: needed(TEXT) })

/** Entries in the stream, and entries that its group has been handed and not acknowledged. `null` is unknown. */
interface LegacyDepths {
  depth: number | null
  pending: number | null
}

/**
 * A stream that does not exist holds nothing: that is 0. A group that does not exist on a stream that does is unknown,
 * as is everything that the store does not let us see; the rest of the summary is not harmed by it.
 */
export async function readLegacy(store: Store, legacy: LegacyStream | undefined, ask: Ask): Promise<LegacyDepths> {
  if (!legacy) return { depth: null, pending: null }
  const { stream, group } = legacy
  const [depth, summary] = await Promise.all([
    attempt(store, ['XLEN', stream], ask),
    attempt(store, ['XPENDING', stream, group], ask),
  ])
  const pending = Array.isArray(summary) ? summary[0] : null
  return {
    depth: typeof depth === 'number' ? depth : null,
    pending: typeof pending === 'number' ? pending : depth === 0 ? 0 : null,
  }
}

async function attempt(store: Store, args: string[], ask: Ask): Promise<StoreReply> {
  try {
    return await store.command(args, args[1] as string, ask)
  } catch (error) {
    if (ask.signal.aborted) throw error
    store.onError(
      error instanceof WrongType ? new WrongType(`${args[1]} should hold a stream, and holds something else`) : error,
    )
    return null
  }
}
