/** Contract suite of the connection registry's inspector. */

import {
  ActionObservationAnswer,
  type ActionObservationInput,
  type ChurnFilter,
  type ChurnMinuteInput,
  ClientEventAnswer,
  ClientEventFilter,
  type ClientEventInput,
  ClientType,
  CONNECTION_FAMILY,
  ConnectionAnswer,
  ConnectionChurnAnswer,
  type ConnectionChurnInput,
  ConnectionEventAnswer,
  type ConnectionEventInput,
  ConnectionFilter,
  type ConnectionInput,
  type RegistryInspector,
} from '../internal/contract/connections.js'
import { compareIds } from '../internal/contract/ids.js'
import { hasAll, type KnownAction, pageOfActions } from '../internal/contract/rows.js'
import { answering, type Known } from './answering.js'
import { countCases } from './counts.js'
import {
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
  checkKnown,
  checkMinutes,
  checkSchema,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  INSTANCE,
  type Make,
  notTested,
  type Partly,
  toCases,
  wholeRecords,
} from './expect.js'
import { filtersIn, listCases, type MakeInspector, NO_PAGE, UNKNOWN_ID, userCases, walk, walkAll } from './lists.js'

// Suite and fake of the connections that opened and ended per minute.

type Counts = Pick<ChurnMinuteInput, 'opened' | 'ended'>

/** Returns the sum of several counts, `null` if one is not known. */
function sum(parts: readonly Counts[]): Required<Counts> {
  const ended = new Map<string, number>()
  for (const part of parts)
    for (const [reason, count] of Object.entries(part.ended ?? {})) ended.set(reason, (ended.get(reason) ?? 0) + count)
  const isKnown = (name: keyof Counts) => parts.every((part) => part[name] !== null)
  const opened = isKnown('opened') ? parts.reduce((all, part) => all + (part.opened ?? 0), 0) : null
  const ends = Object.fromEntries([...ended].filter(([, count]) => count > 0).sort())
  return { opened, ended: isKnown('ended') ? ends : null }
}

async function checkChurn(make: MakeInspector<Known<RegistryInspector>>): Promise<void> {
  const registry = await make()
  if (!registry?.connectionChurn) return notTested('connectionChurn is not implemented')
  const churnOf = async (filter: ChurnFilter) => {
    const churn = await registry.connectionChurn?.(filter, CONTEXT)
    checkSchema(ConnectionChurnAnswer, churn, 'connectionChurn')
    return churn as ConnectionChurnAnswer
  }
  const { items, observed_at } = await churnOf({})
  checkMinutes({ items, observed_at }, 'connectionChurn')
  const byType = await Promise.all(ClientType.options.map((client_type) => churnOf({ client_type })))
  for (const { minute, ...counts } of items) {
    const parts = byType.flatMap((churn) => churn.items.filter((one) => one.minute === minute))
    const [byTypes, total] = [sum(parts), sum([counts])]
    for (const name of ['opened', 'ended'] as const)
      if (byTypes[name] !== null && total[name] !== null)
        checkEqual(byTypes[name], total[name], `${name} at ${minute}, by client type and in total`)
  }
  for (const { minute, ...counts } of (await churnOf({ node_id: UNKNOWN_ID })).items)
    checkEqual(sum([counts]), sum([]), `changes at ${minute} on an unknown node`)
  await checkEnds((ctx) => registry.connectionChurn?.({}, ctx), 'connectionChurn')
  if (items.length > 0) checkKnown(sum(items))
}

/** Connections that opened and ended in one minute, optionally on one node and of one client type. */
export interface FakeChurn extends Partly<ChurnMinuteInput> {
  /** Id of the node. @default none */
  node_id?: string
  /** Client type. @default none */
  client_type?: ClientType
}

const FAKE_MINUTE = FAKE_TIME

/** Returns the minutes of a world. Equal minutes are merged; minutes without matching events have zeros. */
function fakeChurn(given: readonly FakeChurn[], filter: ChurnFilter): ConnectionChurnInput {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const minutes = [...new Set(given.map(({ minute = FAKE_MINUTE }) => minute))].sort()
  const items = minutes.map((minute) => {
    const parts = given.filter((one) => (one.minute ?? FAKE_MINUTE) === minute && hasAll(one, wanted))
    return { minute, ...sum(parts) }
  })
  return { items, observed_at: minutes.at(-1) ?? FAKE_TIME }
}

/** Returns some values of a connection as a filter. */
const toFilter = (values: object): ConnectionFilter => ConnectionFilter.parse(values)

const TIMES = ['last_seen_before', 'from', 'to']
const FILTERS = ConnectionFilter.omit({ last_seen_before: true, from: true, to: true }).keyof().options

const connectionsOf = (registry: Known<RegistryInspector>) =>
  walk<ConnectionAnswer>((page, ctx) => registry.listConnections({}, page, ctx), 100, 'listConnections')

/**
 * Returns the contract suite of a connection registry's inspector. `make` creates one with the same connections each
 * time.
 */
export function registryContract(given: MakeInspector<RegistryInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<RegistryInspector>, ConnectionAnswer>(make, {
      name: 'listConnections',
      ordered: true,
      list: (registry, filter) => (page, ctx) => registry.listConnections(toFilter(filter), page, ctx),
      item: ConnectionAnswer,
      id: 'connection_id',
      filters: FILTERS,
      times: TIMES,
      get: (registry, id, ctx) => registry.getConnection(id, ctx),
    }),
    ...countCases<Known<RegistryInspector>, ConnectionAnswer>(make, {
      name: 'countConnections',
      list: (registry, filter, page, ctx) => registry.listConnections(toFilter(filter), page, ctx),
      count: (registry, filter, ctx) => registry.countConnections?.(toFilter(filter), ctx),
      by: CONNECTION_FAMILY.counted,
      filters: FILTERS,
      times: TIMES,
    }),
    ...userCases(make, CONNECTION_FAMILY.users),
    { name: 'listConnectionHistory returns the events of one connection, oldest first', run: () => checkHistory(make) },
    { name: 'currentInstances returns the instance of each client, in order', run: () => checkHolders(make) },
    ...listCases<Known<RegistryInspector>, ClientEventAnswer>(make, {
      name: 'listConnectionEvents',
      list: (registry, filter) => {
        const { listConnectionEvents } = registry
        const given = ClientEventFilter.parse(filter)
        return listConnectionEvents && ((page, ctx) => listConnectionEvents.call(registry, given, page, ctx))
      },
      item: ClientEventAnswer,
      id: ({ connection_id, event }) => `${connection_id} ${event}`,
      filters: ClientEventFilter.keyof().options,
    }),
    {
      name: 'listConnectionEvents is newest first, with at most one end of each connection',
      run: () => checkEvents(make),
    },
    {
      name: 'connectionChurn returns each minute once, and its sums equal those by client type',
      run: () => checkChurn(make),
    },
    { name: 'listActions returns the actions of connected clients, ordered by name', run: () => checkActions(make) },
  ])
}

// A source orders events as it recorded them, which can differ from their times by that much.
const ORDER_MS = 1_000

async function checkHistory(make: MakeInspector<Known<RegistryInspector>>): Promise<void> {
  const registry = await make()
  if (!registry?.listConnectionHistory) return notTested('listConnectionHistory is not implemented')
  const eventsOf = (id: string) =>
    walkAll<ConnectionEventAnswer>(
      async (page, ctx) => (await registry.listConnectionHistory?.(id, page, ctx)) ?? NO_PAGE,
      'listConnectionHistory',
    )
  for (const { connection_id } of (await connectionsOf(registry)).slice(0, 20)) {
    const events = await eventsOf(connection_id)
    for (const [i, event] of events.entries()) {
      checkSchema(ConnectionEventAnswer, event, 'listConnectionHistory')
      checkEqual(event.connection_id, connection_id, 'listConnectionHistory returned another connection')
      const before = events[i - 1]?.at
      check(!before || !event.at || before <= event.at, 'listConnectionHistory must be oldest first')
    }
  }
  const unknown = await registry.listConnectionHistory(UNKNOWN_ID, { limit: 1, cursor: null }, CONTEXT)
  check(unknown === null, 'listConnectionHistory of an unknown connection must be null')
}

async function checkEvents(make: MakeInspector<Known<RegistryInspector>>): Promise<void> {
  const registry = await make()
  const list = registry?.listConnectionEvents
  if (!list) return notTested('listConnectionEvents is not implemented')
  const events = await walk<ClientEventAnswer>(
    (page, ctx) => list.call(registry, {}, page, ctx),
    100,
    'listConnectionEvents',
  )
  const ends = new Set<string>()
  for (const [i, { at, event, connection_id }] of events.entries()) {
    const newer = events[i - 1]
    check(
      !newer?.at || !at || Date.parse(newer.at) + ORDER_MS >= Date.parse(at),
      `listConnectionEvents is not newest first: ${newer?.at} comes before ${at}`,
    )
    if (event === 'connected') continue
    check(!ends.has(connection_id), `listConnectionEvents shows two ends of ${connection_id}`)
    ends.add(connection_id)
  }
}

async function checkHolders(make: MakeInspector<Known<RegistryInspector>>): Promise<void> {
  const registry = await make()
  if (!registry?.currentInstances) return notTested('currentInstances is not implemented')
  const connected = (await connectionsOf(registry)).filter(({ status }) => status === 'connected').slice(0, 20)
  // Alternates connected clients with an unknown one.
  const unknown = { user_id: UNKNOWN_ID, client_id: UNKNOWN_ID }
  const clients = connected.flatMap(({ user_id, client_id }) => [{ user_id, client_id }, unknown])
  const expected = connected.flatMap(({ instance_id }) => [instance_id, null])
  checkEqual(await registry.currentInstances(clients, CONTEXT), expected, 'instances that hold clients')
}

async function checkActions(make: MakeInspector<Known<RegistryInspector>>): Promise<void> {
  const registry = await make()
  if (!registry?.listActions) return notTested('listActions is not implemented')
  const connections = await connectionsOf(registry)
  for (const filter of [{}, ...filtersIn(connections, ['user_id', 'client_type'])]) {
    // The inspector has no index for this filter.
    if ((await registry.listActions(filter, { limit: 1, cursor: null }, CONTEXT)) === null) continue
    const actions = await walkAll<ActionObservationAnswer>(
      async (page, ctx) => (await registry.listActions?.(filter, page, ctx)) ?? NO_PAGE,
      'listActions',
      ({ name }) => name,
    )
    const names = actions.map((action) => action.name)
    const ordered = [...new Set(names)].sort(compareIds)
    check(names.join('\n') === ordered.join('\n'), `listActions is not ordered by name: ${names.join(', ')}`)
    const offered = connections.filter(
      (connection) =>
        connection.status === 'connected' &&
        Object.entries(filter).every(([name, value]) => connection[name as keyof ConnectionAnswer] === value),
    )
    for (const name of offered.flatMap((connection) => connection.actions))
      check(names.includes(name), `listActions under ${JSON.stringify(filter)} does not return ${name}`)
    for (const action of actions) checkAction(action, offered)
  }
  if (!connections.every(hasAllActions)) checkKnown({ actions: null })
}

const hasAllActions = ({ actions_omitted }: ConnectionAnswer) => actions_omitted === 0

function checkAction(action: ActionObservationAnswer, connections: readonly ConnectionAnswer[]): void {
  checkSchema(ActionObservationAnswer, action, 'listActions')
  if (!connections.every(hasAllActions)) return
  const offering = connections.filter((connection) => connection.actions.includes(action.name))
  checkEqual(action.observed_connections ?? offering.length, offering.length, `connections that offer ${action.name}`)
  const users = new Set(offering.map((connection) => connection.user_id)).size
  checkEqual(action.observed_users ?? users, users, `users that offer ${action.name}`)
}

/** Data of the fake connection registry. */
export interface ConnectionWorld {
  /** Connections. */
  connections?: Partly<ConnectionInput>[]
  /** Makes the registry list its actions. Numbers that are not given are computed from `connections`. */
  actions?: Partly<ActionObservationInput>[]
  /** Makes the registry return the history of connections. */
  connectionEvents?: Partly<ConnectionEventInput>[]
  /** Makes the registry list the events of all connections, given the oldest first. */
  clientEvents?: Partly<ClientEventInput>[]
  /** Makes the registry tell what came and went, minute by minute. */
  connectionChurn?: FakeChurn[]
}

const toConnection: Make<ConnectionInput> = (given, place) =>
  fill(
    {
      ...INSTANCE,
      connection_id: `connection-${place}`,
      client_type: 'console',
      node_id: null,
      status: 'connected',
      connected_at: FAKE_TIME,
      last_seen_at: FAKE_TIME,
      disconnected_at: given.status === 'disconnected' ? FAKE_TIME : null,
      ended_reason: null,
      superseded_count: 0,
      actions: [],
      metadata: {},
    },
    given,
  )

const toConnectionEvent: Make<ConnectionEventInput> = (given) =>
  fill({ connection_id: 'connection-1', event: 'connected', at: FAKE_TIME, reason: null }, given)

const toClientEvent: Make<ClientEventInput> = (given, place) =>
  fill(
    {
      ...INSTANCE,
      connection_id: `connection-${place}`,
      client_type: 'console',
      node_id: null,
      event: 'connected',
      at: FAKE_TIME,
      reason: null,
    },
    given,
  )

const toAction: Make<KnownAction> = (given, place) =>
  fill({ name: `action-${place}`, description: null, parameters_schema: null }, given)

export function fakeRegistry(world: ConnectionWorld): RegistryInspector | undefined {
  const connections = () => wholeRecords(toConnection, world.connections)
  if (!world.connections && !world.actions && !world.connectionEvents && !world.connectionChurn && !world.clientEvents)
    return undefined
  return {
    listConnections: (filter, page) => fakePage(toConnection, world.connections, filter, page),
    getConnection: (connection_id) => find(toConnection, world.connections, { connection_id }),
    currentInstances(clients) {
      const current = new Map<string, string | null>()
      for (const { user_id, client_id, status, instance_id } of connections().reverse())
        if (status === 'connected') current.set(`${user_id}\n${client_id}`, instance_id ?? null)
      return clients.map(({ user_id, client_id }) => current.get(`${user_id}\n${client_id}`) ?? null)
    },
    ...(world.actions && {
      listActions: (filter, page) =>
        pageOfActions(
          world.actions?.map((one, i, all) => toAction(one as KnownAction, i + 1, all as KnownAction[])) ?? [],
          connections(),
          filter,
          page,
        ),
    }),
    ...(world.clientEvents && {
      listConnectionEvents: (filter, page) =>
        fakePage(toClientEvent, world.clientEvents, filter, { ...page, order: 'newest' }),
    }),
    ...(world.connectionChurn && {
      connectionChurn: (filter) => fakeChurn(world.connectionChurn ?? [], filter),
    }),
    ...(world.connectionEvents && {
      listConnectionHistory(connection_id, page) {
        const known =
          find(toConnection, world.connections, { connection_id }) ??
          find(toConnectionEvent, world.connectionEvents, { connection_id })
        return known && fakePage(toConnectionEvent, world.connectionEvents, { connection_id }, page)
      },
    }),
  }
}
