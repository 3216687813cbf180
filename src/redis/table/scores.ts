/** Reads timestamps that an index stores as scores. */
import type { InspectionContext } from '../../contract/page.js'
import { type StoreReply, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { BadRow } from './rows.js'
import { Millis } from './timestamp.js'

/**
 * Returns the scores in the reply of `key`, in epoch ms. Invalid scores are skipped and reported to `onError`.
 *
 * @param except Members to leave out.
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
    store.onError(new BadRow(`${key} holds a score that is not a timestamp in epoch ms`), ctx)
  return read.flatMap(({ data }) => (data === undefined ? [] : [data]))
}
