/** The viewer streams that are furthest behind: the order of a moment, of which there is no next page. */
import type * as z from 'zod'
import { Completeness } from '../contract/completeness.js'
import { compareIds } from '../contract/ids.js'
import { type Ask, type PageQuery, pageOf } from '../contract/page.js'
import { type SubscriptionFilter, type SubscriptionInspector, SubscriptionRow } from '../contract/subscriptions.js'
import { Refusal } from '../refusal.js'
import { answerOf, type ViewAsk, walk } from './reading.js'

/** A page of viewer streams. */
export const SubscriptionPage = pageOf(SubscriptionRow)
  .extend({
    completeness: Completeness.nullable().describe(
      'With `order=slowest`, what these are the slowest of: not complete where there are more streams than are shown, or than were looked at. `null` otherwise.',
    ),
  })
  .describe('One page of viewer streams.')
export type SubscriptionPage = z.infer<typeof SubscriptionPage>

/** Most pending first; of those that wait alike, whoever has lost more, then the older one. */
function bySlowness(a: SubscriptionRow, b: SubscriptionRow): number {
  if (a.pending !== b.pending) return b.pending - a.pending
  if (a.dropped !== b.dropped) return b.dropped - a.dropped
  if (a.opened_at !== b.opened_at) return a.opened_at < b.opened_at ? -1 : 1
  return compareIds(a.subscription_id, b.subscription_id)
}

/**
 * The slowest streams under `filter`, as many as a page holds, of those that a request may look at.
 *
 * @throws Refusal `invalid_cursor` for any cursor: while pages are turned the slow have become others.
 */
export async function listSlowest(
  subscriptions: SubscriptionInspector,
  filter: SubscriptionFilter,
  { limit, cursor }: PageQuery,
  view: ViewAsk,
): Promise<SubscriptionPage> {
  if (cursor !== null) throw new Refusal('invalid_cursor')
  const list = (page: PageQuery, ask: Ask) => subscriptions.listSubscriptions(filter, page, ask)
  const none: SubscriptionRow[] = []
  const reading = await walk(
    'subscriptions',
    { entry: SubscriptionRow, id: 'subscription_id', list },
    view,
    none,
    (all, rows) => {
      for (const row of rows) all.push(row)
    },
  )
  const { value, completeness } = answerOf(reading, view, (all) => all.length > limit)
  return { items: value.sort(bySlowness).slice(0, limit), next_cursor: null, has_more: false, completeness }
}
