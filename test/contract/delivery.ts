/** What any command dispatcher must hold, over memory and over a shared store alike. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type Command,
  type CommandDispatcher,
  type DeliveryInspector,
  DeliveryNode,
  DeliveryStatus,
  DeliverySummary,
  DeliveryTenant,
  type DispatchInput,
  type Inspected,
  type Json,
} from '../../src/contract/index.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'

/** What a test may set; everything else is the default of the contract. */
export interface DispatcherSettings {
  now: () => number
  capacity?: number
  ackTimeoutMs?: number
}

export type TestedDispatcher = Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> }

export const client = { user_id: 'ada', client_id: 'tab' }
export const first = { ...client, instance_id: 'i1' }
export const second = { ...client, instance_id: 'i2' }
export const key = (command_id: string) => ({ ...client, command_id })
export const command = (command_id: string, more: Partial<DispatchInput> = {}): DispatchInput => ({
  ...key(command_id),
  action: 'refresh',
  payload: { page: 1 },
  ...more,
})

const cyclic: Record<string, Json> = {}
cyclic.self = cyclic

/** Longest wait for a store and a machine that are busy; over memory everything happens within a few turns. */
const PATIENCE_MS = 10_000

/** Waits for what happens in another step, without a pause: yields until `check` passes, or fails with its last error. */
export async function eventually(check: () => unknown): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; ; ) {
    try {
      await check()
      return
    } catch (error) {
      if (performance.now() > end) throw error
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

/** A connection that keeps what it is handed; `answers` decides about each hand-over. */
export function connection(answers: (command: Command, signal: AbortSignal) => unknown = () => undefined) {
  const received: Command[] = []
  const deliver = async (given: Command, { signal }: { signal: AbortSignal }) => {
    received.push(given)
    await answers(given, signal)
  }
  const ids = () => received.map(({ command_id }) => command_id)
  return { received, ids, deliver, got: (count: number) => eventually(() => expect(ids()).toHaveLength(count)) }
}

/** @param make a dispatcher whose wall clock is `now`; it is closed after each test. */
export function deliveryContract(make: (settings: DispatcherSettings) => TestedDispatcher | Promise<TestedDispatcher>) {
  let clock: Clock
  let dispatcher: TestedDispatcher
  const open = async (settings: Omit<DispatcherSettings, 'now'> = {}) => {
    await dispatcher?.close()
    dispatcher = await make({ now: clock.now, ...settings })
  }
  const advance = async (ms: number) => {
    clock.advance(ms)
    await dispatcher.reconcile()
  }
  const status = async (id: string) => {
    const record = await dispatcher.inspector.status(key(id), ASK)
    return record && DeliveryStatus.strict().parse(record)
  }
  const terminal = async (id: string) => (await status(id))?.terminal
  const summary = async () => DeliverySummary.strict().parse(await dispatcher.inspector.summary(ASK))
  const tenants = (limit = 100) =>
    walk(async (page) => {
      const answer = await dispatcher.inspector.listTenants(page, ASK)
      for (const item of answer.items) DeliveryTenant.strict().parse(item)
      return answer
    }, limit)
  const node = async () => {
    const nodes = await walk((page) => dispatcher.inspector.listNodes(page, ASK))
    return DeliveryNode.strict().parse(nodes[0])
  }

  beforeEach(async () => {
    clock = createClock()
    await open()
  })
  afterEach(() => dispatcher.close())

  describe('admission', () => {
    it('admits a command and answers its record, which the inspector shows too', async () => {
      const answer = await dispatcher.dispatch(command('c1'))
      expect(answer).toEqual({
        ...key('c1'),
        admission: { state: 'admitted', at: at(), scope_id: 'ada', deadline_at: at(30_000) },
        attempts: { count: 0, last_at: null, last_node_id: null, last_outcome: null },
        acknowledgement: { state: 'none', at: null, instance_id: null },
        recovery: { count: 0, last_at: null, reason: null },
        terminal: null,
      })
      expect(await status('c1')).toEqual(answer)
    })

    it('answers a repeat with the retained record, before and after the end', async () => {
      await dispatcher.dispatch(command('c1', { payload: { a: 1, b: 2 } }))
      clock.advance(5)
      const repeat = await dispatcher.dispatch(command('c1', { payload: { b: 2, a: 1 } }))
      expect(repeat.admission.at).toBe(at())
      expect((await summary()).tracked_commands).toBe(1)
      await dispatcher.settle({ ...key('c1'), state: 'resulted' })
      const late = await dispatcher.dispatch(command('c1', { payload: { a: 1, b: 2 } }))
      expect(late.terminal).toMatchObject({ state: 'resulted' })
      expect((await summary()).tracked_commands).toBe(0)
    })

    it.each([
      ['action', { action: 'other' }],
      ['payload', { payload: { page: 2 } }],
    ])('refuses another %s under the same key, before and after the end', async (_, change) => {
      await dispatcher.dispatch(command('c1'))
      await expect(dispatcher.dispatch(command('c1', change))).rejects.toMatchObject({ code: 'command_conflict' })
      await dispatcher.cancel(key('c1'))
      await expect(dispatcher.dispatch(command('c1', change))).rejects.toMatchObject({ code: 'command_conflict' })
    })

    it('takes the same command id of another user or client for another command', async () => {
      await dispatcher.dispatch(command('c1'))
      await dispatcher.dispatch(command('c1', { user_id: 'bob', action: 'other' }))
      await dispatcher.dispatch(command('c1', { client_id: 'phone', action: 'other' }))
      expect((await summary()).tracked_commands).toBe(3)
    })

    it('rejects over the capacity of the scope, retains the rejection and admits the same command later', async () => {
      await open({ capacity: 1 })
      await dispatcher.dispatch(command('c1'))
      const refused = await dispatcher.dispatch(command('c2'))
      expect(refused).toMatchObject({
        admission: { state: 'rejected', scope_id: 'ada', deadline_at: null },
        terminal: { state: 'rejected', at: at(), reason: 'capacity_exceeded' },
      })
      expect(await status('c2')).toEqual(refused)
      expect(await tenants()).toEqual([{ scope_id: 'ada', reserved_commands: 1, oldest_deadline_at: at(30_000) }])
      await dispatcher.settle({ ...key('c1'), state: 'resulted' })
      expect((await dispatcher.dispatch(command('c2', { action: 'other' }))).admission.state).toBe('admitted')
    })

    it('gives every scope its own capacity', async () => {
      await open({ capacity: 1 })
      for (const scope_id of ['red', 'blue', '__proto__'])
        expect((await dispatcher.dispatch(command(scope_id, { scope_id }))).admission.state).toBe('admitted')
      expect((await dispatcher.dispatch(command('c4', { scope_id: 'red' }))).admission.state).toBe('rejected')
      expect((await tenants(1)).map(({ scope_id }) => scope_id).sort()).toEqual(['__proto__', 'blue', 'red'])
    })

    it('frees a reservation at every end', async () => {
      for (const id of ['c1', 'c2', 'c3', 'c4']) await dispatcher.dispatch(command(id))
      await dispatcher.settle({ ...key('c1'), state: 'resulted' })
      await dispatcher.settle({ ...key('c2'), state: 'failed' })
      await dispatcher.cancel(key('c3'))
      expect(await tenants()).toMatchObject([{ reserved_commands: 1 }])
      await advance(30_000)
      expect(await tenants()).toEqual([])
    })

    it('rejects at once a command that needs a waiter when nobody waits', async () => {
      const refused = await dispatcher.dispatch(command('c1', { requireWaiter: true }))
      expect(refused.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
      await dispatcher.attach(first, connection().deliver)
      expect((await dispatcher.dispatch(command('c1', { requireWaiter: true }))).terminal).toBeNull()
    })

    it.each(['.', '..', 'a/b', '/'])('refuses the client or command id %s everywhere', async (id) => {
      const refused = { code: 'invalid_identity' }
      for (const ids of [{ client_id: id }, { command_id: id }]) {
        await expect(dispatcher.dispatch(command('c1', ids))).rejects.toMatchObject(refused)
        await expect((async () => dispatcher.inspector.status({ ...key('c1'), ...ids }, ASK))()).rejects.toMatchObject(
          refused,
        )
      }
      expect((await summary()).tracked_commands).toBe(0)
    })

    it.each([
      ['a blank id', { command_id: ' ' }],
      ['an id over 256 bytes', { client_id: 'é'.repeat(129) }],
      ['a control character', { user_id: 'a\u0000b' }],
      ['a format character', { scope_id: 'a\u200bb' }],
      ['no action', { action: '' }],
      ['no time', { deadlineMs: 0 }],
      ['more than a day', { deadlineMs: 86_400_001 }],
      ['no attempt', { maxAttempts: 0 }],
      ['a payload that JSON cannot carry', { payload: (() => 1) as unknown as Json }],
      ['a cyclic payload', { payload: cyclic }],
      ['a BigInt', { payload: { n: 1n } as unknown as Json }],
      ['a payload nested too deep', { payload: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) }],
    ])('refuses %s', async (_, change) => {
      await expect(dispatcher.dispatch(command('c1', change))).rejects.toMatchObject({ code: 'invalid_input' })
    })

    it('refuses a payload over 64 KiB', async () => {
      const payload = 'x'.repeat(65_536)
      await expect(dispatcher.dispatch(command('c1', { payload }))).rejects.toMatchObject({ code: 'payload_too_large' })
      expect(await status('c1')).toBeNull()
    })

    it('knows nothing of a command that was never dispatched', async () => {
      expect(await status('never')).toBeNull()
      expect(await dispatcher.inspector.status({ ...key('c1'), user_id: '__proto__' }, ASK)).toBeNull()
    })
  })

  describe('delivery', () => {
    it('hands waiting commands over in the order of their admission, with all that a client needs', async () => {
      for (const id of ['c3', 'c1', 'c2']) await dispatcher.dispatch(command(id))
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await tab.got(3)
      expect(tab.ids()).toEqual(['c3', 'c1', 'c2'])
      expect(tab.received[0]).toEqual({
        ...key('c3'),
        action: 'refresh',
        payload: { page: 1 },
        attempt: 1,
        deadline_at: at(30_000),
      })
    })

    it('has one command in hand at a time', async () => {
      let release = () => {}
      const tab = connection(() => new Promise<void>((resolve) => (release = resolve)))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await dispatcher.dispatch(command('c2'))
      await tab.got(1)
      expect((await node()).active_drainers).toBe(1)
      release()
      await tab.got(2)
      expect(tab.ids()).toEqual(['c1', 'c2'])
      release()
      await eventually(async () => expect((await node()).active_drainers).toBe(0))
    })

    it('records the attempt and that it was handed over', async () => {
      await dispatcher.attach(first, connection().deliver)
      clock.advance(7)
      await dispatcher.dispatch(command('c1'))
      await eventually(async () =>
        expect((await status('c1'))?.attempts).toEqual({
          count: 1,
          last_at: at(7),
          last_node_id: (await node()).node_id,
          last_outcome: 'delivered',
        }),
      )
      expect((await status('c1'))?.terminal).toBeNull()
    })

    it('counts no attempt while nobody waits', async () => {
      await dispatcher.dispatch(command('c1'))
      await advance(20_000)
      expect((await status('c1'))?.attempts.count).toBe(0)
      expect((await status('c1'))?.recovery.count).toBe(0)
    })

    it('stops handing over once the waiter detaches, and goes on with the next one', async () => {
      const tab = connection()
      const waiter = await dispatcher.attach(first, tab.deliver)
      expect((await node()).connection_waiters).toBe(1)
      await waiter.detach()
      await waiter.detach()
      expect((await node()).connection_waiters).toBe(0)
      await dispatcher.dispatch(command('c1'))
      const next = connection()
      await dispatcher.attach(first, next.deliver)
      await next.got(1)
      expect(tab.received).toEqual([])
    })

    it('replaces a waiter by a later one, whose life a late detach of the former does not touch', async () => {
      const old = connection()
      const waiter = await dispatcher.attach(first, old.deliver)
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await waiter.detach()
      expect((await node()).connection_waiters).toBe(1)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      expect(old.received).toEqual([])
    })

    it('hands a later command to a new waiter while the former still has one in hand', async () => {
      const stuck = connection(() => new Promise(() => {}))
      await dispatcher.attach(first, stuck.deliver)
      await dispatcher.dispatch(command('c1'))
      await dispatcher.dispatch(command('c2'))
      await stuck.got(1)
      const tab = connection()
      await dispatcher.attach(second, tab.deliver)
      await tab.got(1)
      expect(tab.ids()).toEqual(['c2'])
    })
  })

  describe('recovery', () => {
    const attempts = async (id: string) => (await status(id))?.attempts

    it('tries again, after a pause, what was not acknowledged in time', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await eventually(async () => expect(await attempts('c1')).toMatchObject({ last_outcome: 'delivered' }))
      await advance(4_999)
      expect((await status('c1'))?.recovery.count).toBe(0)
      await advance(1)
      expect((await status('c1'))?.recovery).toEqual({ count: 1, last_at: at(5_000), reason: 'ack_timeout' })
      await advance(5_000)
      await tab.got(2)
      expect(tab.received[1]?.attempt).toBe(2)
    })

    it('tries again what the connection rejected', async () => {
      const tab = connection(() => Promise.reject(new Error('gone')))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await eventually(async () => expect(await attempts('c1')).toMatchObject({ count: 1, last_outcome: 'rejected' }))
      expect((await status('c1'))?.recovery).toMatchObject({ count: 1, reason: 'deliver_rejected' })
      await advance(5_000)
      await tab.got(2)
    })

    it('takes a hand-over that never ends for timed out, and goes on with the mailbox', async () => {
      const tab = connection((given) => (given.command_id === 'c1' ? new Promise(() => {}) : undefined))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await dispatcher.dispatch(command('c2'))
      await tab.got(1)
      await advance(5_000)
      await tab.got(2)
      expect(tab.ids()).toEqual(['c1', 'c2'])
      expect((await status('c1'))?.attempts.last_outcome).toBe('timed_out')
      expect((await status('c1'))?.recovery).toMatchObject({ count: 1, reason: 'deliver_timed_out' })
    })

    it('fails a command once its attempts are exhausted', async () => {
      const tab = connection(() => Promise.reject(new Error('gone')))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1', { maxAttempts: 3, deadlineMs: 3_600_000 }))
      for (let count = 1; count <= 3; count++) {
        await tab.got(count)
        await eventually(async () => expect(await attempts('c1')).toMatchObject({ count, last_outcome: 'rejected' }))
        await advance(5_000)
      }
      expect(await terminal('c1')).toMatchObject({ state: 'failed', reason: 'attempts_exhausted' })
      expect((await status('c1'))?.recovery.count).toBe(2)
      expect(tab.received).toHaveLength(3)
    })

    it('never hands over again what was acknowledged', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1', { deadlineMs: 3_600_000 }))
      await tab.got(1)
      expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(true)
      await advance(600_000)
      await dispatcher.dispatch(command('c2'))
      await tab.got(2)
      expect(tab.ids()).toEqual(['c1', 'c2'])
    })
  })

  describe('acknowledgement', () => {
    const ack = (instance: typeof first, more = {}) =>
      dispatcher.acknowledge({ ...instance, command_id: 'c1', ...more })

    beforeEach(async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
    })

    it('is recorded with its instance and instant, and is no end', async () => {
      clock.advance(3)
      expect(await ack(first)).toBe(true)
      expect((await status('c1'))?.acknowledgement).toEqual({
        state: 'acknowledged',
        at: at(3),
        instance_id: 'i1',
      })
      expect(await terminal('c1')).toBeNull()
    })

    it('may be repeated before the end, without a change, and not after it', async () => {
      await ack(first)
      const before = await status('c1')
      clock.advance(3)
      expect(await ack(first)).toBe(true)
      expect(await status('c1')).toEqual(before)
      await dispatcher.settle({ ...key('c1'), state: 'resulted' })
      expect(await ack(first)).toBe(false)
    })

    it('of a former instance does not count', async () => {
      await dispatcher.attach(second, connection().deliver)
      expect(await ack(first)).toBe(false)
      expect((await status('c1'))?.acknowledgement.state).toBe('none')
      expect(await ack(second)).toBe(true)
      expect((await status('c1'))?.acknowledgement.instance_id).toBe('i2')
    })

    it('of another client, or of no known command, does not count', async () => {
      expect(await ack(first, { client_id: 'phone' })).toBe(false)
      expect(await ack(first, { command_id: 'c9' })).toBe(false)
      expect(await ack({ ...client, instance_id: 'i9' })).toBe(false)
    })

    it('that refuses ends the command without another attempt', async () => {
      expect(await ack(first, { state: 'refused', reason: 'busy' })).toBe(true)
      expect(await terminal('c1')).toMatchObject({ state: 'failed', reason: 'busy' })
      expect((await status('c1'))?.acknowledgement.state).toBe('refused')
      expect(await ack(first)).toBe(false)
    })
  })

  describe('the end', () => {
    const ends: [string, (id: string) => Promise<unknown>, string, string | null][] = [
      ['a result', async (id) => dispatcher.settle({ ...key(id), state: 'resulted' }), 'resulted', null],
      [
        'a failure',
        async (id) => dispatcher.settle({ ...key(id), state: 'failed', reason: 'no_disk' }),
        'failed',
        'no_disk',
      ],
      ['a cancel', async (id) => dispatcher.cancel({ ...key(id), reason: 'by_user' }), 'cancelled', 'by_user'],
      ['the deadline', async () => advance(30_000), 'expired', 'deadline_passed'],
    ]

    it.each(ends)('by %s is kept, and nothing changes it', async (_, finish, state, reason) => {
      await dispatcher.dispatch(command('c1'))
      await finish('c1')
      const record = await status('c1')
      expect(record?.terminal).toEqual({ state, at: new Date(clock.now()).toISOString(), reason })
      clock.advance(1)
      expect(await dispatcher.settle({ ...key('c1'), state: 'failed' })).toBe(false)
      expect(await dispatcher.cancel(key('c1'))).toBe(false)
      expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(false)
      await advance(60_000)
      expect(await status('c1')).toEqual(record)
    })

    it.each(ends)('by %s keeps a queued command from ever being handed over', async (_, finish) => {
      await dispatcher.dispatch(command('c1'))
      await finish('c1')
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c2'))
      await tab.got(1)
      expect(tab.ids()).toEqual(['c2'])
    })

    it('needs no acknowledgement, and comes after one too', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id))
      await tab.got(2)
      expect(await dispatcher.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
      await dispatcher.acknowledge({ ...first, command_id: 'c2' })
      expect(await dispatcher.settle({ ...key('c2'), state: 'resulted' })).toBe(true)
    })

    it('of an acknowledged command comes with its deadline too', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      await advance(30_000)
      expect(await terminal('c1')).toMatchObject({ state: 'expired', reason: 'deadline_passed' })
    })

    it('named by an instance counts only from the current one', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      await dispatcher.attach(second, connection().deliver)
      expect(await dispatcher.settle({ ...key('c1'), state: 'resulted', instance_id: 'i1' })).toBe(false)
      expect(await dispatcher.settle({ ...key('c1'), state: 'resulted', instance_id: 'i2' })).toBe(true)
    })

    it('cannot be said after the deadline, even before the loop has come by', async () => {
      for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id))
      clock.advance(30_000)
      expect(await dispatcher.settle({ ...key('c1'), state: 'resulted' })).toBe(false)
      expect(await dispatcher.cancel(key('c2'))).toBe(false)
      expect((await terminal('c1'))?.state).toBe('expired')
    })

    it.each(ends)('by %s aborts the signal exactly when it is a cancel or the deadline', async (_, finish, state) => {
      const signals: AbortSignal[] = []
      const tab = connection((_command, signal) => signals.push(signal))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      expect(signals[0]?.aborted).toBe(false)
      await finish('c1')
      expect(signals[0]?.aborted).toBe(state === 'cancelled' || state === 'expired')
    })

    it('keeps only low-cardinality reasons', async () => {
      for (const [id, reason, kept] of [
        ['c1', 'no_disk', 'no_disk'],
        ['c2', 'user ada@example.org said no', 'other'],
        ['c3', '', 'other'],
      ] as const) {
        await dispatcher.dispatch(command(id))
        await dispatcher.settle({ ...key(id), state: 'failed', reason })
        expect(await terminal(id)).toMatchObject({ reason: kept })
      }
    })

    it('is forgotten after an hour', async () => {
      await dispatcher.dispatch(command('c1'))
      await dispatcher.cancel(key('c1'))
      await advance(3_599_999)
      expect(await status('c1')).not.toBeNull()
      await advance(1)
      expect(await status('c1')).toBeNull()
      expect((await dispatcher.dispatch(command('c1', { action: 'other' }))).admission.state).toBe('admitted')
    })
  })

  describe('the summary and the lists', () => {
    it('are empty and honest about it before any command', async () => {
      expect(await summary()).toMatchObject({
        tracked_commands: 0,
        due_commands: 0,
        oldest_deadline_at: null,
        oldest_queued_age_ms: null,
        sample_size: 0,
        observed_at: at(),
      })
      expect(await tenants()).toEqual([])
    })

    it('tell tracked from due, and sample the oldest age of what is not acknowledged', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      clock.advance(100)
      await dispatcher.dispatch(command('c2', { client_id: 'phone', deadlineMs: 5_000 }))
      clock.advance(50)
      expect(await summary()).toMatchObject({
        tracked_commands: 2,
        due_commands: 1,
        oldest_deadline_at: at(5_100),
        oldest_queued_age_ms: 150,
        sample_size: 2,
      })
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      expect(await summary()).toMatchObject({ tracked_commands: 2, oldest_queued_age_ms: 50, sample_size: 1 })
    })

    it('page through the scopes, showing each once', async () => {
      for (let i = 0; i < 7; i++) await dispatcher.dispatch(command(`c${i}`, { scope_id: `s${i}` }))
      for (const limit of [1, 3, 7, 100])
        expect((await tenants(limit)).map(({ scope_id }) => scope_id).sort()).toEqual([
          's0',
          's1',
          's2',
          's3',
          's4',
          's5',
          's6',
        ])
    })

    it('refuse a token that is none of theirs', async () => {
      for (const cursor of ['x', '-1', '01', '1e3', '9'.repeat(40), '']) {
        await expect((async () => dispatcher.inspector.listTenants({ limit: 1, cursor }, ASK))()).rejects.toMatchObject(
          {
            code: 'invalid_cursor',
          },
        )
      }
    })

    it('show a living node with low-cardinality counters', async () => {
      await dispatcher.dispatch(command('c1'))
      await dispatcher.cancel(key('c1'))
      await dispatcher.reconcile()
      const { counters, ...shown } = await node()
      expect(shown).toMatchObject({
        reconciliation_loop_alive: true,
        stale: false,
        staleness_ms: 0,
        active_drainers: 0,
      })
      expect(counters.outcome).toMatchObject({ cancelled: 1 })
    })

    it('never show a negative age when the clock goes back ten minutes, nor lose a command when it goes on', async () => {
      await dispatcher.dispatch(command('c1', { deadlineMs: 3_600_000 }))
      await advance(-600_000)
      expect((await summary()).oldest_queued_age_ms).toBe(0)
      expect((await node()).staleness_ms).toBe(0)
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await tab.got(1)
      await advance(1_200_000)
      expect(await terminal('c1')).toBeNull()
    })

    it('carry no payload and no action', async () => {
      await dispatcher.dispatch(command('c1', { action: 'MARKER', payload: { secret: 'MARKER' } }))
      const all = [await status('c1'), await summary(), await node(), await tenants()]
      expect(JSON.stringify(all)).not.toContain('MARKER')
    })
  })

  it('refuses commands and waiters once it is closed, and can be closed twice', async () => {
    await dispatcher.close()
    await dispatcher.close()
    await expect(dispatcher.dispatch(command('c1'))).rejects.toMatchObject({ code: 'closed' })
    await expect(dispatcher.attach(first, connection().deliver)).rejects.toMatchObject({ code: 'closed' })
  })
}
