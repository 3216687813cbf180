/** Reads which actions are offered by how many, among connections that are connected now. */

import type * as z from 'zod'
import { ActionDescriptor, type ActionFilter, type ActionObservation, ClientType } from '../../contract/connections.js'
import { compareIds } from '../../contract/ids.js'
import { shown } from '../../contract/options.js'
import { type Ask, examinable, type Indexed, type Page, type PageQuery } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import { total } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import { allShards, readShards, shareOut } from '../table/shards.js'
import { countLivingOffers } from './living-offers.js'
import { describe, type Offer, readKeptOffers, type Who } from './offers.js'

const Latest = ActionDescriptor.pick({ description: true, parameters_schema: true })

/**
 * A page of actions by the UTF-8 bytes of their names; `page.cursor` is the last name of the page before. Exact, from
 * counters less what connections add that have been lost since a writer last looked; where those are many, from the
 * living ones. `truncated`: a shard was lost, or both are more than may be looked at, and numbers are those of a sample.
 */
export async function listActions(
  store: Store,
  filter: ActionFilter,
  page: PageQuery,
  ask: Ask,
): Promise<Page<ActionObservation> & Indexed> {
  const { user_id, client_type } = filter
  const shards = user_id === undefined ? await allShards(store, ask) : [shardOf(user_id, await store.shards(ask))]
  const now = await store.time(ask)
  const shares = shareOut(examinable(ask), Array(shards.length).fill(1))
  const { answers, truncated } = await readShards(shards, ask, async (shard) => {
    const most = shares[shards.indexOf(shard)] as number
    const query = { shard, user_id, after: page.cursor, now, most }
    return (
      (await readKeptOffers(store, { ...query, names: page.limit + 1 }, ask)) ?? countLivingOffers(store, query, ask)
    )
  })
  // Beyond the last name that a shard came to, what it offers is not known: the page ends there.
  const ends = answers.flatMap(({ end }) => (end === null ? [] : [end])).sort(compareIds)
  const known = (name: string) => ends[0] === undefined || compareIds(name, ends[0]) <= 0
  const names = [...new Set(answers.flatMap(({ offers }) => [...offers.keys()]))].filter(known).sort(compareIds)
  const listed = names.slice(0, page.limit)
  await Promise.all(answers.map((answer) => answer.isDescribed || describe(store, answer, listed, user_id, ask)))
  const offersOf = (name: string) => answers.flatMap(({ offers }) => offers.get(name) ?? [])
  const items = listed.map((name) => toObservation(store, name, offersOf(name), user_id, client_type, ask))
  const has_more = names.length > listed.length || ends.length > 0
  return {
    items: items.filter((item) => item !== null),
    next_cursor: has_more ? (listed.at(-1) as string) : null,
    has_more,
    examined: answers.reduce((sum, answer) => sum + answer.examined, 0),
    ...(truncated || answers.some((answer) => answer.isSample) ? { truncated: true } : {}),
  }
}

function toObservation(
  store: Store,
  name: string,
  offers: readonly Offer[],
  userId: string | undefined,
  type: ClientType | undefined,
  ask: Ask,
): ActionObservation | null {
  const who: Who = type ?? 'all'
  const observed_connections = total(offers.map(({ connections }) => connections[who]))
  if (observed_connections === 0) return null
  const isOffered = (option: ClientType) => offers.some(({ connections }) => connections[option] > 0)
  return {
    name,
    ...latestOf(store, name, offers, ask),
    observed_connections,
    observed_users: userId === undefined ? total(offers.map(({ users }) => users[who])) : 1,
    observed_client_types: type ? [type] : ClientType.options.filter(isOffered),
  }
}

/** The description of the latest connection, which need not have given one. */
function latestOf(store: Store, name: string, offers: readonly Offer[], ask: Ask): z.infer<typeof Latest> {
  const text = offers.reduce((a, b) => (b.latestAt > a.latestAt ? b : a)).latest
  if (text !== undefined)
    try {
      return Latest.parse(JSON.parse(text))
    } catch {
      store.onError(new BadRow(`the description of the action ${shown(name)} should be a descriptor, and is not`), ask)
    }
  return { description: null, parameters_schema: null }
}
