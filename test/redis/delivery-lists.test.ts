/** The lists of commands in a store, and their summary: overwritten records, the permissions of an observer, and the cost. */
import { expect, it, onTestFinished } from 'vitest'
import type { CommandFilter, DeliveryCommandInput, DeliveryInspector } from '../../src/internal/contract/delivery.js'
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { ASK, at, createClock, walk } from '../contract/clock.js'
import { command, connection, first, key } from '../contract/delivery-commands.js'
import { describeNode } from './dispatcher-node.js'
import { connectObserver } from './observer.js'

describeNode('the lists of commands in a store', ({ server, make, observe }) => {
  const keyOf = (deploymentId: string, name: string) => `relayscope:{${deploymentId}:0}:delivery:${name}`
  const states = async (inspector: DeliveryInspector, filter: CommandFilter = {}, ask = ASK) => {
    const items = await walk(async (page) => {
      const answer = await inspector.listCommands?.(filter, page, ask)
      if (!answer) throw new Error('the inspector lists no commands')
      return answer
    }, 2)
    return items.map(({ command_id, state }) => `${command_id} ${state}`)
  }
  /** The remaining lists by user and by scope. */
  const lists = async (deploymentId: string) => {
    const names = await server().cli('KEYS', keyOf(deploymentId, 'of:*'))
    return names.split('\n').filter(Boolean).sort()
  }

  it('drop a rejected dispatch once its command is admitted', async () => {
    const { deploymentId, dispatcher } = make()
    await dispatcher.dispatch(command('c1', { require_waiter: true, scope_id: 'red' }))
    expect(await lists(deploymentId)).toContain(keyOf(deploymentId, 'of:red'))
    await dispatcher.dispatch(command('c1', { scope_id: 'blue' }))
    expect(await lists(deploymentId)).toEqual(['of:ada', 'of:blue'].map((name) => keyOf(deploymentId, name)))
  })

  it('skip records that other applications removed or replaced, and drop them in time', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    for (const id of ['c1', 'c2', 'c3', 'c4']) await dispatcher.dispatch(command(id, { scope_id: 'team' }))
    await dispatcher.cancel(key('c4'))
    await server().cli('DEL', keyOf(deploymentId, 'command:ada:tab:c1'))
    await server().cli('DEL', keyOf(deploymentId, 'command:ada:tab:c2'))
    await server().cli('SET', keyOf(deploymentId, 'command:ada:tab:c2'), 'else')
    const seen = observe(deploymentId, { now: clock.now })
    const onError: unknown[] = []
    const ask = { ...ASK, onError: (error: unknown) => void onError.push(String(error)) }
    for (const filter of [{}, { user_id: 'ada' }, { scope_id: 'team' }])
      expect(await states(seen, filter, ask)).toEqual(['c3 waiting', 'c4 cancelled'])
    expect(await states(seen, { state: 'failed' })).toEqual([])
    expect(new Set(onError)).toEqual(
      new Set([`BadRow: ${keyOf(deploymentId, 'command:ada:tab:c2')} has the wrong type`]),
    )
    // Deadlines are in buckets of 250 ms, so the end may be recorded that much later.
    for (const ms of [30_250, 3_601_000]) {
      clock.advance(ms)
      await dispatcher.reconcile()
    }
    expect(await lists(deploymentId)).toEqual([])
    expect((await seen.summary(ASK)).tracked_commands).toBe(0)
  })

  it.each(['newest', undefined] as const)('are searched for a command without reading others (%s)', async (order) => {
    const { deploymentId, dispatcher } = make()
    for (let i = 0; i < 60; i++) await dispatcher.dispatch(command(`c${i}`, { user_id: `u${i % 7}` }))
    // A node reads, too: the summary, each minute.
    await dispatcher.close()
    const reads = async () => {
      const stats = await server().cli('INFO', 'commandstats')
      return Number(/cmdstat_getrange:calls=(\d+)/.exec(stats)?.[1] ?? 0)
    }
    const inspector = observe(deploymentId)
    const before = await reads()
    const found: string[] = []
    let [cursor, pages, examined]: [string | null, number, number] = [null, 0, 0]
    do {
      const ask = { ...ASK, limits: { examined: 9 } }
      const page: PageQuery = { limit: 5, cursor, ...(order && { order }) }
      const listed: Page<DeliveryCommandInput> | undefined = await inspector.listCommands?.(
        { command_id: 'c17' },
        page,
        ask,
      )
      found.push(...(listed?.items ?? []).map(({ user_id, command_id }) => `${user_id} ${command_id}`))
      examined += listed?.examined ?? 0
      cursor = listed?.next_cursor ?? null
      pages++
    } while (cursor !== null && pages < 100)
    expect(found).toEqual(['u3 c17'])
    expect(examined).toBeGreaterThanOrEqual(60)
    // A page ends at a command, whose record has the place at which the next one continues.
    expect((await reads()) - before).toBeLessThan(order ? 100 : 5)
  })

  it('are readable with the documented permissions, and so is the summary after commands expired', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1', { deadline_ms: 1_000 }))
    await dispatcher.dispatch(command('c2', { client_id: 'away', deadline_ms: 1_000 }))
    await dispatcher.dispatch(command('c3', { client_id: 'away', deadline_ms: 60_000 }))
    await tab.got(1)
    await dispatcher.close()
    clock.advance(2_000)
    const observer = await connectObserver('ioredis', [server()], deploymentId)
    onTestFinished(() => observer.close())
    const { delivery } = redisComposition({ client: observer.client, deploymentId, now: clock.now }).inspectors
    if (!delivery) throw new Error('the composition has no delivery inspector')
    expect(await states(delivery, { overdue: true })).toEqual(['c1 attempted', 'c2 waiting'])
    expect(await states(delivery, { state: 'waiting', scope_id: 'ada' })).toEqual(['c2 waiting', 'c3 waiting'])
    expect(await delivery.summary(ASK)).toMatchObject({
      tracked_commands: 3,
      due_commands: 0,
      waiting_for_client: 1,
      oldest_queued_age_ms: 2_000,
      sample_size: 3,
    })
  })
})

describeNode('the summary of a store', ({ server, make, observe }) => {
  type Dispatcher = ReturnType<typeof make>['dispatcher']
  const ids = (count: number) => Array.from({ length: count }, (_, i) => `many-${i}`)
  async function dispatchMany(dispatcher: Dispatcher, count: number, more: Partial<ReturnType<typeof command>> = {}) {
    const all = ids(count)
    for (let i = 0; i < count; i += 500)
      await Promise.all(all.slice(i, i + 500).map((id) => dispatcher.dispatch(command(id, more))))
  }
  const cancelMany = async (dispatcher: Dispatcher, count: number) => {
    await dispatchMany(dispatcher, count)
    await Promise.all(ids(count).map((id) => dispatcher.cancel({ ...key(id), reason: 'user_left' })))
  }
  const open = { now: createClock().now, capacity: 20_000, commandTimeoutMs: 60_000 }
  /** Commands that the store runs for one summary: the fewest of some, because nodes report in between. */
  async function costOf(inspector: DeliveryInspector) {
    async function commands() {
      const stats = await server().cli('INFO', 'commandstats')
      return [...stats.matchAll(/cmdstat_(?!info)[^:]+:calls=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0)
    }
    let fewest = Number.POSITIVE_INFINITY
    for (let i = 0; i < 8; i++) {
      const before = await commands()
      await inspector.summary(ASK)
      fewest = Math.min(fewest, (await commands()) - before)
    }
    return fewest
  }

  it('costs the same however many open and ended commands are retained', async () => {
    const { deploymentId, dispatcher } = make(open)
    const seen = observe(deploymentId, { now: open.now })
    await cancelMany(dispatcher, 300)
    await dispatchMany(dispatcher, 150, { client_id: 'away' })
    const few = await costOf(seen)
    // Open commands among many that have ended, and many open ones before them.
    await dispatchMany(dispatcher, 9_000, { user_id: 'bob', require_waiter: true })
    await dispatchMany(dispatcher, 3_000, { client_id: 'elsewhere' })
    await dispatcher.reconcile()
    expect((await seen.summary(ASK)).by_state).toMatchObject({ waiting: 3_150, cancelled: 300, rejected: 9_000 })
    expect((await costOf(seen)) / few).toBeLessThan(1.5)
    await Promise.all(ids(150).map((id) => dispatcher.cancel({ ...key(id), client_id: 'away' })))
    await dispatcher.reconcile()
    expect(await seen.summary(ASK)).toMatchObject({ oldest_open_age_ms: 0, sample_size: 100 })
    expect((await costOf(seen)) / few).toBeLessThan(1.5)
  })

  it('leaves out all records whose retention has ended, before and after they are deleted', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ ...open, now: clock.now })
    const seen = observe(deploymentId, { now: clock.now })
    await cancelMany(dispatcher, 2_000)
    await dispatchMany(dispatcher, 100, { client_id: 'away', require_waiter: true })
    clock.advance(1_800_000)
    await dispatcher.dispatch(command('c1'))
    await dispatcher.cancel(key('c1'))
    clock.advance(1_801_000)
    const one = { by_state: { cancelled: 1, rejected: 0 }, by_reason: { unspecified: 1 } }
    expect(await seen.summary(ASK)).toMatchObject(one)
    clock.advance(10_000)
    for (const _ of [1, 2, 3]) await dispatcher.reconcile()
    const { by_state, by_reason } = await seen.summary(ASK)
    expect(by_state).toMatchObject(one.by_state)
    expect(by_reason).toEqual(one.by_reason)
  })

  it('leaves out a record whose retention was over before a node recorded its end', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    await dispatcher.dispatch(command('c1', { deadline_ms: 1_000 }))
    // Records are deleted chunk by chunk: another one of it stays.
    await dispatcher.dispatch(command('c2', { deadline_ms: 86_000_000 }))
    await dispatcher.close()
    clock.advance(7_200_000)
    const { dispatcher: later } = make({ deploymentId, now: clock.now })
    for (const _ of [1, 2]) {
      await later.reconcile()
      const { by_state, by_reason } = await later.inspector.summary(ASK)
      expect(by_state).toMatchObject({ waiting: 1, expired: 0 })
      expect(by_reason).toEqual({})
    }
    expect(await server().cli('EXISTS', `relayscope:{${deploymentId}:0}:delivery:command:ada:tab:c1`)).toBe('0')
  })

  it('has the earliest deadline of an open command behind many that have ended', async () => {
    const { dispatcher } = make(open)
    await cancelMany(dispatcher, 2_500)
    await dispatcher.dispatch(command('c1', { deadline_ms: 60_000 }))
    for (const _ of [1, 2, 3]) await dispatcher.reconcile()
    expect((await dispatcher.inspector.summary(ASK)).oldest_deadline_at).toBe(at(60_000))
  })

  it('takes latencies from the commands that ended last, whenever they were admitted', async () => {
    const clock = createClock()
    const { dispatcher } = make({ ...open, now: clock.now })
    for (const id of ['c1', 'c2', 'c3']) await dispatcher.dispatch(command(id))
    clock.advance(1_000)
    await cancelMany(dispatcher, 300)
    clock.advance(1_000)
    for (const id of ['c1', 'c2', 'c3']) await dispatcher.cancel(key(id))
    const { latency } = await dispatcher.inspector.summary(ASK)
    expect(latency?.total).toEqual({ p50_ms: 0, p95_ms: 0, p99_ms: 2_000, sample_size: 100 })
  })
})
