/** What the inspector of a dispatcher tells in sums and lists. */
import { describe, expect, it } from 'vitest'
import { ASK, at, walk } from './clock.js'
import { command, connection, eventually, first, key } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

/** The summary of no commands. */
const NONE = {
  tracked_commands: 0,
  due_commands: 0,
  waiting_for_client: 0,
  oldest_deadline_at: null,
  oldest_queued_age_ms: null,
  sample_size: 0,
}

export function inspectionContract({
  clock,
  dispatcher,
  open,
  advance,
  status,
  terminal,
  summary,
  tenants,
  node,
}: Subject): void {
  describe('the summary and the lists', () => {
    it('are empty and honest about it before any command', async () => {
      expect(await summary()).toMatchObject({ ...NONE, observed_at: at() })
      expect(await tenants()).toEqual([])
    })

    it('tell tracked from due, and sample the oldest age of what is not acknowledged', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      clock.advance(100)
      await dispatcher.dispatch(command('c2', { client_id: 'phone', deadline_ms: 5_000 }))
      clock.advance(50)
      expect(await summary()).toMatchObject({
        tracked_commands: 2,
        by_state: { waiting: 1, attempted: 1, acknowledged: 0 },
        due_commands: 0,
        waiting_for_client: 1,
        oldest_deadline_at: at(5_100),
        oldest_queued_age_ms: 150,
        sample_size: 2,
      })
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      expect(await summary()).toMatchObject({ tracked_commands: 2, oldest_queued_age_ms: 50, sample_size: 1 })
    })

    it('count a due command by whether its client is attached', async () => {
      await open({ maxDeliveriesPerClient: 1 })
      const due = async () => {
        const { tracked_commands, due_commands, waiting_for_client } = await summary()
        return [tracked_commands, due_commands, waiting_for_client]
      }
      for (let i = 0; i < 3; i++) await dispatcher.dispatch(command(`c${i}`))
      for (let i = 0; i < 2; i++) await dispatcher.dispatch(command(`p${i}`, { client_id: 'phone' }))
      expect(await due()).toEqual([5, 0, 5])
      // Its first command is in hand, and stays there.
      const tab = connection(() => new Promise(() => {}))
      const waiter = await dispatcher.attach(first, tab.deliver)
      await tab.got(1)
      expect(await due()).toEqual([5, 2, 2])
      await dispatcher.dispatch(command('c3'))
      expect(await due()).toEqual([6, 3, 2])
      await dispatcher.cancel(key('c3'))
      expect(await due()).toEqual([5, 2, 2])
      await waiter.detach()
      expect(await due()).toEqual([5, 0, 4])
    })

    it('count an overdue command as recorded until its end is, and as one that waits for its expiry', async () => {
      const { getTenant } = dispatcher.inspector
      // One whose attempt has failed, one that is acknowledged, and one that waits; then one of each of the last two that stays.
      await dispatcher.attach(
        first,
        connection(({ command_id }) => command_id === 'c1' && Promise.reject(new Error('gone'))).deliver,
      )
      for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id, { deadline_ms: 1_000 }))
      await dispatcher.dispatch(command('c3', { client_id: 'phone', deadline_ms: 1_000 }))
      await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(1))
      await dispatcher.dispatch(command('c4', { scope_id: 'red' }))
      for (const id of ['c2', 'c4']) {
        await eventually(async () => expect((await status(id))?.attempts.last_outcome).toBe('handed_over'))
        await dispatcher.acknowledge({ ...first, command_id: id })
      }
      await dispatcher.dispatch(command('c5', { client_id: 'phone', scope_id: 'red' }))
      clock.advance(999)
      const by_state = { waiting: 2, attempted: 1, acknowledged: 2 }
      expect(await summary()).toMatchObject({
        tracked_commands: 5,
        by_state,
        oldest_deadline_at: at(1_000),
        sample_size: 3,
      })
      expect(await getTenant?.('ada', ASK)).toMatchObject({ reserved_commands: 3 })
      // No node is left to end them.
      await dispatcher.close()
      clock.advance(1)
      expect(await summary()).toMatchObject({
        tracked_commands: 5,
        by_state,
        waits_for: { expiry: 3, client_not_attached: 1, outcome: 1, retry_pause: 0 },
        due_commands: 0,
        waiting_for_client: 1,
        oldest_deadline_at: at(1_000),
        oldest_queued_age_ms: 1_000,
        oldest_open_age_ms: 1_000,
        sample_size: 3,
      })
      const ada = { scope_id: 'ada', reserved_commands: 3, oldest_deadline_at: at(1_000) }
      expect(await getTenant?.('ada', ASK)).toMatchObject(ada)
      const red = { scope_id: 'red', reserved_commands: 2, oldest_deadline_at: at(30_000) }
      expect(await tenants()).toMatchObject([ada, red])
      for (const id of ['c1', 'c2']) expect(await status(id)).toMatchObject({ overdue: true, terminal: null })
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

    it('examine no more scopes than allowed, report how many, and continue from there', async () => {
      for (let i = 0; i < 7; i++) await dispatcher.dispatch(command(`c${i}`, { scope_id: `s${i}` }))
      expect(await dispatcher.inspector.listTenants({ limit: 100, cursor: null }, ASK)).toMatchObject({ examined: 7 })
      const few = { ...ASK, limits: { examined: 3 } }
      const seen = await walk(async (page) => {
        const answer = await dispatcher.inspector.listTenants(page, few)
        expect(answer.examined).toBeLessThanOrEqual(3)
        return answer
      })
      expect(seen.map(({ scope_id }) => scope_id).sort()).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6'])
    })

    it('show what a scope was held to last, and find one by its id', async () => {
      let most = 2
      await open({ capacity: (scope) => (scope === 'open' ? Number.POSITIVE_INFINITY : most) })
      const red = async () => {
        const listed = (await tenants()).find(({ scope_id }) => scope_id === 'red')
        expect(await dispatcher.inspector.getTenant?.('red', ASK)).toEqual(listed ?? null)
        return listed && [listed.reserved_commands, listed.capacity]
      }
      expect(await red()).toBeUndefined()
      await dispatcher.dispatch(command('c1', { scope_id: 'red' }))
      expect(await red()).toEqual([1, 2])
      most = 5
      await dispatcher.dispatch(command('c2', { scope_id: 'red' }))
      expect(await red()).toEqual([2, 5])
      most = 1
      expect((await dispatcher.dispatch(command('c3', { scope_id: 'red' }))).admission.state).toBe('rejected')
      expect(await red()).toEqual([2, 1])
      await dispatcher.dispatch(command('c4', { scope_id: 'open' }))
      expect(await dispatcher.inspector.getTenant?.('open', ASK)).toMatchObject({
        reserved_commands: 1,
        capacity: null,
      })
      for (const id of ['c1', 'c2']) await dispatcher.cancel(key(id))
      expect(await red()).toBeUndefined()
      most = 3
      await dispatcher.dispatch(command('c5', { scope_id: 'red' }))
      expect(await red()).toEqual([1, 3])
    })

    it('refuse a foreign token', async () => {
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

    it('never show a negative age after the clock steps back ten minutes, nor lose a command when it advances', async () => {
      await dispatcher.dispatch(command('c1', { deadline_ms: 3_600_000 }))
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
}
