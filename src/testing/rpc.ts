/** Contract suite of the RPC correlator's inspector. */

import type { ConnectionInput, Instance } from '../internal/contract/connections.js'
import {
  CallCounters,
  EndedCallAnswer,
  EndedCallFilter,
  type EndedCallInput,
  PendingCallAnswer,
  type PendingCallFilter,
  type PendingCallInput,
  RPC_FAMILY,
  type RpcInspector,
  RpcSummaryAnswer,
  type RpcSummaryInput,
} from '../internal/contract/rpc.js'
import { answering, type Known } from './answering.js'
import {
  CLIENT,
  CONTEXT,
  type ContractCase,
  check,
  checkEnds,
  checkEqual,
  checkKnown,
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

type KnownRpc = Known<RpcInspector, typeof RpcSummaryAnswer>

const NO_COUNTERS = Object.fromEntries(CallCounters.keyof().options.map((name) => [name, 0])) as CallCounters

/** Returns the contract suite of a correlator's inspector. `make` creates one with the same calls each time. */
export function rpcContract(given: MakeInspector<RpcInspector>): ContractCase[] {
  const make = answering(given, RpcSummaryAnswer)
  return toCases([
    ...listCases<KnownRpc, PendingCallAnswer>(make, {
      name: 'listPending',
      ordered: true,
      list: (rpc, filter) => (page, ctx) => rpc.listPending(filter, page, ctx),
      item: PendingCallAnswer,
      id: 'correlation_id',
      filters: ['user_id', 'client_id', 'action', 'overdue', 'direction', 'observed'],
      get: (rpc, id, ctx) => rpc.getPending(id, ctx),
    }),
    {
      name: 'listPending returns the oldest first, and overdue calls with their deadline',
      run: () => checkOrder(make),
    },
    ...listCases<KnownRpc, EndedCallAnswer>(make, {
      name: 'listEnded',
      ordered: true,
      list: (rpc, filter) => {
        const { listEnded } = rpc
        return listEnded && ((page, ctx) => listEnded.call(rpc, filter, page, ctx))
      },
      item: EndedCallAnswer,
      id: 'correlation_id',
      filters: EndedCallFilter.omit({ from: true, to: true }).keyof().options,
      times: ['from', 'to'],
      get: (rpc, id, ctx) => rpc.getEnded?.(id, ctx) ?? null,
    }),
    ...userCases(make, RPC_FAMILY.users),
    { name: 'checkInstance returns current: true only for the current instance', run: () => checkInstances(make) },
    { name: 'summary counts the pending calls and how all others ended', run: () => checkSummary(make) },
  ])
}

const callsOf = (rpc: KnownRpc, filter: PendingCallFilter) =>
  walkAll<PendingCallAnswer>(
    (page, ctx) => rpc.listPending(filter, page, ctx),
    'listPending',
    (call) => call.correlation_id,
  )

async function checkOrder(make: MakeInspector<KnownRpc>): Promise<void> {
  const rpc = await make()
  if (!rpc) return notTested('listPending is not implemented')
  const calls = await callsOf(rpc, {})
  for (const call of calls.filter(({ overdue }) => overdue)) {
    checkEqual(call.deadline_at === null, false, `${call.correlation_id} is overdue and has no deadline`)
    const { age_ms: _, ...found } = (await rpc.getPending(call.correlation_id, CONTEXT)) ?? {}
    const { age_ms: __, ...listed } = call
    checkEqual(found, listed, `the overdue call ${call.correlation_id} by its id`)
  }
  for (const [i, { correlation_id, started_at }] of calls.entries()) {
    const before = calls[i - 1]
    const isInOrder = !before?.started_at || !started_at || Date.parse(before.started_at) <= Date.parse(started_at)
    check(isInOrder, `listPending returned ${correlation_id} after ${before?.correlation_id}, which is younger`)
  }
  const [first] = calls
  if (first) checkKnown({ started_at: first.started_at })
}

async function checkInstances(make: MakeInspector<KnownRpc>): Promise<void> {
  const rpc = await make()
  if (!rpc?.checkInstance) return notTested('checkInstance is not implemented')
  const calls = await walk<PendingCallAnswer>((page, ctx) => rpc.listPending({}, page, ctx), 100, 'listPending')
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

async function checkSummary(make: MakeInspector<KnownRpc>): Promise<void> {
  const rpc = await make()
  if (!rpc?.summary) return notTested('summary is not implemented')
  const summary = await rpc.summary(CONTEXT)
  checkSchema(RpcSummaryAnswer, summary, 'summary')
  const { pending, overdue, counters, oldest_started_at, oldest_age_ms, counting_since } = summary
  const { opened, succeeded, failed, timed_out, cancelled, unanswered } = counters ?? NO_COUNTERS
  const parts = [opened, succeeded, failed, timed_out, cancelled, unanswered, pending]
  if (counters && parts.every((part) => part !== null)) {
    const [, ...others] = parts
    const counted = others.reduce((sum, part) => sum + part, 0)
    check(opened === counted, `summary: ${opened} calls were opened, but ${counted} are pending or have ended`)
  }
  const isIdle = pending === 0
  if (isIdle) checkEqual([oldest_started_at, oldest_age_ms], [null, null], 'the oldest call of a summary without calls')
  const calls = await callsOf(rpc, {})
  if (pending !== null) checkEqual(pending, calls.length, 'pending of summary, compared with listPending')
  const late = calls.filter((call) => call.overdue)
  if (overdue !== null) checkEqual(overdue, late.length, 'overdue of summary, compared with listPending')
  const [first] = calls.flatMap(({ started_at }) => started_at ?? []).sort()
  check(
    first === undefined || oldest_started_at === null || oldest_started_at <= first,
    `summary has oldest_started_at: ${oldest_started_at}, but listPending has a call of ${first}`,
  )
  await checkEnds((ctx) => rpc.summary?.(ctx), 'summary')
  const isCounted = Object.values(counters ?? {}).some((count) => (count ?? 0) > 0)
  const oldest = isIdle ? {} : { oldest_started_at, oldest_age_ms }
  checkKnown({ pending, overdue, counters, ...oldest, ...(isCounted && { counting_since }) })
}

/** Data of the fake RPC correlator. */
export interface RpcWorld {
  /** Pending calls. */
  calls?: Partly<PendingCallInput>[]
  /** Makes the correlator return a summary; numbers that are not given are computed from `calls`. */
  callSummary?: Partly<RpcSummaryInput>
  /** Enables `listEnded` and `getEnded`; the oldest first. */
  endedCalls?: Partly<EndedCallInput>[]
  /** The current instances; makes the correlator check instances. */
  instances?: Partly<Pick<ConnectionInput, keyof Instance>>[]
}

const toCall: Make<PendingCallInput> = (given, place) =>
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
      direction: 'to_client',
      observed: false,
    },
    given,
  )

const toEndedCall: Make<EndedCallInput> = (given, place) =>
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
      direction: 'to_client',
      observed: false,
    },
    given,
  )

/** Returns the summary of a world in which all calls are pending, except for the given counts. */
function toSummary(given: Partly<RpcSummaryInput>, calls: readonly PendingCallInput[]): RpcSummaryInput {
  const oldest = calls.reduce<PendingCallInput | undefined>(
    (a, b) => (a?.started_at && (!b.started_at || a.started_at <= b.started_at) ? a : b),
    undefined,
  )
  const { opened: _, late: __, foreign: ___, ...ends } = { ...NO_COUNTERS, ...given.counters }
  const late = calls.filter(({ overdue }) => overdue).length
  const waiting = given.pending ?? calls.length
  const opened = Object.values(ends).reduce<number>((sum, count) => sum + (count ?? 0), waiting)
  return fill(
    {
      pending: calls.length,
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

const toInstance: Make<Pick<ConnectionInput, keyof Instance>> = (given) => fill(INSTANCE, given)

export function fakeRpc(world: RpcWorld): RpcInspector | undefined {
  if (!world.calls && !world.instances && !world.callSummary && !world.endedCalls) return undefined
  return {
    listPending: (filter, page) => fakePage(toCall, world.calls, filter, page),
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
