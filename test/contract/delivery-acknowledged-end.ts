/** An end that is the client's acknowledgement too: both in one step, or neither. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { SettleInput } from '../../src/internal/contract/delivery-dispatch.js'
import { at } from './clock.js'
import { command, connection, first, key, second } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

const NONE = { state: 'none', at: null, instance_id: null }

export function acknowledgedEndContract({
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
  describe('an end that acknowledges', () => {
    const settle = (instance: typeof first, more: Partial<SettleInput> = {}) =>
      dispatcher.settle({ ...instance, command_id: 'c1', state: 'resulted', acknowledge: true, ...more })
    const acknowledgement = async (id = 'c1') => (await status(id))?.acknowledgement
    const counters = async () => {
      await dispatcher.reconcile()
      return (await node()).counters
    }

    beforeEach(async () => {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await dispatcher.dispatch(command('c1'))
      await tab.got(1)
    })

    it.each([
      ['resulted', undefined, null],
      ['failed', 'no_disk', 'no_disk'],
      ['failed', 'No disk!', 'other'],
    ] as const)('as %s, reason %s, is recorded as both, and counted as both', async (state, reason, kept) => {
      clock.advance(3)
      expect(await settle(first, { state, reason })).toBe(true)
      expect(await status('c1')).toMatchObject({
        acknowledgement: { state: 'acknowledged', at: at(3), instance_id: 'i1' },
        terminal: { state, at: at(3), reason: kept },
      })
      const { acknowledgement, outcome } = await counters()
      expect([acknowledgement, outcome]).toEqual([{ acknowledged: 1 }, { [state]: 1 }])
      expect(await summary()).toMatchObject({ tracked_commands: 0, oldest_queued_age_ms: null })
      expect(await tenants()).toEqual([])
    })

    it('leaves the acknowledgement that is there already, whosever it is', async () => {
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      await dispatcher.attach(second, connection().deliver)
      clock.advance(3)
      expect(await settle(second)).toBe(true)
      expect(await acknowledgement()).toEqual({ state: 'acknowledged', at: at(), instance_id: 'i1' })
      expect(await terminal('c1')).toEqual({ state: 'resulted', at: at(3), reason: null })
      const { acknowledgement: words, outcome } = await counters()
      expect([words, outcome]).toEqual([{ acknowledged: 1 }, { resulted: 1 }])
    })

    it('is neither when it comes from a former instance', async () => {
      await dispatcher.attach(second, connection().deliver)
      expect(await settle(first)).toBe(false)
      expect(await acknowledgement()).toEqual(NONE)
      expect(await terminal('c1')).toBeNull()
      const { acknowledgement: words, outcome, other } = await counters()
      expect([words, outcome, other.settle_fenced]).toEqual([{}, {}, 1])
      expect(await settle(second)).toBe(true)
      expect((await acknowledgement())?.instance_id).toBe('i2')
    })

    it('is neither for an ended nor for an unknown command', async () => {
      expect(await settle(first, { acknowledge: false, instance_id: undefined })).toBe(true)
      await dispatcher.dispatch(command('late'))
      clock.advance(30_000)
      for (const command_id of ['c1', 'late', 'c9']) expect(await settle(first, { command_id })).toBe(false)
      for (const id of ['c1', 'late']) expect(await acknowledgement(id)).toEqual(NONE)
      expect(await terminal('c1')).toEqual({ state: 'resulted', at: at(), reason: null })
      expect((await terminal('late'))?.state).toBe('expired')
      expect((await counters()).acknowledgement).toEqual({})
    })

    it('is refused without an instance, and changes nothing', async () => {
      for (const input of [{ ...key('c1') }, { ...key('c1'), instance_id: undefined }, { ...key('c9') }])
        await expect(async () =>
          dispatcher.settle({ ...input, state: 'resulted', acknowledge: true }),
        ).rejects.toMatchObject({ code: 'invalid_input', message: expect.stringContaining('instance_id: ') })
      expect(await acknowledgement()).toEqual(NONE)
      expect(await terminal('c1')).toBeNull()
    })

    it.each([false, undefined])('is only an end where acknowledge is %s', async (acknowledge) => {
      expect(await settle(first, { acknowledge })).toBe(true)
      expect(await acknowledgement()).toEqual(NONE)
      expect((await terminal('c1'))?.state).toBe('resulted')
      expect((await counters()).acknowledgement).toEqual({})
    })

    it('ends what waits in the mailbox, and lets the next one pass what is in hand', async () => {
      await open({ maxDeliveriesPerClient: 1 })
      const stuck = connection(() => new Promise(() => {}))
      await dispatcher.attach(second, stuck.deliver)
      for (const id of ['c2', 'c3', 'c4']) await dispatcher.dispatch(command(id))
      await stuck.got(1)
      for (const command_id of ['c3', 'c2']) expect(await settle(second, { command_id })).toBe(true)
      await stuck.got(2)
      expect(stuck.ids()).toEqual(['c2', 'c4'])
      expect(await status('c3')).toMatchObject({
        attempts: { count: 0 },
        acknowledgement: { state: 'acknowledged', instance_id: 'i2' },
      })
    })

    it('leads to no other attempt, and nothing changes it', async () => {
      await settle(first)
      const record = await status('c1')
      expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(false)
      expect(await dispatcher.cancel(key('c1'))).toBe(false)
      const tab = connection()
      await dispatcher.attach(second, tab.deliver)
      await advance(20_000)
      await dispatcher.dispatch(command('c2'))
      await tab.got(1)
      expect(tab.ids()).toEqual(['c2'])
      expect(await status('c1')).toEqual(record)
    })
  })
}
