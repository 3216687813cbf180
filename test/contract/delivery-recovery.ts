/** How a dispatcher recovers from failed deliveries. */
import { describe, expect, it } from 'vitest'
import { at } from './clock.js'
import { command, connection, eventually, first } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

export function recoveryContract({ dispatcher, open, advance, status, terminal }: Subject): void {
  describe('recovery', () => {
    const attempts = async (id: string) => (await status(id))?.attempts

    it('tries again, after a pause, what was not acknowledged in time', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await eventually(async () => expect(await attempts('c1')).toMatchObject({ last_outcome: 'handed_over' }))
      await advance(4_999)
      expect((await status('c1'))?.recovery.count).toBe(0)
      await advance(1)
      expect((await status('c1'))?.recovery).toEqual({ count: 1, last_at: at(5_000), reason: 'ack_timeout' })
      expect(await attempts('c1')).toMatchObject({ count: 1, confirmed: 1, last_outcome: 'timed_out' })
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

    it('treats a deliver() that never settles as timed out, and continues with the mailbox', async () => {
      await open({ maxDeliveriesPerClient: 1 })
      const tab = connection((given) => (given.command_id === 'c1' ? new Promise(() => {}) : undefined))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await dispatcher.dispatch(command('c2'))
      await tab.got(1)
      await advance(5_000)
      await tab.got(2)
      expect(tab.ids()).toEqual(['c1', 'c2'])
      expect(await attempts('c1')).toMatchObject({ count: 1, confirmed: 0, last_outcome: 'timed_out' })
      expect((await status('c1'))?.recovery).toMatchObject({ count: 1, reason: 'deliver_timed_out' })
    })

    it('fails a command once its attempts are exhausted', async () => {
      const tab = connection(() => Promise.reject(new Error('gone')))
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1', { max_attempts: 3, deadline_ms: 3_600_000 }))
      for (let count = 1; count <= 3; count++) {
        await tab.got(count)
        await eventually(async () => expect(await attempts('c1')).toMatchObject({ count, last_outcome: 'rejected' }))
        await advance(5_000)
      }
      expect(await terminal('c1')).toMatchObject({ state: 'failed', reason: 'attempts_exhausted' })
      expect((await status('c1'))?.recovery.count).toBe(2)
      expect(tab.received).toHaveLength(3)
    })

    it('never redelivers an acknowledged command', async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1', { deadline_ms: 3_600_000 }))
      await tab.got(1)
      expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(true)
      await advance(600_000)
      await dispatcher.dispatch(command('c2'))
      await tab.got(2)
      expect(tab.ids()).toEqual(['c1', 'c2'])
    })
  })
}
