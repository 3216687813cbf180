/** The contract suite of an RPC correlator's inspector. */
import type { Instance } from '../contract/connections.js'
import {
  CallCounters,
  PendingCall,
  type PendingCallFilter,
  RPC_FAMILY,
  type RpcInspector,
  RpcSummary,
} from '../contract/rpc.js'
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

/** Holds a correlator's inspector to its contract. `make` gives one with the same calls each time. */
export function rpcContract(make: MakeInspector<RpcInspector>): ContractCase[] {
  return toCases([
    ...listCases<RpcInspector, PendingCall>(make, {
      name: 'listPending',
      ordered: true,
      list: (rpc, filter) => (page, ctx) => rpc.listPending(filter, page, ctx),
      item: PendingCall,
      id: 'correlation_id',
      filters: ['user_id', 'client_id', 'action'],
      get: (rpc, id, ctx) => rpc.getPending(id, ctx),
    }),
    {
      name: 'listPending lists the oldest first, and calls past their deadline where these are asked for alone',
      run: () => checkOrder(make),
    },
    ...userCases(make, RPC_FAMILY.users),
    { name: 'checkInstance says current of the current instance alone', run: () => checkInstances(make) },
    { name: 'summary says how many calls wait, and what became of each of the others', run: () => checkSummary(make) },
  ])
}

const callsOf = (rpc: RpcInspector, filter: PendingCallFilter) =>
  walkAll<PendingCall>(
    (page, ctx) => rpc.listPending(filter, page, ctx),
    'listPending',
    (call) => call.correlation_id,
  )

async function checkOrder(make: MakeInspector<RpcInspector>): Promise<void> {
  const rpc = await make()
  if (!rpc) return notTested('there is no listPending')
  const waiting = await callsOf(rpc, {})
  for (const call of waiting)
    check(!call.overdue, `listPending shows ${call.correlation_id}, which is overdue, unasked`)
  // Who knows of none need not know the filter.
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
      check(isInOrder, `listPending lists ${correlation_id} behind ${before?.correlation_id}, which is younger`)
    }
}

async function checkInstances(make: MakeInspector<RpcInspector>): Promise<void> {
  const rpc = await make()
  if (!rpc?.checkInstance) return notTested('there is no checkInstance')
  const calls = await walk<PendingCall>((page, ctx) => rpc.listPending({}, page, ctx), 100, 'listPending')
  const clients = [{ user_id: UNKNOWN_ID, client_id: UNKNOWN_ID, instance_id: UNKNOWN_ID }, ...calls.slice(0, 20)]
  for (const { user_id, client_id, instance_id } of clients)
    for (const id of [instance_id ?? UNKNOWN_ID, UNKNOWN_ID]) {
      const { current, current_instance_id } = await rpc.checkInstance({ user_id, client_id, instance_id: id }, CONTEXT)
      checkEqual(current, current_instance_id === id, `checkInstance contradicts itself about ${id}`)
      check(id !== UNKNOWN_ID || !current, 'checkInstance must not say current of an instance that nobody has')
    }
  const nobody = { user_id: UNKNOWN_ID, client_id: UNKNOWN_ID, instance_id: UNKNOWN_ID }
  await checkEnds((ctx) => rpc.checkInstance?.(nobody, ctx), 'checkInstance')
}

async function checkSummary(make: MakeInspector<RpcInspector>): Promise<void> {
  const rpc = await make()
  if (!rpc?.summary) return notTested('there is no summary')
  const summary = await rpc.summary(CONTEXT)
  checkSchema(RpcSummary, summary, 'summary')
  const { pending, overdue, counters } = summary
  const { opened, succeeded, failed, timed_out, cancelled } = counters
  const told = succeeded + failed + timed_out + cancelled + pending + overdue
  check(opened === told, `summary: ${opened} calls were opened, and ${told} wait or have ended`)
  checkEqual(summary.oldest_started_at === null, pending + overdue === 0, 'summary has an oldest call where one waits')
  checkEqual(summary.oldest_age_ms === null, summary.oldest_started_at === null, 'summary has the age of the oldest')
  const isCounted = Object.values(counters).some((count) => count > 0)
  check(!isCounted || summary.counting_since !== null, 'summary has counted, and must say since when')
  const calls = await callsOf(rpc, {})
  checkEqual(pending, calls.length, 'pending in summary, and calls that are listed')
  const late = (await callsOf(rpc, { overdue: true })).filter((call) => call.overdue)
  checkEqual(overdue, late.length, 'overdue in summary, and calls that are listed as such')
  const first = calls.map(({ started_at }) => started_at).sort()[0]
  check(
    first === undefined || (summary.oldest_started_at ?? '') <= first,
    `summary says that the oldest call began at ${summary.oldest_started_at}, and one is listed since ${first}`,
  )
  await checkEnds((ctx) => rpc.summary?.(ctx), 'summary')
}

/** What the fakes know of calls. */
export interface RpcWorld {
  calls?: Partly<PendingCall>[]
  /** Makes the correlator count; what is not given of it is taken from `calls`. */
  callSummary?: Partly<RpcSummary>
  /** The current instances; makes the correlator check them. */
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

const NO_COUNTERS = Object.fromEntries(CallCounters.keyof().options.map((name) => [name, 0])) as CallCounters

/** The summary of a world in which nothing has become of any call but what is given. */
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
  if (!world.calls && !world.instances && !world.callSummary) return undefined
  return {
    listPending: ({ overdue = false, ...filter }, page) =>
      // Without a filter only the page is made.
      fakePage(
        toCall,
        world.calls,
        overdue || world.calls?.some((call) => call.overdue) ? { ...filter, overdue } : filter,
        page,
      ),
    getPending: (correlation_id) => find(toCall, world.calls, { correlation_id }),
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
