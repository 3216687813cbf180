/** Counts a shard's actions from the connections that are living: for where counters hold too much that is lost. */

import { compareIds } from '../../contract/ids.js'
import type { Ask } from '../../contract/page.js'
import type { Store } from '../store/store.js'
import { TURN_ROWS, takeTurn } from '../table/rows.js'
import { readSpans } from '../table/spans.js'
import { CONNECTIONS } from './format.js'
import { noOffer, type Offer, type OfferQuery, type Offers, type Who } from './offers.js'

export async function countLivingOffers(
  store: Store,
  { shard, user_id, after, now, most }: OfferQuery,
  ask: Ask,
): Promise<Offers> {
  const [index, from] = user_id === undefined ? [['beats'], `(${now}`] : [['user_id', user_id], '-inf']
  const { entries, isCut } = await readSpans(store, CONNECTIONS, shard, index, from, most, ask)
  const offers = new Map<string, Offer>()
  const users = new Map<string, Record<Who, Set<string>>>()
  for (const [i, { row }] of entries.entries()) {
    if (i % TURN_ROWS === TURN_ROWS - 1) await takeTurn(ask)
    const connection = row && CONNECTIONS.read(row, now)
    if (connection?.status !== 'connected' || (user_id ?? connection.user_id) !== connection.user_id) continue
    for (const name of new Set(connection.actions)) {
      if (after !== null && compareIds(name, after) <= 0) continue
      const offer = offers.get(name) ?? noOffer()
      const of = users.get(name) ?? noUsers()
      offers.set(name, offer)
      users.set(name, of)
      for (const who of ['all', connection.client_type] as const) {
        offer.connections[who]++
        offer.users[who] = of[who].add(connection.user_id).size
      }
    }
  }
  return {
    shard,
    offers,
    end: null,
    examined: entries.length,
    isSample: isCut || entries.some(({ isBad }) => isBad),
    isDescribed: false,
  }
}

const noUsers = (): Record<Who, Set<string>> => ({
  all: new Set(),
  browser: new Set(),
  console: new Set(),
  mobile: new Set(),
  web: new Set(),
})
