/** The table of observed calls, against a model and at its limits. */
import { expect, it, vi } from 'vitest'
import type { EndedCall, ObserveCallsInput, ObservedAction, PendingCall } from '../../src/internal/contract/rpc.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createRpcCorrelator } from '../../src/memory/index.js'
import type { CallLink } from '../../src/plugs/follow/call-records.js'
import { createObservedCalls } from '../../src/plugs/follow/calls.js'
import { ASK } from '../contract/clock.js'
import { useFakeTimers } from '../fake-timers.js'
import { createDice } from '../simulation/random.js'

const owner = (i: number) => ({ user_id: `user-${i}`, client_id: 'desk', instance_id: 'one' })
const DIRECTIONS = ['to_client', 'to_server'] as const

function createSubject(over: { keepMs?: number; observe?: (input: ObserveCallsInput) => Promise<number> } = {}) {
  useFakeTimers()
  const rpc = createRpcCorrelator()
  const report = vi.fn()
  const reports: ObserveCallsInput[] = []
  const observe = async (input: ObserveCallsInput) => {
    reports.push(input)
    return over.observe ? over.observe(input) : rpc.observe(input)
  }
  const table = createObservedCalls({ calls: { observe }, keepMs: over.keepMs ?? 3_600_000, report })
  const link = (i = 1): CallLink => {
    const made = table.link()
    made.owner = owner(i)
    return made
  }
  const page = { limit: 500, cursor: null }
  return {
    table,
    link,
    rpc,
    report,
    reports,
    pass: (ms: number) => vi.advanceTimersByTimeAsync(ms),
    pending: async () => (await rpc.inspector.listPending({}, page, ASK)).items as PendingCall[],
    ended: async () => ((await rpc.inspector.listEnded?.({}, page, ASK))?.items ?? []) as EndedCall[],
    async actions(): Promise<ObservedAction[]> {
      return (await rpc.inspector.summary?.(ASK))?.observed?.actions ?? []
    },
  }
}

it('writes nothing of calls that are answered within a second, and counts them', async () => {
  const { table, link, pass, reports, pending, ended, actions } = createSubject()
  const one = link()
  for (let i = 0; i < 10_000; i++) {
    table.request(one, 'to_client', i, 'sync')
    if (i % 100 === 99) await pass(20)
    if (i % 100 === 99) for (let j = i - 99; j <= i; j++) table.reply(one, 'to_client', j, true)
  }
  await pass(10_000)
  expect([await pending(), await ended()]).toEqual([[], []])
  expect(await actions()).toMatchObject([{ action: 'sync', direction: 'to_client', succeeded: 10_000, unanswered: 0 }])
  expect(reports.flatMap(({ calls }) => calls)).toEqual([])
  expect(reports.length).toBeLessThanOrEqual(3)
})

it('lists a call that is open for a second, until it is answered', async () => {
  const { table, link, pass, pending, ended } = createSubject()
  const one = link()
  table.request(one, 'to_server', 'a', 'report')
  await pass(2_000)
  const [call] = await pending()
  expect(call).toMatchObject({ ...owner(1), action: 'report', direction: 'to_server', answered_since: 'none' })
  await pass(120_000)
  expect(await pending()).toMatchObject([{ correlation_id: call?.correlation_id, overdue: false }])
  table.reply(one, 'to_server', 'a', true)
  await pass(1_000)
  expect(await pending()).toEqual([])
  expect(await ended()).toMatchObject([{ correlation_id: call?.correlation_id, outcome: 'succeeded' }])
})

it('keeps the trace of a call, unless it is invalid', async () => {
  const { table, link, pass, pending } = createSubject()
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const one = link()
  const traces = [trace, undefined, `${trace} `, `01${trace.slice(2)}`, 7, { trace }]
  for (const [i, given] of traces.entries()) table.request(one, 'to_server', i, `a${i}`, given)
  await pass(2_000)
  expect((await pending()).map((call) => call.trace)).toEqual(traces.map((given, i) => (i === 0 ? given : undefined)))
})

it('lists what a connection has answered since a call was sent', async () => {
  const { table, link, pass, pending } = createSubject()
  const one = link()
  const other = link(2)
  for (const id of [1, 2, 3]) table.request(one, 'to_client', id, `a${id}`)
  table.request(other, 'to_client', 1, 'other')
  table.request(one, 'to_server', 1, 'back')
  const since = async () => {
    await pass(2_000)
    return Object.fromEntries((await pending()).map(({ action, answered_since }) => [action, answered_since]))
  }
  expect(await since()).toEqual({ a1: 'none', a2: 'none', a3: 'none', other: 'none', back: 'none' })
  table.reply(one, 'to_client', 2, false)
  expect(await since()).toEqual({ a1: 'later', a3: 'earlier', other: 'none', back: 'none' })
  table.request(one, 'to_client', 4, 'a4')
  table.progress(one, 'to_client', 4)
  expect(await since()).toEqual({ a1: 'later', a3: 'earlier', a4: 'earlier', other: 'none', back: 'none' })
})

it('writes at once what ends badly', async () => {
  const { table, link, pass, ended } = createSubject()
  const one = link()
  for (const id of ['fail', 'cancel', 'lose', 'again']) table.request(one, 'to_client', id, id)
  table.reply(one, 'to_client', 'fail', false)
  table.cancel(one, 'to_client', 'cancel')
  table.request(one, 'to_client', 'again', 'second')
  table.reply(one, 'to_client', 'again', true)
  table.end(one, 'ping_timeout')
  table.request(one, 'to_client', 'late', 'late')
  await pass(1_000)
  const found = (await ended()).map(({ action, outcome, connection_reason }) => [action, outcome, connection_reason])
  expect(found.sort()).toEqual([
    ['again', 'unanswered', null],
    ['cancel', 'cancelled', null],
    ['fail', 'failed', null],
    ['lose', 'unanswered', 'ping_timeout'],
  ])
})

it('ends a call that was open for keepMs without progress', async () => {
  const { table, link, pass, pending, ended } = createSubject({ keepMs: 30_000 })
  const one = link()
  for (const id of [1, 2]) table.request(one, 'to_server', id, `a${id}`)
  await pass(20_000)
  table.progress(one, 'to_server', 2)
  await pass(12_000)
  expect(await pending()).toMatchObject([{ action: 'a2' }])
  expect(await ended()).toMatchObject([{ action: 'a1', outcome: 'unanswered', connection_reason: null }])
})

it('keeps 200 open calls of a connection and 10,000 in all, and counts the oldest, which leave', async () => {
  const { table, link, pass, rpc, pending } = createSubject()
  const one = link()
  for (let i = 0; i < 203; i++) table.request(one, i % 2 ? 'to_client' : 'to_server', i, 'a')
  await pass(5_000)
  expect((await pending()).length).toBe(200)
  expect((await rpc.inspector.summary?.(ASK))?.observed).toMatchObject({ evicted: 3, unrecorded: 0 })
  for (let i = 0; i < 100; i++) {
    const more = link(2 + i)
    for (let j = 0; j < 100; j++) table.request(more, 'to_client', j, 'b')
  }
  await pass(30_000)
  const { pending: all, observed } = (await rpc.inspector.summary?.(ASK)) ?? {}
  expect(all).toBe(10_000)
  expect(observed).toMatchObject({ evicted: 203 })
})

it('counts calls that are not written, because too many end badly within a second', async () => {
  const { table, link, pass, ended, rpc } = createSubject()
  for (let i = 0; i < 15; i++) {
    const one = link(i)
    for (let j = 0; j < 100; j++) {
      table.request(one, 'to_client', j, 'a')
      table.reply(one, 'to_client', j, false)
    }
  }
  await pass(1_000)
  expect(await ended()).toHaveLength(500)
  expect(await rpc.inspector.summary?.(ASK)).toMatchObject({
    counters: { failed: 1_000 },
    observed: { unrecorded: 500, actions: [{ failed: 1_500 }] },
  })
})

it('counts a hundred actions by name, and cuts and cleans what a record cannot have', async () => {
  const { table, link, pass, actions, pending } = createSubject()
  const one = link()
  for (const [i, action] of ['', '  ', '..', 'a\nb', 'x'.repeat(100), '😀'.repeat(40)].entries())
    table.request(one, 'to_client', i, action)
  for (let i = 0; i < 120; i++) {
    table.request(one, 'to_server', i, `action-${i}`)
    table.reply(one, 'to_server', i, true)
    table.notify(one, 'to_server', `action-${i}`)
  }
  table.request(one, 'to_client', 'x'.repeat(129), 'not followed')
  await pass(5_000)
  const names = (await pending()).map(({ action }) => action)
  expect(names).toEqual(['unknown', 'unknown', 'unknown', 'a?b', 'x'.repeat(64), '😀'.repeat(32)])
  const counted = await actions()
  expect(counted.filter(({ notifications }) => notifications > 0)).toHaveLength(95)
  expect(counted.find(({ action }) => action === 'other')).toMatchObject({ succeeded: 26, notifications: 26 })
})

it('writes nothing of a connection whose owner is unknown, and what is open once it is known', async () => {
  const { table, pass, pending, ended, actions } = createSubject()
  const [first, second] = [table.link(), table.link()]
  for (const one of [first, second]) table.request(one, 'to_client', 1, 'a')
  await pass(2_000)
  expect(await pending()).toEqual([])
  first.owner = owner(1)
  table.end(second, null)
  await pass(5_000)
  expect(await pending()).toMatchObject([owner(1)])
  expect([await ended(), await actions()]).toEqual([[], []])
})

it('sends a report that failed again, reports the first error, and loses nothing', async () => {
  let isDown = true
  const { table, link, pass, report, rpc, pending, ended, reports } = createSubject({
    observe: async (input) => {
      const refused = await rpc.observe(input)
      if (isDown) throw new Refusal('unavailable')
      return refused
    },
  })
  const one = link()
  table.request(one, 'to_client', 1, 'open')
  table.request(one, 'to_client', 2, 'failed')
  table.reply(one, 'to_client', 2, false)
  await pass(3_000)
  table.request(one, 'to_client', 3, 'lost')
  table.end(one, 'ping_timeout')
  await pass(3_000)
  expect(report).toHaveBeenCalledOnce()
  expect(new Set(reports.map(({ sequence }) => sequence)).size).toBe(1)
  isDown = false
  await pass(6_000)
  expect(await pending()).toEqual([])
  expect((await ended()).map(({ action }) => action).sort()).toEqual(['failed', 'lost', 'open'])
  const { counters, observed } = (await rpc.inspector.summary?.(ASK)) ?? {}
  expect(counters).toMatchObject({ opened: 3, failed: 1, unanswered: 2 })
  expect(observed?.actions.map(({ failed, unanswered }) => failed + unanswered)).toEqual([1, 1, 1])
})

it('skips a report that the correlator refuses as invalid', async () => {
  const observe = vi.fn(async () => 0).mockRejectedValueOnce(new Refusal('invalid_input', 'calls.0: no'))
  const { table, link, pass, report } = createSubject({ observe })
  table.request(link(), 'to_client', 1, 'a')
  await pass(30_000)
  expect(report).toHaveBeenCalledOnce()
  expect(observe.mock.calls.length).toBeGreaterThan(1)
})

it('ends everything when it is closed, and observes nothing more', async () => {
  const { table, link, pass, reports, ended, actions } = createSubject()
  const one = link()
  table.request(one, 'to_client', 1, 'a')
  expect(await table.close()).toEqual({ aborted: 0 })
  expect(await ended()).toMatchObject([{ outcome: 'unanswered', connection_reason: null }])
  expect(await actions()).toMatchObject([{ unanswered: 1 }])
  const sent = reports.length
  table.request(one, 'to_client', 2, 'a')
  table.request(table.link(), 'to_client', 2, 'a')
  table.reply(one, 'to_client', 2, true)
  await pass(60_000)
  expect(reports).toHaveLength(sent)
  expect(vi.getTimerCount()).toBe(0)
})

it('gives up a report at its end that the store does not take', async () => {
  const { table, link, pass } = createSubject({ observe: () => new Promise(() => {}) })
  table.request(link(), 'to_client', 1, 'a')
  const closing = table.close()
  await pass(5_000)
  expect(await closing).toEqual({ aborted: 1 })
})

it('agrees with a model after random traffic, whatever ends when', async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const dice = createDice(seed, 'calls')
    const { table, link, pass, pending, ended, actions, rpc } = createSubject()
    type Modelled = { action: string; direction: (typeof DIRECTIONS)[number]; sentAt: number; user: number }
    const open = new Map<string, Modelled>()
    const counts = new Map<string, number>()
    const listed: string[] = []
    const links = new Map<number, CallLink>()
    const finish = (key: string, outcome: string) => {
      const { action, direction, sentAt } = open.get(key) as Modelled
      open.delete(key)
      const name = `${direction} ${action} ${outcome}`
      counts.set(name, (counts.get(name) ?? 0) + 1)
      if (outcome !== 'succeeded' || performance.now() - sentAt >= 1_000) listed.push(name)
    }
    for (let step = 0; step < 1_500; step++) {
      const user = dice.int(20)
      const one = links.get(user) ?? link(user)
      links.set(user, one)
      const direction = DIRECTIONS[dice.int(2)] as (typeof DIRECTIONS)[number]
      const id = dice.int(2) ? dice.int(4) : String(dice.int(4))
      const key = `${user} ${direction} ${typeof id} ${id}`
      const what = dice.int(100)
      if (what < 45) {
        if (open.has(key)) finish(key, 'unanswered')
        const action = `action-${dice.int(5)}`
        open.set(key, { action, direction, sentAt: performance.now(), user })
        table.request(one, direction, id, action)
      } else if (what < 85) {
        const isOk = dice.int(10) > 0
        if (open.has(key)) finish(key, isOk ? 'succeeded' : 'failed')
        table.reply(one, direction, id, isOk)
      } else if (what < 90) {
        if (open.has(key)) finish(key, 'cancelled')
        table.cancel(one, direction, id)
      } else if (what < 93) table.progress(one, direction, id)
      else if (what < 96) {
        for (const [other, call] of open) if (call.user === user) finish(other, 'unanswered')
        table.end(one, 'normal_closure')
        links.delete(user)
      } else await pass(dice.int(900))
    }
    await pass(7_000)
    const named = ({ direction, action }: { direction: string; action: string }) => `${direction} ${action}`
    expect((await pending()).map(named).sort(), `seed ${seed}`).toEqual([...open.values()].map(named).sort())
    const found = (await actions()).flatMap((one) =>
      (['succeeded', 'failed', 'cancelled', 'unanswered'] as const).flatMap((outcome) =>
        one[outcome] === 0 ? [] : [[`${named(one)} ${outcome}`, one[outcome]] as const],
      ),
    )
    expect(Object.fromEntries(found), `seed ${seed}`).toEqual(Object.fromEntries(counts))
    const { counters } = (await rpc.inspector.summary?.(ASK)) ?? {}
    expect(counters?.opened, `seed ${seed}`).toBe(listed.length + open.size)
    if (listed.length <= 500)
      expect((await ended()).map((call) => `${named(call)} ${call.outcome}`).sort()).toEqual(listed.sort())
    await table.close()
  }
})
