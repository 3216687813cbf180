/** What the list of commands tells: each retained one once, where it stands, under every filter. */
import { describe, expect, it } from 'vitest'
import { type CommandFilter, CommandState, type DeliveryCommand } from '../../src/internal/contract/delivery.js'
import { addressOf, admitsCommand } from '../../src/internal/contract/delivery-rules.js'
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import { ASK, at, FIRST } from './clock.js'
import { command, connection, eventually, first, key } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

export function listContract({ clock, dispatcher, open, advance, status, commands }: Subject): void {
  const states = async (filter: CommandFilter = {}) =>
    (await commands(filter)).map(({ command_id, state }) => `${command_id} ${state}`)

  async function pageOf(filter: CommandFilter, page: PageQuery, ask = ASK): Promise<Page<DeliveryCommand>> {
    const answer = await dispatcher.inspector.listCommands?.(filter, page, ask)
    if (!answer) throw new Error('the inspector lists no commands')
    return answer as Page<DeliveryCommand>
  }

  /** A command in each state, of two users and three scopes. */
  async function live() {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    for (const [i, state] of CommandState.options.entries()) {
      // All together less than the timeout of an attempt.
      clock.advance(100)
      const away = state === 'waiting' || state === 'rejected' ? { client_id: 'away' } : {}
      const scope_id = ['ada', 'team', 'bob'][i % 3] as string
      await dispatcher.dispatch(
        command(state, { ...away, scope_id, require_waiter: state === 'rejected', deadline_ms: 60_000 }),
      )
      if ('client_id' in away) continue
      await eventually(async () => expect((await status(state))?.attempts.last_outcome).toBe('handed_over'))
      if (state !== 'attempted') await dispatcher.acknowledge({ ...first, command_id: state })
      if (state === 'resulted' || state === 'failed') await dispatcher.settle({ ...key(state), state })
      if (state === 'cancelled') await dispatcher.cancel(key(state))
    }
    await dispatcher.dispatch(command('other', { user_id: 'bob', scope_id: 'ada', deadline_ms: 60_000 }))
  }

  describe('the list of commands', () => {
    it('is empty before any', async () => {
      expect(await commands()).toEqual([])
    })

    it('shows each retained command where it stands, the first admitted first, as its record says', async () => {
      await live()
      const listed = await commands({ user_id: 'ada' })
      // Only the deadline can expire a command.
      const expected = CommandState.options.map((id) => [id, id === 'expired' ? 'acknowledged' : id])
      expect(listed.map(({ command_id, state }) => [command_id, state])).toEqual(expected)
      for (const { state, waits_for, action, ...record } of listed)
        expect(record).toEqual(await dispatcher.inspector.status(addressOf(record), ASK))
      expect(new Set(listed.map(({ action }) => action))).toEqual(new Set(['refresh']))
      await advance(59_700)
      expect((await states({ user_id: 'ada' })).slice(0, 5)).toEqual([
        'waiting expired',
        'attempted expired',
        'acknowledged expired',
        'resulted resulted',
        'failed failed',
      ])
      expect(await states({ state: 'waiting' })).toEqual(['other waiting'])
      await advance(3_600_000)
      await advance(3_600_000)
      expect(await commands()).toEqual([])
    })

    it('answers exactly what matches, whichever filters are given and whatever the page', async () => {
      await live()
      const all = await commands()
      expect(all).toHaveLength(9)
      const values = {
        state: [undefined, 'attempted', 'acknowledged', 'rejected', 'expired'],
        user_id: [undefined, 'ada', 'bob'],
        client_id: [undefined, 'away'],
        command_id: [undefined, 'other', 'attempted'],
        scope_id: [undefined, 'ada', 'missing'],
        overdue: [undefined, true, false],
      } as const
      for (const state of values.state)
        for (const user_id of values.user_id)
          for (const client_id of values.client_id)
            for (const command_id of values.command_id)
              for (const scope_id of values.scope_id)
                for (const overdue of values.overdue) {
                  const filter = { state, user_id, client_id, command_id, scope_id, overdue }
                  const expected = all.filter((item) => admitsCommand(filter, item))
                  expect([filter, await commands(filter, 2)]).toEqual([filter, expected])
                }
    })

    it('filters by the reason of the end', async () => {
      await live()
      const of = async (reason: string, filter: CommandFilter = {}) =>
        (await commands({ ...filter, reason }, 2)).map(({ command_id }) => command_id)
      expect(await of('no_waiter')).toEqual(['rejected'])
      expect(await of('no_waiter', { state: 'cancelled' })).toEqual([])
      // These ended without a reason; open commands have none either, and have not ended.
      expect(await of('unspecified')).toEqual(['resulted', 'failed', 'cancelled'])
      await advance(59_700)
      const expired = ['waiting', 'attempted', 'acknowledged']
      await eventually(async () => expect(await of('deadline_passed', { user_id: 'ada' })).toEqual(expired))
    })

    it('shows the trace of a command in every state, delivers its action without it, and filters by it', async () => {
      const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
      const trace = `00-${trace_id}-00f067aa0ba902b7-01`
      const other = trace.replace('4b', '5b')
      const traced = { trace, trace_id }
      const shown = async () => {
        expect(await states({ trace_id: '1'.repeat(32) })).toEqual([])
        expect(await commands({ trace_id, action: 'other' })).toEqual([])
        const [listed, ...more] = await commands({ trace_id, action: 'refresh' })
        expect([listed, more]).toMatchObject([{ command_id: 'c1', action: 'refresh', ...traced }, []])
        expect(await status('c1')).toMatchObject(traced)
        return listed?.state
      }
      const admitted = await dispatcher.dispatch(command('c1', { trace }))
      expect(admitted).toMatchObject(traced)
      expect(await status('c1')).toEqual(admitted)
      expect(await dispatcher.dispatch(command('c2'))).not.toHaveProperty('trace')
      expect(await status('c2')).not.toHaveProperty('trace_id')
      expect(await dispatcher.dispatch(command('c3', { trace: other, require_waiter: true }))).toMatchObject({
        admission: { state: 'rejected' },
        trace: other,
      })
      expect(await states({ trace_id: other.slice(3, 35) })).toEqual(['c3 rejected'])
      expect(await shown()).toBe('waiting')
      const tab = connection(({ attempt }) => (attempt === 1 ? Promise.reject(new Error('not now')) : undefined))
      const outcome = async (id: string) => (await status(id))?.attempts.last_outcome
      await dispatcher.attach(first, tab.deliver)
      await tab.got(2)
      await eventually(async () => expect([await outcome('c1'), await outcome('c2')]).toEqual(['rejected', 'rejected']))
      expect(await shown()).toBe('attempted')
      await advance(5_000)
      await eventually(async () => expect(await outcome('c1')).toBe('handed_over'))
      await dispatcher.dispatch(command('c4', { trace: other }))
      await eventually(() => expect(tab.ids()).toContain('c4'))
      expect(new Set(tab.received.map(({ action }) => action))).toEqual(new Set(['refresh']))
      await dispatcher.acknowledge({ ...first, command_id: 'c1' })
      expect(await shown()).toBe('acknowledged')
      await dispatcher.settle({ ...key('c1'), state: 'resulted' })
      expect(await shown()).toBe('resulted')
      // A repeated dispatch with another trace is the same command, which keeps its first trace.
      expect(await dispatcher.dispatch(command('c1', { trace: other }))).toMatchObject(traced)
      for (const bad of ['', trace_id, trace.toUpperCase(), trace.replace('00-', 'ff-'), `${trace}\t`])
        await expect(dispatcher.dispatch(command('c5', { trace: bad }))).rejects.toMatchObject({
          code: 'invalid_input',
          detail: expect.stringContaining('trace'),
        })
    })

    it('shows a refused admission once, and the admitted command in its place', async () => {
      await dispatcher.dispatch(command('c1', { require_waiter: true, scope_id: 'red' }))
      await dispatcher.dispatch(command('c2'))
      await dispatcher.dispatch(command('c1', { require_waiter: true, scope_id: 'green' }))
      expect(await states()).toEqual(['c2 waiting', 'c1 rejected'])
      expect(await commands({ scope_id: 'red' })).toEqual([])
      await dispatcher.dispatch(command('c1', { scope_id: 'blue' }))
      expect(await states()).toEqual(['c2 waiting', 'c1 waiting'])
      expect(await commands({ state: 'rejected' })).toEqual([])
      expect(await commands({ scope_id: 'green' })).toEqual([])
      expect(await states({ scope_id: 'blue' })).toEqual(['c1 waiting'])
    })

    it('shows what a refusal, or the last attempt, has brought to its end', async () => {
      await dispatcher.attach(first, connection(() => Promise.reject(new Error('gone'))).deliver)
      await dispatcher.dispatch(command('c1', { max_attempts: 1 }))
      await dispatcher.dispatch(command('c2', { max_attempts: 2 }))
      await eventually(async () => expect(await states()).toEqual(['c1 failed', 'c2 attempted']))
      await dispatcher.acknowledge({ ...first, command_id: 'c2', state: 'refused' })
      expect(await states({ state: 'failed' })).toEqual(['c1 failed', 'c2 failed'])
      expect(await commands({ state: 'acknowledged' })).toEqual([])
    })

    it('shows a command as overdue until its end is recorded', async () => {
      for (const [i, id] of ['c1', 'c2', 'c3', 'c4'].entries())
        await dispatcher.dispatch(command(id, { deadline_ms: 400_000 - 100_000 * i, scope_id: id }))
      // No node is left to end them.
      await dispatcher.close()
      expect(await commands({ overdue: true })).toEqual([])
      clock.advance(300_000)
      expect(await states({ overdue: true })).toEqual(['c2 waiting', 'c3 waiting', 'c4 waiting'])
      expect(await states({ overdue: false })).toEqual(['c1 waiting'])
      for (const { state, waits_for, action, ...record } of await commands())
        expect(record).toEqual(await dispatcher.inspector.status(addressOf(record), ASK))
      const [third] = await commands({ overdue: true, scope_id: 'c3' }, 1)
      expect(third).toMatchObject({
        command_id: 'c3',
        overdue: true,
        terminal: null,
        admission: { deadline_at: at(200_000) },
      })
      expect(await commands({ overdue: true, state: 'failed' })).toEqual([])
      for (const limit of [1, 2, 3])
        expect((await commands({ overdue: true }, limit)).map(({ command_id }) => command_id)).toEqual([
          'c2',
          'c3',
          'c4',
        ])
    })

    it('ends, and shows none twice, while commands move between its pages', async () => {
      const tab = connection()
      const ids = Array.from({ length: 30 }, (_, i) => `c${i}`)
      for (const id of ids) await dispatcher.dispatch(command(id, { client_id: id }))
      const seen: string[] = []
      let cursor = FIRST.cursor
      for (let pages = 0; pages < 40; pages++) {
        const page = await pageOf({}, { limit: 3, cursor })
        seen.push(...page.items.map(({ command_id }) => command_id))
        // One before, one within and one behind what was shown.
        for (const id of [ids[pages], ids[seen.length - 1], ids[29 - pages]] as string[]) {
          await dispatcher.attach({ ...first, client_id: id }, tab.deliver)
          await dispatcher.cancel({ ...key(id), client_id: id })
        }
        cursor = page.next_cursor
        if (!page.has_more) break
      }
      expect(cursor).toBeNull()
      expect(seen).toEqual(ids)
    })

    it('forgets the oldest of what has ended where that is too many', async () => {
      await open({ maxRetained: 2 })
      for (const id of ['c1', 'c2', 'c3']) {
        await dispatcher.dispatch(command(id, { require_waiter: true }))
        await dispatcher.dispatch(command(`d${id}`, { scope_id: 'blue' }))
        await dispatcher.cancel(key(`d${id}`))
      }
      expect(await states()).toEqual(['c2 rejected', 'dc2 cancelled', 'c3 rejected', 'dc3 cancelled'])
      expect(await states({ scope_id: 'blue' })).toEqual(['dc2 cancelled', 'dc3 cancelled'])
      expect(await states({ scope_id: 'ada' })).toEqual(['c2 rejected', 'c3 rejected'])
      // Whether or not the loop has come by.
      clock.advance(3_601_000)
      expect(await states()).toEqual([])
    })

    it('refuses a foreign token', async () => {
      for (const cursor of ['x', '-1', '01', '1e3', '9'.repeat(40), '']) {
        await expect(pageOf({}, { limit: 1, cursor })).rejects.toMatchObject({ code: 'invalid_cursor' })
      }
    })

    it('examines no more than allowed, and continues from there', async () => {
      for (let i = 0; i < 20; i++) await dispatcher.dispatch(command(`c${i}`))
      const seen: string[] = []
      let cursor = FIRST.cursor
      do {
        const page = await pageOf({ client_id: 'tab' }, { limit: 10, cursor }, { ...ASK, limits: { examined: 6 } })
        expect(page.examined).toBeLessThanOrEqual(6)
        seen.push(...page.items.map(({ command_id }) => command_id))
        cursor = page.next_cursor
      } while (cursor !== null)
      expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => `c${i}`))
    })
  })
}
