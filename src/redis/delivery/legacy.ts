/** Reads the backlog of the single command stream of an older installation. Never writes to it. */
import type { DeliverySummary, LegacyReason } from '../../contract/delivery.js'
import { NO_LEGACY } from '../../contract/delivery.js'
import { defineOptions, type Input, text } from '../../contract/options.js'
import type { InspectionContext } from '../../contract/page.js'
import { listOf, type StoreReply, WrongType } from '../store/reply.js'
import type { Store } from '../store/store.js'

/** An older command stream and the consumer group that processes it. */
export const LegacyStream = defineOptions({
  /** Key of the stream. */
  stream: text(),
  /** Name of its consumer group. */
  group: text(),
})
export interface LegacyStream extends Input<typeof LegacyStream> {}

type LegacyFields = Pick<DeliverySummary, keyof typeof NO_LEGACY>

const NO_SUCH_KEY = /no such key/
const MISSING = Symbol('missing')

const unknown = (legacy_reason: LegacyReason, depth: number | null = null): LegacyFields => ({
  ...NO_LEGACY,
  legacy_stream_depth: depth,
  legacy_reason,
})

/**
 * Returns depth, pending entries and lag of a legacy stream. Unknown values are `null` with a reason, and don't fail the rest of
 * the summary.
 */
export async function readLegacy(
  store: Store,
  legacy: LegacyStream | undefined,
  ctx: InspectionContext,
): Promise<LegacyFields> {
  if (!legacy) return NO_LEGACY
  const { stream, group } = legacy
  const [length, groups] = await Promise.all([
    attempt(store, ['XLEN', stream], stream, ctx),
    attempt(store, ['XINFO', 'GROUPS', stream], stream, ctx),
  ])
  // XLEN returns 0 for a stream that does not exist, which would look like an empty backlog.
  if (groups === MISSING) return unknown('stream_missing')
  const depth = numberOf(length)
  if (!Array.isArray(groups)) return unknown('unreadable', depth)
  const fields = groups.map(fieldsOf).find(({ name }) => name === group)
  if (!fields) return unknown('group_missing', depth)
  const [pending, lag] = [numberOf(fields.pending), numberOf(fields.lag)]
  return {
    legacy_stream_depth: depth,
    legacy_pending_depth: pending,
    legacy_stream_lag: lag,
    legacy_reason: depth === null || pending === null ? 'unreadable' : lag === null ? 'lag_unknown' : null,
  }
}

const numberOf = (reply: unknown) => (typeof reply === 'number' ? reply : null)

/** Parses a group of `XINFO GROUPS`, a list of alternating names and values. */
function fieldsOf(reply: StoreReply): Record<string, StoreReply> {
  const list = listOf(reply)
  return Object.fromEntries(
    list.flatMap((name, i) => (i % 2 === 0 ? [[String(name), list[i + 1] ?? null] as const] : [])),
  )
}

async function attempt(
  store: Store,
  args: string[],
  stream: string,
  ctx: InspectionContext,
): Promise<StoreReply | typeof MISSING> {
  try {
    return await store.command(args, stream, ctx)
  } catch (error) {
    if (ctx.signal.aborted) throw error
    if (error instanceof Error && NO_SUCH_KEY.test(error.message)) return MISSING
    store.onError(
      error instanceof WrongType ? new WrongType(`Expected ${stream} to hold a stream; it holds another type`) : error,
    )
    return null
  }
}
