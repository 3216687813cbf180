/** How a command ends: once, for good, and with a reason. */
import { describe, expect, it } from 'vitest'
import { command, connection, first, key, second } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

export function endContract({ clock, dispatcher, advance, status, terminal }: Subject): void {
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

    it.each(ends)('by %s prevents delivery of a queued command', async (_, finish) => {
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

    it('aborts a signal that is first read afterwards, and the same one whenever it is read', async () => {
      const given: { readonly signal: AbortSignal }[] = []
      const tab = connection()
      const unread = { signal: new AbortController().signal }
      await dispatcher.attach(first, (handed, options) => {
        given.push(options)
        return tab.deliver(handed, unread)
      })
      const commands = ['c1', 'c2', 'c3']
      for (const id of commands) await dispatcher.dispatch(command(id))
      await tab.got(commands.length)
      await dispatcher.cancel(key('c1'))
      await dispatcher.settle({ ...key('c2'), state: 'resulted' })
      expect(given.map(({ signal }) => signal.aborted)).toEqual([true, false, false])
      expect(given[0]?.signal.reason).toMatchObject({ code: 'cancelled' })
      for (const options of given) expect(options.signal).toBe(options.signal)
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
      // A store retains it until the next full second.
      await advance(1_000)
      expect(await status('c1')).toBeNull()
      expect((await dispatcher.dispatch(command('c1', { action: 'other' }))).admission.state).toBe('admitted')
    })
  })
}
