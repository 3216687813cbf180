/** How a dispatcher hands commands over to who waits for them. */
import { describe, expect, it } from 'vitest'
import { at } from './clock.js'
import { command, connection, eventually, first, key, second } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

export function handoverContract({ clock, dispatcher, open, advance, status, node }: Subject): void {
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
        remaining_ms: 30_000,
      })
    })

    it('delivers other commands of a client while one deliver() hangs', async () => {
      const tab = connection(({ command_id }) => command_id === 'c1' && new Promise(() => {}))
      await dispatcher.attach(first, tab.deliver)
      for (const id of ['c1', 'c2', 'c3', 'c4']) await dispatcher.dispatch(command(id))
      await tab.got(4)
      expect(tab.ids()).toEqual(['c1', 'c2', 'c3', 'c4'])
      expect((await status('c1'))?.attempts.last_outcome).toBeNull()
      await eventually(async () => expect((await status('c4'))?.attempts.last_outcome).toBe('handed_over'))
      // One that comes later does not wait either, and the node has one client in hand.
      await dispatcher.dispatch(command('c5'))
      await tab.got(5)
      await eventually(async () => expect((await status('c5'))?.attempts.last_outcome).toBe('handed_over'))
      expect((await node()).active_drainers).toBe(1)
      await dispatcher.cancel(key('c1'))
      await eventually(async () => expect((await node()).active_drainers).toBe(0))
    })

    it('delivers other commands while the retry of one hangs', async () => {
      const tab = connection(({ command_id }) => command_id === 'c1' && new Promise(() => {}))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
      await advance(5_000)
      await advance(200)
      await tab.got(2)
      await dispatcher.dispatch(command('c2'))
      await tab.got(3)
      expect(tab.ids()).toEqual(['c1', 'c1', 'c2'])
    })

    it('opens at most maxDeliveriesPerClient calls of deliver for a client', async () => {
      await open({ maxDeliveriesPerClient: 2 })
      const ends = new Map<string, () => void>()
      const tab = connection(({ command_id }) => new Promise<void>((resolve) => ends.set(command_id, resolve)))
      await dispatcher.attach(first, tab.deliver)
      for (const id of ['c1', 'c2', 'c3', 'c4']) await dispatcher.dispatch(command(id))
      await tab.got(2)
      // Another client has calls of its own.
      const phone = connection(() => new Promise(() => {}))
      await dispatcher.attach({ ...first, client_id: 'phone' }, phone.deliver)
      for (const id of ['p1', 'p2']) await dispatcher.dispatch(command(id, { client_id: 'phone' }))
      await phone.got(2)
      expect(tab.ids()).toEqual(['c1', 'c2'])
      ends.get('c2')?.()
      await tab.got(3)
      // An acknowledged command makes room, too.
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      await tab.got(4)
      expect(tab.ids()).toEqual(['c1', 'c2', 'c3', 'c4'])
    })

    it('waits for each deliver of a client with maxDeliveriesPerClient 1', async () => {
      await open({ maxDeliveriesPerClient: 1 })
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

    it('delivers no command whose deadline passed before a consumer attached', async () => {
      await dispatcher.dispatch(command('c1', { deadline_ms: 500 }))
      await dispatcher.dispatch(command('c2'))
      clock.advance(500)
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await tab.got(1)
      expect(tab.ids()).toEqual(['c2'])
      expect(await status('c1')).toMatchObject({ attempts: { count: 0 }, terminal: { state: 'expired' } })
    })

    it('records the attempt and its delivery', async () => {
      await dispatcher.attach(first, connection().deliver)
      clock.advance(7)
      await dispatcher.dispatch(command('c1'))
      await eventually(async () =>
        expect((await status('c1'))?.attempts).toEqual({
          count: 1,
          confirmed: 1,
          handed_over_at: at(7),
          last_at: at(7),
          last_node_id: (await node()).node_id,
          last_outcome: 'handed_over',
          items: [
            {
              number: 1,
              at: at(7),
              node_id: (await node()).node_id,
              instance_id: first.instance_id,
              outcome: 'handed_over',
              ended_at: at(7),
              reason: null,
            },
          ],
          omitted: 0,
        }),
      )
      expect((await status('c1'))?.terminal).toBeNull()
    })

    it('counts no attempt without a consumer', async () => {
      await dispatcher.dispatch(command('c1'))
      await advance(20_000)
      expect((await status('c1'))?.attempts.count).toBe(0)
      expect((await status('c1'))?.recovery.count).toBe(0)
    })

    it('stops delivering once the consumer detaches, and continues with the next one', async () => {
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
      await open({ maxDeliveriesPerClient: 1 })
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
}
