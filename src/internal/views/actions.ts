/** The actions view: which actions are offered now, and by how many. */
import type * as z from 'zod'
import { Completeness } from '../contract/capabilities.js'
import {
  type ActionFilter,
  ActionObservationAnswer,
  type ActionObservationInput,
  type ActionQuery,
  type ClientType,
  ConnectionAnswer,
  type RegistryInspector,
} from '../contract/connections.js'
import { compareIds } from '../contract/ids.js'
import { type InspectionContext, type Page, type PageQuery, pageSchema } from '../contract/page.js'
import { answerFrom, examinedOf, readOnce, type SourceReading, type ViewContext, walkEntries } from './reading.js'

/** A page of actions, ordered by name. */
export const ActionPage = pageSchema(ActionObservationAnswer)
  .extend({ completeness: Completeness.describe('What this response may be missing.') })
  .describe('One page of actions.')
/** The same as the view returns it, before its fields that are not known are filled in. */
export type ActionPage = z.input<typeof ActionPage>

/** Actions of connected connections. `page.cursor` is the token of the page before: its last name. */
export async function listActions(
  registry: RegistryInspector,
  { name_prefix, ...filter }: ActionQuery,
  { cursor, limit }: PageQuery,
  view: ViewContext,
): Promise<ActionPage> {
  const start = name_prefix === undefined ? null : justBefore(name_prefix)
  const page = { limit, cursor: cursor === null || (start !== null && compareIds(cursor, start) < 0) ? start : cursor }
  const indexed = readOnce(
    'registry',
    () => (registry.listActions ? registry.listActions(filter, page, view.ctx) : null),
    view,
    (listed) => examinedOf(listed, listed.items.length),
  )
  const reading = (await indexed) ?? (await readConnections(registry, filter, page, view))
  const { value, completeness } = answerFrom(reading, view, ({ omitted = 0 }) => omitted > 0)
  const { omitted = 0 } = value
  const { items, next_cursor, has_more } = name_prefix === undefined ? value : onlyWith(name_prefix, value)
  return { items, next_cursor, has_more, ...(omitted > 0 ? { omitted } : {}), completeness }
}

/** A text that is less than every text that begins with `prefix`, with nothing in use between them. */
function justBefore(prefix: string): string {
  const points = [...prefix]
  const last = (points.pop() as string).codePointAt(0) as number
  if (last === 0) return points.join('')
  // No surrogate is a character.
  const before = last === 0xe000 ? 0xd7ff : last - 1
  return `${points.join('')}${String.fromCodePoint(before)}\u{10ffff}`
}

/** `page` without names that do not begin with `prefix`; it ends where they end. */
function onlyWith<T extends { name: string }>(prefix: string, { items, next_cursor, has_more }: Page<T>) {
  const isOver = items.some(({ name }) => !name.startsWith(prefix) && compareIds(name, prefix) > 0)
  const own = items.filter(({ name }) => name.startsWith(prefix))
  return { items: own, next_cursor: isOver ? null : next_cursor, has_more: has_more && !isOver }
}

interface Offer {
  connections: number
  users: Set<string>
  types: Set<ClientType>
  /** Connections whose client type is not known. */
  untyped: number
}

/** The result of a walk over the connections. */
async function readConnections(
  registry: RegistryInspector,
  filter: ActionFilter,
  page: PageQuery,
  view: ViewContext,
): Promise<SourceReading<Page<ActionObservationInput>>> {
  const list = (query: PageQuery, ctx: InspectionContext) => registry.listConnections(filter, query, ctx)
  const reading = await walkEntries(
    'registry',
    { entry: ConnectionAnswer, id: 'connection_id', list },
    view,
    new Map<string, Offer>(),
    addOffers,
  )
  return { ...reading, value: reading.value && pageOfOffers(reading.value, page) }
}

function addOffers(offers: Map<string, Offer>, connections: readonly ConnectionAnswer[]): void {
  for (const { status, actions, user_id, client_type } of connections) {
    if (status !== 'connected') continue
    for (const name of new Set(actions)) {
      const offer = offers.get(name) ?? { connections: 0, users: new Set(), types: new Set(), untyped: 0 }
      offers.set(name, offer)
      offer.connections += 1
      offer.users.add(user_id)
      if (client_type === null) offer.untyped += 1
      else offer.types.add(client_type)
    }
  }
}

function pageOfOffers(offers: Map<string, Offer>, { cursor, limit }: PageQuery): Page<ActionObservationAnswer> {
  const names = [...offers.keys()].filter((name) => cursor === null || compareIds(name, cursor) > 0).sort(compareIds)
  const items = names.slice(0, limit).map((name): ActionObservationAnswer => {
    const { connections, users, types, untyped } = offers.get(name) as Offer
    return {
      name,
      // A connection carries names alone; descriptions come from a registry that lists its actions itself.
      description: null,
      parameters_schema: null,
      observed_connections: connections,
      observed_users: users.size,
      observed_client_types: [...types].sort(),
      observed_client_types_omitted: untyped > 0 ? null : 0,
    }
  })
  const has_more = names.length > limit
  return { items, next_cursor: has_more ? (items.at(-1)?.name ?? null) : null, has_more }
}
