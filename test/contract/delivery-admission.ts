/** Which commands a dispatcher admits, and what it answers. */
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/internal/contract/index.js'
import { ASK, at } from './clock.js'
import { command, connection, first, key } from './delivery-commands.js'
import type { Subject } from './delivery-subject.js'

const cyclic: Record<string, Json> = {}
cyclic.self = cyclic

export function admissionContract({ clock, dispatcher, open, advance, status, summary, tenants }: Subject): void {
  describe('admission', () => {
    it('admits a command and answers its record, which the inspector shows too', async () => {
      const answer = await dispatcher.dispatch(command('c1'))
      expect(answer).toEqual({
        ...key('c1'),
        admission: { state: 'admitted', at: at(), scope_id: 'ada', deadline_at: at(30_000) },
        attempts: {
          count: 0,
          confirmed: 0,
          handed_over_at: null,
          last_at: null,
          last_node_id: null,
          last_outcome: null,
          items: [],
          omitted: 0,
        },
        acknowledgement: { state: 'none', at: null, instance_id: null },
        recovery: { count: 0, last_at: null, reason: null },
        terminal: null,
        overdue: false,
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
      expect(await tenants()).toEqual([
        { scope_id: 'ada', reserved_commands: 1, oldest_deadline_at: at(30_000), capacity: 1 },
      ])
      await dispatcher.settle({ ...key('c1'), state: 'resulted' })
      expect((await dispatcher.dispatch(command('c2', { action: 'other' }))).admission.state).toBe('admitted')
    })

    it('gives the place of a command to the next at its deadline, whether or not the loop has come by', async () => {
      await open({ capacity: 1 })
      await dispatcher.dispatch(command('c1', { deadline_ms: 1_000 }))
      clock.advance(999)
      expect((await dispatcher.dispatch(command('c2'))).admission.state).toBe('rejected')
      clock.advance(1)
      expect((await dispatcher.dispatch(command('c2'))).admission.state).toBe('admitted')
      expect((await dispatcher.dispatch(command('c3'))).admission.state).toBe('rejected')
      expect(await tenants()).toMatchObject([{ reserved_commands: 1, oldest_deadline_at: at(31_000) }])
    })

    it.each([
      ['no number', Number.NaN],
      ['nothing', undefined],
      ['null', null],
      ['a text', '5'],
      ['a promise', Promise.resolve(5)],
      ['a list', [5]],
    ])('reserves nothing where the capacity of a scope is %s', async (_, said) => {
      await open({ capacity: (scope) => (scope === 'ada' ? (said as number) : 1) })
      expect((await dispatcher.dispatch(command('c1'))).terminal).toMatchObject({ reason: 'capacity_exceeded' })
      expect((await dispatcher.dispatch(command('c2', { scope_id: 'red' }))).terminal).toBeNull()
      expect(await tenants()).toMatchObject([{ scope_id: 'red', capacity: 1 }])
    })

    it('admits no more than a capacity that is no whole number', async () => {
      await open({ capacity: (scope) => (scope === 'ada' ? 1.5 : 0.5) })
      expect((await dispatcher.dispatch(command('c1'))).admission.state).toBe('admitted')
      expect((await dispatcher.dispatch(command('c2'))).terminal).toMatchObject({ reason: 'capacity_exceeded' })
      expect((await dispatcher.dispatch(command('c3', { scope_id: 'red' }))).admission.state).toBe('rejected')
      expect(await tenants()).toMatchObject([{ scope_id: 'ada', reserved_commands: 1, capacity: 1 }])
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

    it('rejects a command that requires a consumer when none is attached', async () => {
      const refused = await dispatcher.dispatch(command('c1', { require_waiter: true }))
      expect(refused.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
      await dispatcher.attach(first, connection().deliver)
      expect((await dispatcher.dispatch(command('c1', { require_waiter: true }))).terminal).toBeNull()
    })

    it.each([
      ['.', 'invalid_input', 'must not be'],
      ['..', 'invalid_input', 'must not be'],
      ['a/b', 'invalid_identity', 'must be one path segment'],
      ['/', 'invalid_identity', 'must be one path segment'],
    ])('refuses the client or command id %s everywhere', async (id, code, reason) => {
      for (const ids of [{ client_id: id }, { command_id: id }]) {
        const detail = expect.stringMatching(`^${Object.keys(ids)[0]}: ${reason}`)
        await expect(dispatcher.dispatch(command('c1', ids))).rejects.toMatchObject({ code, detail })
        await expect((async () => dispatcher.inspector.status({ ...key('c1'), ...ids }, ASK))()).rejects.toMatchObject({
          code: 'invalid_identity',
        })
      }
      expect((await summary()).tracked_commands).toBe(0)
    })

    it.each([
      ['a blank id', { command_id: ' ' }],
      ['an id over 256 bytes', { client_id: 'é'.repeat(129) }],
      ['a control character', { user_id: 'a\u0000b' }],
      ['a format character', { scope_id: 'a\u200bb' }],
      ['no action', { action: '' }],
      ['no time', { deadline_ms: 0 }],
      ['more than a day', { deadline_ms: 86_400_001 }],
      ['no attempt', { max_attempts: 0 }],
      ['a payload that JSON cannot carry', { payload: (() => 1) as unknown as Json }],
      ['a cyclic payload', { payload: cyclic }],
      ['a BigInt', { payload: { n: 1n } as unknown as Json }],
      ['a payload nested too deep', { payload: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) }],
    ])('refuses %s', async (_, change) => {
      await expect(dispatcher.dispatch(command('c1', change))).rejects.toMatchObject({ code: 'invalid_input' })
    })

    it('refuses an unknown field by name and suggests the one that was meant', async () => {
      const detail = (text: string) => ({ code: 'invalid_input', detail: text })
      const dispatched = dispatcher.dispatch({ ...command('c1'), deadline: 5 } as never)
      await expect(dispatched).rejects.toMatchObject(detail('Unknown field "deadline". Did you mean "deadline_ms"?'))
      const late = { ...key('c1'), instance_id: 'i', sate: 'refused' } as never
      await expect((async () => dispatcher.acknowledge(late))()).rejects.toMatchObject(
        detail('Unknown field "sate". Did you mean "state"?'),
      )
      const end = { ...key('c1'), state: 'resulted', instanceId: 'i' } as never
      await expect((async () => dispatcher.settle(end))()).rejects.toMatchObject(
        detail('Unknown field "instanceId". Did you mean "instance_id"?'),
      )
      await expect((async () => dispatcher.cancel({ ...key('c1'), why: 'x' } as never))()).rejects.toMatchObject(
        detail('Unknown field "why". Valid fields: user_id, client_id, command_id, reason'),
      )
      expect((await summary()).tracked_commands).toBe(0)
    })

    it('ignores what else identifies the client, so that a host can pass its record', async () => {
      const client = { ...first, client_type: 'web', connection_id: 'connection-1' }
      const dispatched = { ...client, command_id: 'c1', action: 'sync' }
      expect(await dispatcher.dispatch(dispatched as never)).toMatchObject({
        ...key('c1'),
        admission: { state: 'admitted' },
      })
      await dispatcher.acknowledge({ ...client, command_id: 'c1' } as never)
      expect(await dispatcher.cancel(dispatched as never).catch(({ detail }) => detail)).toMatch(
        /^Unknown field "action"/,
      )
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
}
