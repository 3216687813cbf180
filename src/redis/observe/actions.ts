/** Reads which actions are offered by how many, from counters that scripts keep as connections come and go. */
import type * as z from 'zod'
import {
  ActionDescriptor,
  type ActionFilter,
  type ActionObservation,
  ClientType,
  type Connection,
} from '../../contract/connections.js'
import { compareIds } from '../../contract/ids.js'
import type { Ask, Indexed, Page, PageQuery } from '../../contract/page.js'
import { shardOf } from '../keys.js'
import { count, scored, strings, total } from '../reply.js'
import type { Store } from '../store.js'
import { CONNECTIONS } from './connection-row.js'
import { BadRow, readIndex, readRows } from './rows.js'
import { allShards, readShards } from './shards.js'

const NAME = 'connections'

/** Lost connections that nobody has settled yet and that one answer subtracts at most: any writer settles them. */
const LOST_MAX = 500

const Latest = ActionDescriptor.pick({ description: true, parameters_schema: true })

type Who = ClientType | 'all'
const WHO: readonly Who[] = ['all', ...ClientType.options]

/** What one shard, or several together, say of one action. */
interface Offer {
  connections: Record<Who, number>
  users: Record<Who, number>
  latest: string | undefined
  latestAt: number
}

const none = (): Record<Who, number> => ({ all: 0, browser: 0, console: 0, mobile: 0, web: 0 })

/**
 * A page of actions by the UTF-8 bytes of their names; `page.cursor` is the last name of the page before. Exact, but
 * for more than 500 connections lost at once without any writer left to settle them.
 */
export async function listActions(
  store: Store,
  filter: ActionFilter,
  page: PageQuery,
  ask: Ask,
): Promise<Page<ActionObservation> & Indexed> {
  const { user_id, client_type } = filter
  const shards = user_id === undefined ? await allShards(store, ask) : [shardOf(user_id, await store.shards(ask))]
  const parts = user_id === undefined ? ['actions'] : ['actions-of', user_id]
  const from = page.cursor === null ? '-' : `(${page.cursor}`
  const limit = String(page.limit + 1)
  const { answers, truncated } = await readShards(shards, ask, async (shard) => {
    const range = ['ZRANGE', store.key(shard, NAME, ...parts), from, '+', 'BYLEX', 'LIMIT', '0', limit]
    const [lost, names] = await Promise.all([readLost(store, shard, ask), readIndex(store, range, ask)])
    return { shard, lost, names: strings(names) }
  })
  const names = [...new Set(answers.flatMap((answer) => answer.names))].sort(compareIds)
  const listed = names.slice(0, page.limit)
  const items = await Promise.all(
    listed.map(async (name) => {
      const offers = await Promise.all(
        answers.map(({ shard, lost }) => readOffer(store, shard, name, user_id, lost, ask)),
      )
      return toObservation(store, name, offers, user_id, client_type)
    }),
  )
  const has_more = names.length > listed.length
  return {
    items: items.filter((item) => item !== null),
    next_cursor: has_more ? (listed.at(-1) as string) : null,
    has_more,
    ...(truncated ? { truncated } : {}),
  }
}

type Lost = Pick<Connection, 'user_id' | 'client_type' | 'actions'>

/** Connections that have been lost since a writer last looked; those whose time runs out first are the first of `beats`. */
async function readLost(store: Store, shard: number, ask: Ask): Promise<Lost[]> {
  const range = ['ZRANGE', store.key(shard, NAME, 'beats'), '0', String(LOST_MAX - 1), 'WITHSCORES']
  const [now, beats] = await Promise.all([store.time(ask), readIndex(store, range, ask)])
  const due = scored(beats).filter(({ score }) => score <= now)
  const ids = due.map(({ member }) => member)
  const found = await readRows(store, CONNECTIONS, shard, ids, ask)
  return found
    .filter(({ row }) => row.ended_at === undefined && row.seen_at + row.lost_after_ms <= now)
    .map(({ row: { user_id, client_type, names } }) => ({ user_id, client_type, actions: names ?? [] }))
}

async function readOffer(
  store: Store,
  shard: number,
  name: string,
  userId: string | undefined,
  allLost: readonly Lost[],
  ask: Ask,
): Promise<Offer> {
  const lost = allLost.filter(({ user_id, actions }) => actions.includes(name) && (userId ?? user_id) === user_id)
  const lostUsers = [...new Set(lost.map(({ user_id }) => user_id))]
  const action = store.key(shard, NAME, 'action', name)
  const offers = store.key(shard, NAME, 'offers', name)
  const perUser = (user: string) => WHO.map((who) => `${who} ${user}`)
  const fields = (key: string, names: string[]) => readFields(store, key, names, ask)
  const [own, ofUsers, latest] = await Promise.all([
    fields(action, [...WHO.map((who) => `connections ${who}`), ...WHO.map((who) => `users ${who}`), 'latest_at']),
    Promise.all((userId === undefined ? lostUsers : [userId]).map((user) => fields(offers, perUser(user)))),
    userId === undefined ? fields(action, ['latest']) : fields(offers, [`latest ${userId}`]),
  ])
  const connections = none()
  const users = none()
  const numbers = userId === undefined ? own : (ofUsers[0] ?? [])
  WHO.forEach((who, i) => {
    connections[who] = count(numbers[i] ?? 0)
    users[who] = userId === undefined ? count(own[WHO.length + i] ?? 0) : Math.min(1, connections[who])
  })
  const remaining = new Map(lostUsers.map((user, i) => [user, (ofUsers[i] ?? []).map((n) => count(n ?? 0))]))
  for (const { user_id, client_type } of lost)
    for (const who of ['all', client_type] as const) {
      connections[who]--
      const left = remaining.get(user_id)
      const i = WHO.indexOf(who)
      if (left && --(left[i] as number) === 0) users[who]--
    }
  return { connections, users, latest: latest[0] ?? undefined, latestAt: count(own.at(-1) ?? 0) }
}

async function readFields(store: Store, key: string, names: string[], ask: Ask): Promise<(string | null)[]> {
  const reply = await readIndex(store, ['HMGET', key, ...names], ask)
  return names.map((_, i) => {
    const value = Array.isArray(reply) ? reply[i] : null
    return typeof value === 'string' ? value : null
  })
}

function toObservation(
  store: Store,
  name: string,
  offers: readonly Offer[],
  userId: string | undefined,
  type: ClientType | undefined,
): ActionObservation | null {
  const sum = (of: (offer: Offer) => number) => total(offers.map((offer) => Math.max(0, of(offer))))
  const who = type ?? 'all'
  const observed_connections = sum(({ connections }) => connections[who])
  if (observed_connections === 0) return null
  const types = ClientType.options.filter((option) => sum(({ connections }) => connections[option]) > 0)
  return {
    name,
    ...latestOf(store, name, offers),
    observed_connections,
    observed_users: userId === undefined ? sum(({ users }) => users[who]) : 1,
    observed_client_types: type ? [type] : types,
  }
}

/** The description of the latest connection, which need not have given one. */
function latestOf(store: Store, name: string, offers: readonly Offer[]): z.infer<typeof Latest> {
  const text = offers.reduce((a, b) => (b.latestAt > a.latestAt ? b : a)).latest
  if (text !== undefined)
    try {
      return Latest.parse(JSON.parse(text))
    } catch {
      store.report(new BadRow(`the description of an action (${name.length} characters) is no descriptor`))
    }
  return { description: null, parameters_schema: null }
}
