/** The dispatcher compared with a small model: random lives of a few commands, and nothing left over. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { DeliveryStatus } from '../../src/internal/contract/index.js'
import { assembleDispatcher } from '../../src/memory/delivery/facility.js'
import { ASK, createClock } from '../contract/clock.js'

const CAPACITY = 3
const ACK_MS = 1_000
const DEADLINE_MS = 6_000
const MAX_ATTEMPTS = 3
const CLIENTS = ['tab', 'phone']
const COMMANDS = ['c0', 'c1', 'c2', 'c3']
const INSTANCES = ['i1', 'i2']
/** What the deliverer of a waiter does. */
const MANNERS = ['resolve', 'reject', 'hang'] as const

interface Expected {
  deadlineAt: number
  acknowledged: boolean
  terminal: string | null
}

const client = fc.constantFrom(...CLIENTS)
const id = fc.constantFrom(...COMMANDS)
const instance = fc.constantFrom(...INSTANCES)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('dispatch' as const), client, id }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('attach' as const), client, instance, manner: fc.constantFrom(...MANNERS) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('detach' as const), client }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('acknowledge' as const), client, id, instance }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      client,
      id,
      instance: fc.option(instance),
      acknowledge: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), client, id }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: -500, max: 2_500 }) }),
  },
)

/** Waits until no delivery is in progress. */
const flushPromises = () => new Promise((resolve) => setImmediate(resolve))

it('ends every admitted command exactly once, agrees with the model, and leaves nothing over', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = createClock()
      const { dispatcher, store } = assembleDispatcher({
        now: clock.now,
        capacity: CAPACITY,
        ackTimeoutMs: ACK_MS,
        deadlineMs: DEADLINE_MS,
        maxAttempts: MAX_ATTEMPTS,
      })
      const model = new Map<string, Expected>()
      const attached = new Map<string, { instance: string; detach: () => Promise<void> | void }>()
      const handed = new Map<string, number>()
      const finished = new Map<string, DeliveryStatus>()
      const name = (at: { client: string; id: string }) => `${at.client} ${at.id}`
      const ids = (at: { client: string; id: string }) => ({ user_id: 'u', client_id: at.client, command_id: at.id })
      const open = (key: string) => {
        const expected = model.get(key)
        if (expected?.terminal === null && expected.deadlineAt <= clock.now()) expected.terminal = 'expired'
        return expected?.terminal === null ? expected : undefined
      }
      /** The instance that acknowledgements must come from: the attached one, else the one of the last attempt. */
      const current = async (at: { client: string; id: string }) =>
        attached.get(at.client)?.instance ?? store.tracked.get(`u\n${at.client}\n${at.id}`)?.made.at(-1)?.instance_id

      for (const s of steps) {
        if (s.do === 'dispatch') {
          const known = model.get(name(s))
          if (known) open(name(s))
          const tracked = [...model.keys()].filter((key) => model.get(key)?.terminal === null).length
          const answer = await dispatcher.dispatch({ ...ids(s), action: 'a' })
          if (known) expect(answer.terminal?.state ?? null).toBe(known.terminal)
          else if (answer.admission.state === 'admitted') {
            expect(tracked).toBeLessThan(CAPACITY)
            model.set(name(s), { deadlineAt: clock.now() + DEADLINE_MS, acknowledged: false, terminal: null })
          } else expect(tracked).toBe(CAPACITY)
        } else if (s.do === 'attach') {
          const deliver = async (given: { command_id: string; attempt: number }) => {
            const key = name({ client: s.client, id: given.command_id })
            expect(model.get(key)).toMatchObject({ acknowledged: false, terminal: null })
            expect(given.attempt).toBe((handed.get(key) ?? 0) + 1)
            handed.set(key, given.attempt)
            if (s.manner === 'reject') throw new Error('gone')
            if (s.manner === 'hang') await new Promise(() => {})
          }
          const waiter = await dispatcher.attach(
            { user_id: 'u', client_id: s.client, instance_id: s.instance },
            deliver,
          )
          attached.set(s.client, { instance: s.instance, detach: waiter.detach })
        } else if (s.do === 'detach') {
          await attached.get(s.client)?.detach()
          attached.delete(s.client)
        } else if (s.do === 'acknowledge') {
          const expected = open(name(s))
          const counts = expected !== undefined && (await current(s)) === s.instance
          if (expected && counts) expected.acknowledged = true
          expect(await dispatcher.acknowledge({ ...ids(s), instance_id: s.instance })).toBe(counts)
        } else if (s.do === 'settle') {
          const expected = open(name(s))
          const fenced = s.instance !== null && (await current(s)) !== s.instance
          const fence = s.instance === null ? {} : { instance_id: s.instance, acknowledge: s.acknowledge }
          if (expected && !fenced) {
            expected.terminal = 'resulted'
            expected.acknowledged ||= s.instance !== null && s.acknowledge
          }
          expect(await dispatcher.settle({ ...ids(s), state: 'resulted', ...fence })).toBe(Boolean(expected) && !fenced)
        } else if (s.do === 'cancel') {
          const expected = open(name(s))
          if (expected) expected.terminal = 'cancelled'
          expect(await dispatcher.cancel(ids(s))).toBe(expected !== undefined)
        } else {
          clock.advance(s.ms)
          for (const key of model.keys()) open(key)
          await dispatcher.reconcile()
        }
        await flushPromises()
        await compare()
      }

      for (let turn = 0; turn < 3; turn++) {
        clock.advance(DEADLINE_MS)
        for (const key of model.keys()) open(key)
        await dispatcher.reconcile()
        await flushPromises()
        await compare()
      }
      for (const { detach } of attached.values()) await detach()
      expect([...model.values()].every(({ terminal }) => terminal !== null)).toBe(true)
      const { tracked, mailboxes, reservations, queued, deadlines, attempted, backoff, ended, lists, totals } = store
      expect([tracked, mailboxes, reservations, queued, deadlines, attempted, backoff].map(({ size }) => size)).toEqual(
        [0, 0, 0, 0, 0, 0, 0],
      )
      expect(totals).toEqual({ ready: 0, readyAttached: 0, delivering: 0, payloadBytes: 0, waiters: 0, drainers: 0 })
      expect(ended.size).toBe(model.size)
      clock.advance(3_600_000)
      await dispatcher.reconcile()
      expect(ended.size + store.rejected.size + lists.size).toBe(0)
      await dispatcher.close()

      async function compare() {
        let tracked = 0
        for (const [key, expected] of model) {
          const [client_id = '', command_id = ''] = key.split(' ')
          const record = await dispatcher.inspector.status({ user_id: 'u', client_id, command_id }, ASK)
          if (!record) throw new Error(`${key} is lost`)
          // The one end that the model leaves to the dispatcher, and checks: attempts that led to nothing.
          if (record.terminal?.reason === 'attempts_exhausted' && expected.terminal === null) {
            expect(record).toMatchObject({ attempts: { count: MAX_ATTEMPTS }, recovery: { count: MAX_ATTEMPTS - 1 } })
            expect(expected.acknowledged).toBe(false)
            expected.terminal = 'failed'
          }
          expect(record.terminal?.state ?? null).toBe(expected.terminal)
          expect(record.acknowledgement?.state).toBe(expected.acknowledged ? 'acknowledged' : 'none')
          expect(record.attempts?.count).toBe(handed.get(key) ?? 0)
          if (record.terminal) expect(record).toEqual(finished.get(key) ?? record)
          if (record.terminal) finished.set(key, record as DeliveryStatus)
          else tracked++
        }
        const page = await dispatcher.inspector.listCommands?.({}, { limit: 500, cursor: null }, ASK)
        const listed = page?.items.filter(({ state }) => state !== 'rejected') ?? []
        const stateOf = (key: string, { terminal, acknowledged }: Expected) =>
          terminal ?? (acknowledged ? 'acknowledged' : handed.has(key) ? 'attempted' : 'waiting')
        expect(listed.map(({ client_id, command_id, state }) => `${client_id} ${command_id} ${state}`)).toEqual(
          [...model].map(([key, expected]) => `${key} ${stateOf(key, expected)}`),
        )
        const summary = await dispatcher.inspector.summary(ASK)
        expect(summary.tracked_commands).toBe(tracked)
        expect((summary.due_commands ?? 0) + (summary.waiting_for_client ?? 0)).toBeLessThanOrEqual(
          summary.sample_size ?? 0,
        )
        const tenants = await dispatcher.inspector.listTenants({ limit: 10, cursor: null }, ASK)
        expect(tenants.items.map(({ reserved_commands }) => reserved_commands)).toEqual(tracked > 0 ? [tracked] : [])
      }
    }),
    { numRuns: 200 },
  )
})
