/** Lists the actions that connected clients offer, computed from the connections, within the scan limit. */

import * as z from 'zod'
import { shown } from '../../contract/checks.js'
import { ActionDescriptor, type ActionFilter, type ActionObservation, ClientType } from '../../contract/connections.js'
import { compareIds } from '../../contract/ids.js'
import { type Indexed, type InspectionContext, type Page, type PageQuery, scanLimit } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { BadRow, TURN_ROWS, yieldTurn } from '../table/rows.js'
import { allShards, readShards, shareOut } from '../table/shards.js'
import { readSpans } from '../table/spans.js'
import { CONNECTIONS } from './format.js'

const Descriptions = z.record(z.string(), ActionDescriptor.pick({ description: true, parameters_schema: true }))
type Description = z.infer<typeof Descriptions>[string]

/** An action with the connections of all shards that offer it. */
interface Offer {
  connections: number
  users: Set<string>
  types: Set<ClientType>
  /** Time at which the latest connection that offers it connected, and that connection's descriptions as JSON. */
  latestAt: number
  latest: string | undefined
}

/**
 * Returns a page of actions, ordered by the UTF-8 bytes of their names; `page.cursor` is the last name of the previous
 * page. `truncated`: a shard is down, or there are more connections than the scan limit and this is a sample.
 */
export async function listActions(
  store: Store,
  { user_id, client_type }: ActionFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<ActionObservation> & Indexed> {
  const shards = user_id === undefined ? await allShards(store, ctx) : [shardOf(user_id, await store.shards(ctx))]
  const now = await store.time(ctx)
  const shares = shareOut(scanLimit(ctx), Array(shards.length).fill(1))
  const offers = new Map<string, Offer>()
  const { answers, truncated } = await readShards(shards, ctx, async (shard) => {
    const most = shares[shards.indexOf(shard)] as number
    if (most === 0) return { examined: 0, isSample: true }
    const [index, from] = user_id === undefined ? [['beats'], `(${now}`] : [['user_id', user_id], '-inf']
    const { entries, isTruncated } = await readSpans(store, CONNECTIONS, shard, index, from, most, ctx)
    for (const [n, { row }] of entries.entries()) {
      if (n % TURN_ROWS === TURN_ROWS - 1) await yieldTurn(ctx)
      const connection = row && CONNECTIONS.read(row, now)
      if (!row || connection?.status !== 'connected' || (user_id ?? connection.user_id) !== connection.user_id) continue
      const isCounted = client_type === undefined || connection.client_type === client_type
      for (const name of new Set(connection.actions)) {
        if (page.cursor !== null && compareIds(name, page.cursor) <= 0) continue
        const offer = offers.get(name) ?? noOffer()
        offers.set(name, offer)
        if (row.connected_at >= offer.latestAt)
          Object.assign(offer, { latestAt: row.connected_at, latest: row.described })
        if (!isCounted) continue
        offer.connections += 1
        offer.users.add(connection.user_id)
        offer.types.add(connection.client_type)
      }
    }
    return { examined: entries.length, isSample: isTruncated || entries.some(({ isBad }) => isBad) }
  })
  const counted = [...offers].filter(([, { connections }]) => connections > 0)
  const names = counted.map(([name]) => name).sort(compareIds)
  const listed = names.slice(0, page.limit)
  const has_more = names.length > listed.length
  const items = listed.map((name): ActionObservation => {
    const { connections, users, types, latest } = offers.get(name) as Offer
    return {
      name,
      ...describe(store, name, latest, ctx),
      observed_connections: connections,
      observed_users: users.size,
      observed_client_types: ClientType.options.filter((type) => types.has(type)),
    }
  })
  return {
    items,
    next_cursor: has_more ? (listed.at(-1) as string) : null,
    has_more,
    examined: answers.reduce((sum, { examined }) => sum + examined, 0),
    ...(truncated || answers.some(({ isSample }) => isSample) ? { truncated: true } : {}),
  }
}

const noOffer = (): Offer => ({
  connections: 0,
  users: new Set(),
  types: new Set(),
  latestAt: Number.NEGATIVE_INFINITY,
  latest: undefined,
})

/** Returns the description that the latest connection gave, if it gave one. */
function describe(store: Store, name: string, latest: string | undefined, ctx: InspectionContext): Description {
  const none = { description: null, parameters_schema: null }
  if (!latest) return none
  try {
    const described = Descriptions.parse(JSON.parse(latest))
    return (Object.hasOwn(described, name) && described[name]) || none
  } catch {
    store.onError(new BadRow(`invalid stored descriptor of the action ${shown(name)}`), ctx)
    return none
  }
}
