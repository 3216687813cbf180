/** What an inspector answers about where commands stand, what they wait for, and how long they took. */
import { describe, expect, it } from 'vitest'
import {
  DeliveryChurn,
  type DeliveryChurnFilter,
  type DeliveryMailboxInput,
  DeliveryMailbox as Mailbox,
  type MailboxFilter,
} from '../../src/internal/contract/delivery.js'
import type { Order } from '../../src/internal/contract/page.js'
import { ASK, at, walk } from './clock.js'
import { command, connection, eventually, first, key } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

const NO_STATES = {
  waiting: 0,
  attempted: 0,
  acknowledged: 0,
  resulted: 0,
  failed: 0,
  expired: 0,
  cancelled: 0,
  rejected: 0,
}
const NO_WAITS = {
  client_not_attached: 0,
  turn: 0,
  delivery: 0,
  acknowledgement: 0,
  retry_pause: 0,
  outcome: 0,
  expiry: 0,
  unknown: 0,
}
const NO_TIMES = { p50_ms: null, p95_ms: null, p99_ms: null, sample_size: 0 }

export function answersContract({ clock, dispatcher, open, advance, status, summary, commands }: Subject): void {
  const handedOver = (id: string) =>
    eventually(async () => expect((await status(id))?.attempts.last_outcome).toBe('handed_over'))

  const mailboxes = (filter: MailboxFilter = {}, limit = 100) =>
    walk<DeliveryMailboxInput>(async (page) => {
      const answer = await dispatcher.inspector.listMailboxes?.(filter, page, ASK)
      if (!answer) throw new Error('the inspector lists no mailboxes')
      for (const item of answer.items) Mailbox.strict().parse(item)
      return answer
    }, limit)

  const waits = async () =>
    Object.fromEntries((await commands()).map(({ command_id, waits_for }) => [command_id, waits_for]))

  describe('the counts of the summary', () => {
    it('have every retained command by its state, and every end by its reason', async () => {
      expect(await summary()).toMatchObject({ by_state: NO_STATES, by_reason: {}, waits_for: NO_WAITS })
      await dispatcher.attach(first, connection().deliver)
      for (const id of ['c1', 'c2', 'c3', 'c4', 'c5']) {
        await dispatcher.dispatch(command(id))
        await handedOver(id)
      }
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      await dispatcher.acknowledge({ ...first, command_id: 'c2', state: 'refused', reason: 'disk_full' })
      await dispatcher.settle({ ...key('c3'), state: 'resulted' })
      await dispatcher.cancel({ ...key('c4'), reason: 'user_left' })
      await dispatcher.dispatch(command('c6', { client_id: 'phone', deadline_ms: 1_000 }))
      await dispatcher.dispatch(command('c7', { client_id: 'phone', require_waiter: true }))
      await dispatcher.dispatch(command('c8', { client_id: 'phone' }))
      await advance(1_000)
      expect(await summary()).toMatchObject({
        by_state: {
          waiting: 1,
          attempted: 1,
          acknowledged: 1,
          resulted: 1,
          failed: 1,
          expired: 1,
          cancelled: 1,
          rejected: 1,
        },
        by_reason: { deadline_passed: 1, disk_full: 1, no_waiter: 1, unspecified: 1, user_left: 1 },
        waits_for: { ...NO_WAITS, acknowledgement: 1, client_not_attached: 1, outcome: 1 },
      })
    })

    it('lose a record with its retention, whether or not the loop has come by', async () => {
      await dispatcher.dispatch(command('c1'))
      await dispatcher.cancel({ ...key('c1'), reason: 'user_left' })
      await dispatcher.dispatch(command('c2', { require_waiter: true }))
      clock.advance(1_800_000)
      await dispatcher.reconcile()
      await dispatcher.dispatch(command('c3'))
      await dispatcher.cancel(key('c3'))
      const one = { by_state: { ...NO_STATES, cancelled: 1 }, by_reason: { unspecified: 1 } }
      clock.advance(1_801_000)
      expect(await summary()).toMatchObject(one)
      await dispatcher.reconcile()
      expect(await summary()).toMatchObject(one)
      clock.advance(3_600_000)
      await dispatcher.reconcile()
      const { by_state, by_reason } = await summary()
      expect([by_state, by_reason]).toEqual([NO_STATES, {}])
    })

    it('count a refused admission once, whose command was admitted later', async () => {
      await dispatcher.dispatch(command('c1', { require_waiter: true }))
      await dispatcher.dispatch(command('c1', { require_waiter: true }))
      const refused = await summary()
      expect([refused.by_state, refused.by_reason]).toEqual([{ ...NO_STATES, rejected: 1 }, { no_waiter: 1 }])
      await dispatcher.dispatch(command('c1'))
      const admitted = await summary()
      expect([admitted.by_state, admitted.by_reason]).toEqual([{ ...NO_STATES, waiting: 1 }, {}])
    })

    it('tell at most a hundred reasons apart, and count every end', async () => {
      for (let i = 0; i < 120; i++) {
        await dispatcher.dispatch(command(`c${i}`))
        await dispatcher.cancel({ ...key(`c${i}`), reason: `reason_${i}` })
      }
      const { by_state, by_reason } = await summary()
      expect(by_state).toEqual({ ...NO_STATES, cancelled: 120 })
      const counts = Object.entries(by_reason ?? {})
      expect(counts.length).toBeLessThanOrEqual(101)
      expect(counts.reduce((sum, [, n]) => sum + n, 0)).toBe(120)
      expect(by_reason?.other).toBeGreaterThan(10)
      await advance(3_600_000)
      await advance(3_600_000)
      expect((await summary()).by_reason).toEqual({})
    })
  })

  describe('what a command waits for', () => {
    it('is shown per row, and in sums', async () => {
      await open({ maxDeliveriesPerClient: 1 })
      await dispatcher.dispatch(command('away', { client_id: 'phone' }))
      const tab = connection(({ command_id }) => command_id === 'held' && new Promise(() => {}))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('taken'))
      await handedOver('taken')
      await dispatcher.acknowledge({ ...first, command_id: 'taken' })
      await dispatcher.dispatch(command('given'))
      await handedOver('given')
      await dispatcher.dispatch(command('held'))
      await tab.got(3)
      await dispatcher.dispatch(command('behind'))
      await dispatcher.dispatch(command('over'))
      await dispatcher.cancel(key('over'))
      expect(await waits()).toEqual({
        away: 'client_not_attached',
        taken: 'outcome',
        given: 'acknowledgement',
        held: 'delivery',
        behind: 'turn',
        over: null,
      })
      expect((await summary()).waits_for).toEqual({
        ...NO_WAITS,
        client_not_attached: 1,
        outcome: 1,
        acknowledgement: 1,
        delivery: 1,
        turn: 1,
      })
    })

    it('is the pause before another attempt', async () => {
      await dispatcher.attach(first, connection(() => Promise.reject(new Error('gone'))).deliver)
      await dispatcher.dispatch(command('c1'))
      await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(1))
      expect(await waits()).toEqual({ c1: 'retry_pause' })
      expect((await summary()).waits_for).toEqual({ ...NO_WAITS, retry_pause: 1 })
    })

    it('is the record of its expiry past the deadline when no node is left to end it', async () => {
      await dispatcher.dispatch(command('c1', { deadline_ms: 1_000 }))
      await dispatcher.dispatch(command('c2'))
      await dispatcher.close()
      clock.advance(1_000)
      expect(await waits()).toEqual({ c1: 'expiry', c2: 'client_not_attached' })
      const { waits_for, by_state, tracked_commands } = await summary()
      expect(waits_for).toEqual({ ...NO_WAITS, expiry: 1, client_not_attached: 1 })
      expect([by_state?.waiting, tracked_commands]).toEqual([2, 2])
    })
  })

  describe('the attempts of a record', () => {
    it('are listed one by one, with outcome and reason', async () => {
      let isGone = true
      const tab = connection(() => isGone && Promise.reject(new Error('gone')))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1', { deadline_ms: 600_000 }))
      await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(1))
      isGone = false
      await advance(60_000)
      await handedOver('c1')
      await advance(60_000)
      await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(2))
      await advance(60_000)
      await tab.got(3)
      await handedOver('c1')
      const node_id = (await status('c1'))?.attempts.last_node_id
      const whole = { node_id, instance_id: 'i1' }
      expect((await status('c1'))?.attempts).toMatchObject({
        count: 3,
        confirmed: 2,
        handed_over_at: at(60_000),
        omitted: 0,
        items: [
          { ...whole, number: 1, at: at(), outcome: 'rejected', ended_at: at(), reason: 'deliver_rejected' },
          { ...whole, number: 2, at: at(60_000), outcome: 'timed_out', ended_at: at(120_000), reason: 'ack_timeout' },
          { ...whole, number: 3, at: at(180_000), outcome: 'handed_over', ended_at: at(180_000), reason: null },
        ],
      })
    })

    it('are the last sixteen, and a number of those before', async () => {
      const tab = connection(() => Promise.reject(new Error('gone')))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1', { deadline_ms: 6_000_000, max_attempts: 20 }))
      for (let i = 1; i <= 18; i++) {
        await tab.got(i)
        await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(i))
        if (i < 18) await advance(60_000)
      }
      const attempts = (await status('c1'))?.attempts
      expect([attempts?.count, attempts?.omitted, attempts?.handed_over_at]).toEqual([18, 2, null])
      expect(attempts?.items.map(({ number }) => number)).toEqual(Array.from({ length: 16 }, (_, i) => i + 3))
      expect(new Set(attempts?.items.map(({ reason }) => reason))).toEqual(new Set(['deliver_rejected']))
    })
  })

  describe('the churn of commands', () => {
    const minute = (after: number) => `${at(after * 60_000).slice(0, 16)}:00.000Z`
    const none = { resulted: 0, failed: 0, expired: 0, cancelled: 0, rejected: 0 }
    const churn = async (filter: DeliveryChurnFilter = {}) =>
      DeliveryChurn.strict().parse(await dispatcher.inspector.deliveryChurn?.(filter, ASK)).items

    it('counts what was admitted and how it ended in each minute, at each node', async () => {
      await dispatcher.dispatch(command('c1', { deadline_ms: 600_000 }))
      await dispatcher.dispatch(command('c2', { client_id: 'phone', deadline_ms: 90_000 }))
      await dispatcher.dispatch(command('c3', { client_id: 'phone' }))
      await dispatcher.dispatch(command('c4', { require_waiter: true }))
      await dispatcher.cancel({ ...key('c3'), client_id: 'phone' })
      await advance(60_000)
      const [before, present] = await churn()
      expect(before).toMatchObject({ minute: minute(0), admitted: 3, ended: { ...none, cancelled: 1, rejected: 1 } })
      const open = { waiting: 2, attempted: 0, acknowledged: 0 }
      expect(present).toEqual({ minute: minute(1), admitted: 0, ended: none, open })
      await advance(60_000)
      const items = await churn()
      expect(items.slice(1)).toEqual([
        present,
        { minute: minute(2), admitted: 0, ended: { ...none, expired: 1 }, open: { ...open, waiting: 1 } },
      ])
      const { items: nodes } = await dispatcher.inspector.listNodes({ limit: 10, cursor: null }, ASK)
      expect(await churn({ node_id: nodes[0]?.node_id as string })).toEqual(
        items.map((item) => ({ ...item, open: null })),
      )
      expect(await churn({ node_id: 'elsewhere' })).toEqual([])
    })

    it('reports the last sixty minutes', async () => {
      for (let i = 0; i < 70; i++) await advance(60_000)
      await dispatcher.dispatch(command('c1'))
      await advance(0)
      const items = await churn()
      expect(items.map((one) => one.minute)).toEqual(Array.from({ length: 60 }, (_, i) => minute(i + 11)))
      expect(items.filter(({ admitted }) => admitted > 0)).toMatchObject([{ minute: minute(70), admitted: 1 }])
    })
  })

  describe('the list of mailboxes', () => {
    it('shows who is attached, where, since when, and how many commands wait', async () => {
      expect(await mailboxes()).toEqual([])
      await open({ maxDeliveriesPerClient: 1 })
      const tab = connection(() => new Promise(() => {}))
      const waiter = await dispatcher.attach(first, tab.deliver)
      clock.advance(1_000)
      await dispatcher.attach({ ...first, client_id: 'phone' }, connection().deliver)
      await dispatcher.attach({ user_id: 'bob', client_id: 'tab', instance_id: 'b1' }, connection().deliver)
      for (const id of ['c1', 'c2', 'c3']) await dispatcher.dispatch(command(id))
      await tab.got(1)
      const [own, ...others] = await mailboxes()
      expect(own).toMatchObject({ ...first, attached_at: at(), waiting_commands: 2 })
      expect(others.map(({ user_id, client_id, attached_at }) => [user_id, client_id, attached_at])).toEqual([
        ['ada', 'phone', at(1_000)],
        ['bob', 'tab', at(1_000)],
      ])
      expect(await mailboxes({}, 1)).toEqual([own, ...others])
      const node_id = own?.node_id ?? ''
      const places = async (filter: MailboxFilter) =>
        (await mailboxes(filter, 1)).map((one) => `${one.user_id}/${one.client_id}`)
      expect(await places({ user_id: 'ada' })).toEqual(['ada/tab', 'ada/phone'])
      expect(await places({ client_id: 'tab' })).toEqual(['ada/tab', 'bob/tab'])
      expect(await places({ user_id: 'bob', client_id: 'tab', node_id })).toEqual(['bob/tab'])
      expect(await places({ user_id: 'bob', client_id: 'phone' })).toEqual([])
      expect(await places({ node_id: 'elsewhere' })).toEqual([])
      expect(await places({ user_id: 'missing' })).toEqual([])
      // Another instance replaces it, and then none.
      const second = await dispatcher.attach(
        { ...first, instance_id: 'i2' },
        connection(() => new Promise(() => {})).deliver,
      )
      await waiter.detach()
      expect((await mailboxes({ user_id: 'ada', client_id: 'tab' })).map(({ instance_id }) => instance_id)).toEqual([
        'i2',
      ])
      await second.detach()
      expect(await places({})).toEqual(['ada/phone', 'bob/tab'])
    })

    it('examines no more mailboxes than allowed, and continues from there', async () => {
      for (let i = 0; i < 20; i++) await dispatcher.attach({ ...first, client_id: `c${i}` }, connection().deliver)
      const few = { ...ASK, limits: { examined: 6 } }
      const seen = await walk<DeliveryMailboxInput>(async (page) => {
        const answer = await dispatcher.inspector.listMailboxes?.({ user_id: 'ada' }, page, few)
        if (!answer) throw new Error('the inspector lists no mailboxes')
        expect(answer.examined).toBeLessThanOrEqual(6)
        return answer
      })
      expect(seen.map(({ client_id }) => client_id)).toEqual(Array.from({ length: 20 }, (_, i) => `c${i}`))
    })

    it('refuses a foreign token', async () => {
      for (const cursor of ['x', '-1', '01', '1e3', '9'.repeat(40), ''])
        await expect(
          (async () => dispatcher.inspector.listMailboxes?.({}, { limit: 1, cursor }, ASK))(),
        ).rejects.toMatchObject({ code: 'invalid_cursor' })
    })
  })

  describe('the latencies of the summary', () => {
    it('are those of the latest ended commands, with the age of the oldest unfinished one', async () => {
      const none = { handover: NO_TIMES, acknowledgement: NO_TIMES, outcome: NO_TIMES, total: NO_TIMES }
      expect(await summary()).toMatchObject({ latency: none, oldest_open_age_ms: null })
      for (const [i, id] of ['c1', 'c2', 'c3', 'c4'].entries()) {
        await dispatcher.dispatch(command(id, { deadline_ms: 600_000 }))
        clock.advance(100 * (i + 1))
        const waiter = await dispatcher.attach(first, connection().deliver)
        await handedOver(id)
        clock.advance(10)
        await dispatcher.acknowledge({ ...first, command_id: id })
        await waiter.detach()
        clock.advance(1_000)
        if (i < 3) await dispatcher.settle({ ...key(id), state: 'resulted' })
      }
      await dispatcher.dispatch(command('c5', { deadline_ms: 600_000 }))
      await dispatcher.dispatch(command('c6', { require_waiter: true, client_id: 'phone' }))
      clock.advance(5_000)
      const { latency, oldest_open_age_ms } = await summary()
      expect(latency).toEqual({
        handover: { p50_ms: 200, p95_ms: 300, p99_ms: 300, sample_size: 3 },
        acknowledgement: { p50_ms: 10, p95_ms: 10, p99_ms: 10, sample_size: 3 },
        outcome: { p50_ms: 1_000, p95_ms: 1_000, p99_ms: 1_000, sample_size: 3 },
        total: { p50_ms: 1_210, p95_ms: 1_310, p99_ms: 1_310, sample_size: 3 },
      })
      // That of c4, which is acknowledged and has not ended.
      expect(oldest_open_age_ms).toBe(6_410)
      // The node counts them in its histograms as they end.
      const [node] = (await dispatcher.inspector.listNodes({ limit: 1, cursor: null }, ASK)).items
      const histograms = Object.entries(node?.latency ?? {}).flatMap(([step, histogram]) =>
        'counts' in histogram ? [[step, histogram.counts.reduce((a, b) => a + b, 0), histogram.sum_ms]] : [],
      )
      expect(histograms).toEqual([
        ['handover', 3, 600],
        ['acknowledgement', 3, 30],
        ['outcome', 3, 3_000],
        ['total', 3, 3_630],
      ])
      expect(node?.latency?.handover.counts.slice(0, 8)).toEqual([0, 0, 0, 0, 1, 1, 1, 0])
    })
  })

  it('lists the newest first, and continues while more are admitted', async () => {
    for (let i = 0; i < 30; i++) await dispatcher.dispatch(command(`c${i}`, i % 2 ? {} : { user_id: 'bob' }))
    for (const filter of [
      {},
      { user_id: 'ada' },
      { state: 'waiting' as const },
      { overdue: false },
      { scope_id: 'bob' },
    ]) {
      const ids = async (order: Order, limit: number) =>
        (await commands(filter, limit, order)).map(({ command_id }) => command_id)
      const oldest = await ids('oldest', 7)
      expect(oldest).toEqual(oldest.toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1))))
      expect(await ids('newest', 7)).toEqual(oldest.toReversed())
      expect(await ids('newest', 1)).toEqual(oldest.toReversed())
    }
    const first = await dispatcher.inspector.listCommands?.({}, { limit: 10, cursor: null, order: 'newest' }, ASK)
    await dispatcher.dispatch(command('late'))
    const cursor = first?.next_cursor ?? null
    const second = await dispatcher.inspector.listCommands?.({}, { limit: 100, cursor, order: 'newest' }, ASK)
    const seen = [...(first?.items ?? []), ...(second?.items ?? [])].map(({ command_id }) => command_id)
    expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => `c${29 - i}`))
    // No dispatcher is left that would end them.
    await dispatcher.close()
    clock.advance(60_000)
    const late = await commands({ overdue: true }, 4, 'newest')
    expect(late.map(({ command_id }) => command_id)).toEqual(['late', ...seen])
  })

  it('lists the commands of an action', async () => {
    await dispatcher.dispatch(command('c1'))
    await dispatcher.dispatch(command('c2', { action: 'open' }))
    await dispatcher.dispatch(command('c3', { action: 'open' }))
    await dispatcher.cancel(key('c3'))
    const ids = async (filter: Parameters<typeof commands>[0]) =>
      (await commands(filter, 1)).map(({ command_id }) => command_id)
    expect(await ids({ action: 'open' })).toEqual(['c2', 'c3'])
    expect(await ids({ action: 'open', state: 'cancelled' })).toEqual(['c3'])
    expect(await ids({ action: 'close' })).toEqual([])
  })
}
