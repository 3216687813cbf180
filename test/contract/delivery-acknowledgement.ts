/** Whose acknowledgement of a command counts, and what it says. */
import { beforeEach, describe, expect, it } from 'vitest'
import { at } from './clock.js'
import { client, command, connection, first, key, second } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

export function acknowledgementContract({ clock, dispatcher, status, terminal, summary, node }: Subject): void {
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

    it('that refuses what was acknowledged is recorded in its place, and ends the command', async () => {
      await ack(first)
      await dispatcher.attach(second, connection().deliver)
      clock.advance(3)
      expect(await ack(second, { state: 'refused' })).toBe(true)
      expect(await status('c1')).toMatchObject({
        acknowledgement: { state: 'refused', at: at(3), instance_id: 'i2' },
        terminal: { state: 'failed', at: at(3), reason: 'refused' },
      })
      expect(await summary()).toMatchObject({ tracked_commands: 0, latency: { acknowledgement: { p50_ms: 3 } } })
      await dispatcher.reconcile()
      expect((await node()).counters).toMatchObject({ acknowledgement: { acknowledged: 1, refused: 1 } })
    })
  })
}
