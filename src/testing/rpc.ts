/** Contract suite of the RPC correlator's inspector. */

import type { Instance } from '../contract/connections.js'
import {
  CallCounters,
  type EndedCall,
  EndedCallAnswer,
  EndedCallFilter,
  type PendingCall,
  PendingCallAnswer,
  type PendingCallFilter,
  RPC_FAMILY,
  type RpcInspector,
  type RpcSummary,
  RpcSummaryAnswer,
} from '../contract/rpc.js'
import { answering, type Known } from './answering.js'
import {
  CLIENT,
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
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
import { listCases, type MakeInspector, UNKNOWN_ID, userCases, walk, walkAll } from './lists.js'

/** Returns the contract suite of a correlator's inspector. `make` creates one with the same calls each time. */
export function rpcContract(given: MakeInspector<RpcInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<RpcInspector>, PendingCall>(make, {
      name: 'listPending',
      ordered: true,
      list: (rpc, filter) => (page, ctx) => rpc.listPending(filter, page, ctx),
      item: PendingCallAnswer,
      id: 'correlation_id',
      filters: ['user_id', 'client_id', 'action'],
      get: (rpc, id, ctx) => rpc.getPending(id, ctx),
    }),
    {
      name: 'listPending returns the oldest first, and overdue calls only when requested',
      run: () => checkOrder(make),
    },
    ...listCases<Known<RpcInspector>, EndedCall>(make, {
      name: 'listEnded',
      ordered: true,
      list: (rpc, filter) => {
        const { listEnded } = rpc
        return listEnded && ((page, ctx) => listEnded.call(rpc, filter, page, ctx))
      },
      item: EndedCallAnswer,
      id: 'correlation_id',
      filters: EndedCallFilter.keyof().options,
      get: (rpc, id, ctx) => rpc.getEnded?.(id, ctx) ?? null,
    }),
    ...userCases(make, RPC_FAMILY.users),
    { name: 'checkInstance returns current: true only for the current instance', run: () => checkInstances(make) },
    { name: 'summary counts the pending calls and how all others ended', run: () => checkSummary(make) },
  ])
}

const callsOf = (rpc: Known<RpcInspector>, filter: PendingCallFilter) =>
  walkAll<PendingCall>(
    (page, ctx) => rpc.listPending(filter, page, ctx),
    'listPending',
    (call) => call.correlation_id,
  )

async function checkOrder(make: MakeInspector<Known<RpcInspector>>): Promise<void> {
  const rpc = await make()
  if (!rpc) return notTested('listPending is not implemented')
  const waiting = await callsOf(rpc, {})
  for (const call of waiting)
    check(!call.overdue, `listPending returned ${call.correlation_id}, which is overdue, without the filter`)
  // An inspector without overdue calls may ignore the filter.
  const overdue = (await callsOf(rpc, { overdue: true })).filter((call) => call.overdue)
  for (const call of overdue) {
    checkEqual(call.deadline_at === null, false, `${call.correlation_id} is overdue and has no deadline`)
    const { age_ms: _, ...found } = (await rpc.getPending(call.correlation_id, CONTEXT)) ?? {}
    const { age_ms: __, ...listed } = call
    checkEqual(found, listed, `the overdue call ${call.correlation_id} by its id`)
  }
  for (const calls of [waiting, overdue])
    for (const [i, { correlation_id, started_at }] of calls.entries()) {
      const before = calls[i - 1]
      const isInOrder = !before || Date.parse(before.started_at) <= Date.parse(started_at)
      check(isInOrder, `listPending returned ${correlation_id} after ${before?.correlation_id}, which is younger`)
    }
}

async function checkInstances(make: MakeInspector<Known<RpcInspector>>): Promise<void> {
  const rpc = await make()
  if (!rpc?.checkInstance) return notTested('checkInstance is not implemented')
  const calls = await walk<PendingCall>((page, ctx) => rpc.listPending({}, page, ctx), 100, 'listPending')
  const clients = [{ user_id: UNKNOWN_ID, client_id: UNKNOWN_ID, instance_id: UNKNOWN_ID }, ...calls.slice(0, 20)]
  for (const { user_id, client_id, instance_id } of clients)
    for (const id of [instance_id ?? UNKNOWN_ID, UNKNOWN_ID]) {
      const { current, current_instance_id } = await rpc.checkInstance({ user_id, client_id, instance_id: id }, CONTEXT)
      checkEqual(current, current_instance_id === id, `checkInstance contradicts itself about ${id}`)
      check(id !== UNKNOWN_ID || !current, 'checkInstance must not return current: true for an unknown instance')
    }
  const unknown = { user_id: UNKNOWN_ID, client_id: UNKNOWN_ID, instance_id: UNKNOWN_ID }
  await checkEnds((ctx) => rpc.checkInstance?.(unknown, ctx), 'checkInstance')
}

async function checkSummary(make: MakeInspector<Known<RpcInspector>>): Promise<void> {
  const rpc = await make()
  if (!rpc?.summary) return notTested('summary is not implemented')
  const summary: RpcSummary = await rpc.summary(CONTEXT)
  checkSchema(RpcSummaryAnswer, summary, 'summary')
  const { pending, overdue, counters } = summary
  const { opened, succeeded, failed, timed_out, cancelled } = counters
  const told = succeeded + failed + timed_out + cancelled + pending + overdue
  check(opened === told, `summary: ${opened} calls were opened, but ${told} are pending or have ended`)
  checkEqual(
    summary.oldest_started_at === null,
    pending + overdue === 0,
    'summary must have an oldest call if, and only if, one is pending',
  )
  checkEqual(
    summary.oldest_age_ms === null,
    summary.oldest_started_at === null,
    'summary must have the age of the oldest call if, and only if, there is one',
  )
  const isCounted = Object.values(counters).some((count) => count > 0)
  check(!isCounted || summary.counting_since !== null, 'summary has counts, so counting_since must not be null')
  const calls = await callsOf(rpc, {})
  checkEqual(pending, calls.length, 'pending of summary, compared with the list')
  const late = (await callsOf(rpc, { overdue: true })).filter((call) => call.overdue)
  checkEqual(overdue, late.length, 'overdue of summary, compared with the list')
  const first = calls.map(({ started_at }) => started_at).sort()[0]
  check(
    first === undefined || (summary.oldest_started_at ?? '') <= first,
    `summary has the oldest call at ${summary.oldest_started_at}, but the list has one at ${first}`,
  )
  await checkEnds((ctx) => rpc.summary?.(ctx), 'summary')
}

/** Data of the fake RPC correlator. */
export interface RpcWorld {
  /** Pending calls. */
  calls?: Partly<PendingCall>[]
  /** Makes the correlator return a summary; numbers that are not given are computed from `calls`. */
  callSummary?: Partly<RpcSummary>
  /** Enables `listEnded` and `getEnded`; the oldest first. */
  endedCalls?: Partly<EndedCall>[]
  /** The current instances; makes the correlator check instances. */
  instances?: Partly<Instance>[]
}

const toCall: Make<PendingCall> = (given, place) =>
  fill(
    {
      ...CLIENT,
      correlation_id: `call-${place}`,
      action: 'action-1',
      instance_id: null,
      started_at: FAKE_TIME,
      deadline_at: null,
      age_ms: 0,
      overdue: false,
    },
    given,
  )

const toEndedCall: Make<EndedCall> = (given, place) =>
  fill(
    {
      ...CLIENT,
      correlation_id: `call-${place}`,
      action: 'action-1',
      instance_id: null,
      outcome: 'succeeded',
      started_at: FAKE_TIME,
      ended_at: FAKE_TIME,
      duration_ms: 0,
    },
    given,
  )

const NO_COUNTERS = Object.fromEntries(CallCounters.keyof().options.map((name) => [name, 0])) as CallCounters

/** Returns the summary of a world in which all calls are pending, except for the given counts. */
function toSummary(given: Partly<RpcSummary>, calls: readonly PendingCall[]): RpcSummary {
  const oldest = calls.reduce<PendingCall | undefined>((a, b) => (a && a.started_at <= b.started_at ? a : b), undefined)
  const { succeeded = 0, failed = 0, timed_out = 0, cancelled = 0 } = given.counters ?? {}
  const late = calls.filter(({ overdue }) => overdue).length
  const waiting = (given.pending ?? calls.length - late) + (given.overdue ?? late)
  const opened = succeeded + failed + timed_out + cancelled + waiting
  return fill(
    {
      pending: calls.length - late,
      oldest_started_at: oldest?.started_at ?? null,
      oldest_age_ms: oldest?.age_ms ?? null,
      overdue: late,
      counters: { ...NO_COUNTERS, opened },
      counting_since: opened > 0 || given.counters ? FAKE_TIME : null,
      observed_at: FAKE_TIME,
    },
    given,
  )
}

const toInstance: Make<Instance> = (given) => fill(INSTANCE, given)

export function fakeRpc(world: RpcWorld): RpcInspector | undefined {
  if (!world.calls && !world.instances && !world.callSummary && !world.endedCalls) return undefined
  return {
    listPending: ({ overdue = false, ...filter }, page) =>
      // Without a filter only the page is created.
      fakePage(
        toCall,
        world.calls,
        overdue || world.calls?.some((call) => call.overdue) ? { ...filter, overdue } : filter,
        page,
      ),
    getPending: (correlation_id) => find(toCall, world.calls, { correlation_id }),
    ...(world.endedCalls && {
      listEnded: (filter, page) => fakePage(toEndedCall, world.endedCalls, filter, { order: 'newest', ...page }),
      getEnded: (correlation_id) => find(toEndedCall, world.endedCalls, { correlation_id }),
    }),
    ...(world.callSummary && {
      summary: () => toSummary(world.callSummary ?? {}, wholeRecords(toCall, world.calls)),
    }),
    ...(world.instances && {
      checkInstance({ user_id, client_id, instance_id }) {
        const current = find(toInstance, world.instances, { user_id, client_id })?.instance_id ?? null
        return { current: current === instance_id, current_instance_id: current }
      },
    }),
  }
}
