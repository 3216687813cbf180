/** Reads the instants that an index keeps as scores. */
import type { InspectionContext } from '../../contract/page.js'
import { type StoreReply, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { BadRow } from './rows.js'
import { Millis } from './timestamp.js'

/**
 * The scores in an answer of `key`, in epoch ms; a score that is not an instant is skipped, and `onError` hears of it.
 *
 * @param except members whose scores are left out.
 */
export function timestampsOf(
  store: Store,
  key: string,
  reply: StoreReply,
  ctx: InspectionContext,
  except = new Set<string>(),
): number[] {
  const members = scored(reply).filter(({ member }) => !except.has(member))
  const read = members.map(({ score }) => Millis.safeParse(score))
  if (read.some(({ success }) => !success))
    store.onError(new BadRow(`${key} holds a score that is not an instant in epoch ms`), ctx)
  return read.flatMap(({ data }) => (data === undefined ? [] : [data]))
}
