/** The calls that carry messages, events, calls and keys. */
import { expect } from 'vitest'
import type { RpcSummary } from '../../../src/contract/rpc.js'
import { ASK, walk } from '../../contract/clock.js'
import { collect, dataOf, event } from '../../contract/event-bus.js'
import { answer, claimOf } from '../../contract/idempotency.js'
import { soon } from '../wait-for.js'
import { act, type World } from './act.js'

const me = { user_id: 'ada', client_id: 'tab', instance_id: 'i1' }
const STREAM = 'users/ada/log'
const message = { ...me, message_id: 'm', stream: STREAM, kind: 'event' as const, payload: { n: 1 } }
const large = { ...message, payload: 'x'.repeat(200) }
const claim = { user_id: 'ada', stream: STREAM, message_id: 'm' }
const call = { action: 'a', user_id: 'ada', client_id: 'tab', correlation_id: 'c1', timeoutMs: 600_000 }

/** Messages `m` that can be read in full. */
async function retained({ near }: World, id = 'm') {
  const { items } = await near.history().inspector.readMessages({ stream: STREAM, limit: 9 }, ASK)
  return items.filter((m) => m.message_id === id && (!m.externalized || m.externalized.hydration === 'hydrated')).length
}
const pending = async ({ near }: World) =>
  (await walk((page) => near.rpc().inspector.listPending({}, page, ASK))).length
/** What has been counted of calls, which makes up for all that were opened. */
async function counted({ near }: World) {
  const { pending, overdue, counters } = (await near.rpc().inspector.summary?.(ASK)) as RpcSummary
  const { opened, succeeded, failed, timed_out, cancelled } = counters
  expect(succeeded + failed + timed_out + cancelled + pending + overdue).toBe(opened)
  return counters
}
const connect = async ({ near }: World) => void (await near.connections().connect({ ...me, client_type: 'web' }))

async function listening({ near }: World) {
  const reader = near.bus().subscribe('t')
  await near.bus().prepare('t')
  return reader
}
type Reader = Awaited<ReturnType<typeof listening>>

/** How often the event `n` has come by the time an event after it does. */
async function heard({ near }: World, reader: Reader, n: number) {
  await near.bus().publish('t', event(99))
  const got: unknown[] = []
  while (!got.includes(99)) {
    const next = dataOf(await collect(reader, 1))
    // The link over which it reads has lost nothing; behind a gap the last event might never come.
    expect(next).toEqual([expect.any(Number)])
    got.push(...next)
  }
  return got.filter((data) => data === n).length
}

export const MESSAGE_ACTS = [
  act({ call: 'MessageHistory.append', run: ({ far }) => far.history().append(message), effects: (w) => retained(w) }),
  act({ call: 'MessageHistory.retain', run: ({ far }) => far.history().retain(message), effects: (w) => retained(w) }),
  act({
    call: 'MessageHistory.retain',
    about: 'with its payload aside',
    run: ({ far }) => far.history().retain(large),
    effects: (world) => retained(world),
  }),
  act({
    call: 'MessageHistory.retain',
    about: 'that pushes out one with its payload aside',
    async prepare({ far }) {
      for (const message_id of ['m0', 'm1']) await far.history().retain({ ...large, message_id })
    },
    run: ({ far }) => far.history().retain(large),
    effects: async (world) => (await retained(world)) * (await retained(world, 'm1')) + (await retained(world, 'm0')),
  }),
  act({
    call: 'Deduplicator.claim',
    run: ({ far }) => far.deduplicator().claim(claim),
    effects: async ({ near }) => (await near.deduplicator().inspector.userSummary?.('ada', ASK))?.accepted ?? 0,
  }),
  act({
    call: 'Deduplicator.release',
    prepare: ({ near }) => near.deduplicator().claim(claim),
    run: ({ far }) => far.deduplicator().release(claim),
    overtake: ({ near }) => near.deduplicator().claim(claim),
    effects: async ({ near }) => (await near.deduplicator().inspector.userSummary?.('ada', ASK))?.accepted ?? 0,
  }),
  act({
    call: 'Facilities.ingest',
    prepare: connect,
    run: ({ far }) => far.facilities().ingest(message),
    effects: (world) => retained(world),
  }),
  act({
    call: 'Facilities.ingest',
    about: 'with its payload aside',
    prepare: connect,
    run: ({ far }) => far.facilities().ingest(large),
    effects: (world) => retained(world),
  }),
  act({ call: 'Facilities.close', run: ({ far }) => far.facilities().close() }),
  act({
    call: 'RpcCorrelator.open',
    run: ({ far }) => far.rpc().open(call),
    async effects(world, _state, opened) {
      const count = await pending(world)
      const { cancelled, ...counts } = await counted(world)
      expect(counts.opened - cancelled).toBe(count)
      if (!opened) return count
      expect(await world.near.rpc().settle('c1', { ok: true, result: 7 })).toBe(true)
      expect(await opened.result).toBe(7)
      expect(await world.near.rpc().settle('c1', { ok: true, result: 8 })).toBe(false)
      return count + (await pending(world))
    },
  }),
  act({
    call: 'RpcCorrelator.open',
    about: 'whose reply is fetched',
    prepare: ({ far }) => far.rpc().open(call),
    async run({ near }, { result }) {
      await near.rpc().settle('c1', { ok: true, result: 7 })
      return result
    },
    effects: async (world, _state, result) => Number(result === 7) + (await pending(world)),
  }),
  act({
    call: 'RpcCorrelator.settle',
    prepare: ({ near }) => near.rpc().open(call),
    run: ({ far }) => far.rpc().settle('c1', { ok: true, result: 7 }),
    async effects(world, { result }) {
      expect(await counted(world)).toMatchObject({ opened: 1, succeeded: 1 - (await pending(world)) })
      if ((await pending(world)) > 0) return 0
      return Number((await result) === 7)
    },
  }),
  act({
    call: 'RpcCorrelator.settle',
    about: 'with a reply to no call',
    run: ({ far }) => far.rpc().settle('none', { ok: true, result: 7 }),
    // It is dropped whether or not that can be counted.
    effects: async (world, _state, isSettled) => {
      const { late } = await counted(world)
      expect(late).toBeLessThanOrEqual(1)
      return isSettled === false ? 1 : late
    },
  }),
  act({
    call: 'RpcCorrelator.settle',
    about: 'with a reply of somebody else',
    isOnce: true,
    prepare: ({ near }) => near.rpc().open(call),
    run: ({ far }) => far.rpc().settle('c1', { ok: true, result: 7, from: { user_id: 'eve', client_id: 'tab' } }),
    async effects(world) {
      expect(await pending(world)).toBe(1)
      return (await counted(world)).foreign
    },
  }),
  act({
    call: 'RpcCorrelator.close',
    prepare: ({ far }) => far.rpc().open(call),
    run: ({ far }) => far.rpc().close(),
    async effects(world, { result }) {
      expect((await counted(world)).cancelled).toBe(1 - (await pending(world)))
      return Number((await result.catch(({ code }) => code)) === 'closed')
    },
  }),
  act({
    call: 'EventBus.publish',
    isOnce: true,
    prepare: listening,
    run: ({ far }) => far.bus().publish('t', event(1)),
    effects: (world, reader) => heard(world, reader, 1),
  }),
  act({
    call: 'EventBus.publishOnce',
    prepare: listening,
    run: ({ far }) => far.bus().publishOnce('t', event(1)),
    effects: (world, reader) => heard(world, reader, 1),
  }),
  act({
    call: 'EventBus.prepare',
    async run({ far }) {
      await far.bus().prepare('t')
      return far.bus().subscribe('t')
    },
    effects: async (world, _state, reader) => (reader ? heard(world, reader, 99) : 0),
  }),
  act({
    call: 'EventBus.subscribe',
    async run({ far }) {
      const reader = far.bus().subscribe('t')
      await soon(() => far.bus().prepare('t'))
      return reader
    },
    effects: async (world, _state, reader) => (reader ? heard(world, reader, 99) : 0),
  }),
  act({
    call: 'EventBus.close',
    async prepare({ far }) {
      await far.bus().prepare('t')
    },
    run: ({ far }) => far.bus().close(),
  }),
  act({
    call: 'IdempotencyStore.claim',
    prepare: async () => claimOf(),
    run: ({ far }, own) => far.idempotency().claim(own),
    effects: async ({ near }, _own, claimed) => {
      if (claimed === undefined) return 0
      return Number(claimed.state === 'claimed' && (await near.idempotency().claim(claimOf())).state === 'running')
    },
  }),
  act({
    call: 'IdempotencyStore.keep',
    async prepare({ near }) {
      const own = claimOf()
      await near.idempotency().claim(own)
      return own
    },
    run: ({ far }, own) => far.idempotency().keep(own, answer()),
    effects: async ({ near }) => Number((await near.idempotency().claim(claimOf())).state === 'ended'),
  }),
  act({
    call: 'IdempotencyStore.release',
    async prepare({ near }) {
      const own = claimOf()
      await near.idempotency().claim(own)
      return own
    },
    run: ({ far }, own) => far.idempotency().release(own),
    overtake: ({ near }) => near.idempotency().claim(claimOf()),
    effects: async ({ near }) => Number((await near.idempotency().claim(claimOf())).state === 'running'),
  }),
]
