/** The actions view: which actions are offered now, and by how many. */
import type * as z from 'zod'
import { Completeness } from '../contract/completeness.js'
import {
  type ActionFilter,
  ActionObservation,
  type ClientType,
  type RegistryInspector,
} from '../contract/connections.js'
import { compareIds } from '../contract/ids.js'
import { type PageQuery, pageOf } from '../contract/page.js'
import { completenessOf, examinedOf, failed, type Reading, readOnce, type ViewAsk, walk } from './reading.js'

/** A page of actions, ordered by name. */
export const ActionPage = pageOf(ActionObservation).extend({ completeness: Completeness })
export type ActionPage = z.infer<typeof ActionPage>

/** Actions of connected connections. `page.cursor` is the token of the page before: its last name. */
export async function listActions(
  registry: RegistryInspector,
  filter: ActionFilter,
  page: PageQuery,
  view: ViewAsk,
): Promise<ActionPage> {
  const listed = (await indexed(registry, filter, page, view)) ?? (await sampled(registry, filter, page, view))
  const { reading, ...actions } = listed
  return { ...actions, completeness: completenessOf([reading], view) }
}

interface Actions {
  items: ActionObservation[]
  next_cursor: string | null
  has_more: boolean
  omitted?: number
  reading: Reading
}

/** What the registry's own index says, or `null` where none answers. */
async function indexed(
  registry: RegistryInspector,
  filter: ActionFilter,
  page: PageQuery,
  view: ViewAsk,
): Promise<Actions | null> {
  if (!registry.listActions) return null
  const source = 'registry'
  const listed = await readOnce(source, () => registry.listActions?.(filter, page, view.ask), view)
  if ('value' in listed && listed.value === null) return null
  if ('error' in listed || !listed.value) {
    const error = 'error' in listed ? listed.error : new TypeError('listActions answered nothing')
    return { items: [], next_cursor: null, has_more: false, reading: failed(source, error) }
  }
  const { items, next_cursor, has_more, truncated, omitted = 0 } = listed.value
  const examined = examinedOf(listed.value, items.length)
  const reading = { source, examined, truncated: truncated === true || omitted > 0, failed: false } as const
  return { items, next_cursor, has_more, ...(omitted > 0 ? { omitted } : {}), reading }
}

interface Offer {
  connections: number
  users: Set<string>
  types: Set<ClientType>
}

async function sampled(
  registry: RegistryInspector,
  filter: ActionFilter,
  page: PageQuery,
  view: ViewAsk,
): Promise<Actions> {
  const offers = new Map<string, Offer>()
  const reading = await walk(
    'registry',
    (p, ask) => registry.listConnections(filter, p, ask),
    view,
    (connections) => {
      for (const { status, actions, user_id, client_type } of connections) {
        if (status !== 'connected') continue
        for (const name of new Set(actions)) {
          const offer = offers.get(name) ?? { connections: 0, users: new Set(), types: new Set() }
          offers.set(name, offer)
          offer.connections += 1
          offer.users.add(user_id)
          offer.types.add(client_type)
        }
      }
    },
  )
  const { cursor, limit } = page
  const names = [...offers.keys()].filter((name) => cursor === null || compareIds(name, cursor) > 0).sort(compareIds)
  const items = names.slice(0, limit).map((name): ActionObservation => {
    const { connections, users, types } = offers.get(name) as Offer
    return {
      name,
      // A connection carries names alone; descriptions come from a registry that lists its actions itself.
      description: null,
      parameters_schema: null,
      observed_connections: connections,
      observed_users: users.size,
      observed_client_types: [...types].sort(),
    }
  })
  const has_more = names.length > limit
  return { items, next_cursor: has_more ? (items.at(-1)?.name ?? null) : null, has_more, reading }
}
