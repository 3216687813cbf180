/** Commands that an earlier build has left in the store: it kept each in a hash. */
import { expect, it } from 'vitest'
import { keyOf, shardPrefix } from '../../src/redis/store/keys.js'
import { ASK } from '../contract/clock.js'
import { command, connection, first, key } from '../contract/delivery-commands.js'
import { describeNode } from './dispatcher-node.js'

describeNode('a command of an earlier build', ({ make, server }) => {
  /** Writes the record of `id` as that build did: of what there is not, no field. */
  async function toHash(deploymentId: string, id: string, more: Record<string, string> = {}) {
    const place = keyOf(shardPrefix(deploymentId, 0), ['delivery', 'command', 'ada', 'tab', id])
    const texts = (await server().cli('--no-raw', 'GET', place)).replace(/^"|"$/g, '').split('\\x00')
    const [ref = '', phase = '', seq = '', deadline_at = '', scope_id = ''] = texts
    const [action = '', fingerprint = '', max_attempts = '', admitted_at = ''] = texts.slice(12)
    const fields = {
      ref: ref.replaceAll('\\n', '\n'),
      phase,
      seq,
      deadline_at,
      scope_id,
      action,
      fingerprint,
      max_attempts,
      admitted_at,
    }
    await server().cli('DEL', place)
    await server().cli('HSET', place, ...Object.entries({ ...fields, ...more }).flat())
  }

  it('is known, delivered and brought to its end, with what was known of it', async () => {
    const { deploymentId, dispatcher } = make()
    for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id))
    await toHash(deploymentId, 'c1', {
      attempts: '1',
      confirmed: '1',
      last_at: '1700000000000',
      last_instance_id: 'i0',
      last_node_id: 'n0',
      recoveries: '2',
      recovered_at: '1700000001000',
      recovery_reason: 'ack_timeout',
    })
    await toHash(deploymentId, 'c2')
    await expect(Promise.resolve(dispatcher.dispatch(command('c1', { payload: 'another' })))).rejects.toMatchObject({
      code: 'command_conflict',
    })
    expect(await dispatcher.dispatch(command('c1'))).toMatchObject({
      admission: { state: 'admitted', scope_id: 'ada' },
      attempts: { count: 1, confirmed: 1, last_at: '2023-11-14T22:13:20.000Z', last_node_id: 'n0' },
      recovery: { count: 2, last_at: '2023-11-14T22:13:21.000Z', reason: 'ack_timeout' },
      terminal: null,
    })
    const tab = connection(({ command_id }) => dispatcher.settle({ ...key(command_id), state: 'resulted' }))
    await dispatcher.attach(first, tab.deliver)
    await tab.got(2)
    expect(tab.received).toMatchObject([
      { command_id: 'c1', attempt: 2, payload: { page: 1 } },
      { command_id: 'c2', attempt: 1, payload: { page: 1 } },
    ])
    expect(await dispatcher.inspector.status(key('c2'), ASK)).toMatchObject({ terminal: { state: 'resulted' } })
  })

  it('shows how it was acknowledged, and how it ended', async () => {
    const { deploymentId, dispatcher } = make()
    await dispatcher.dispatch(command('c1'))
    await dispatcher.cancel(key('c1'))
    await toHash(deploymentId, 'c1', {
      phase: 'ended',
      acknowledged: 'acknowledged',
      acknowledged_at: '1700000000000',
      acknowledged_by: 'i0',
      terminal: 'cancelled',
      terminal_at: '1700000001000',
      terminal_reason: 'no_longer',
      until_ms: '9000000000000',
      ended_by: 'x',
    })
    expect(await dispatcher.dispatch(command('c1'))).toMatchObject({
      acknowledgement: { state: 'acknowledged', at: '2023-11-14T22:13:20.000Z', instance_id: 'i0' },
      terminal: { state: 'cancelled', at: '2023-11-14T22:13:21.000Z', reason: 'no_longer' },
    })
  })

  it('leaves the list of its scope when it is forgotten', async () => {
    const { deploymentId, dispatcher } = make()
    await dispatcher.dispatch(command('c1', { scope_id: 'team' }))
    await dispatcher.cancel(key('c1'))
    await toHash(deploymentId, 'c1', { phase: 'ended', terminal: 'cancelled', terminal_at: '1', until_ms: '2' })
    const place = (...parts: string[]) => keyOf(shardPrefix(deploymentId, 0), ['delivery', ...parts])
    await server().cli('ZADD', place('ended'), '2', 'ada\ntab\nc1')
    await dispatcher.reconcile()
    for (const list of [place('of-id', 'team'), place('command', 'ada', 'tab', 'c1')])
      expect(await server().cli('EXISTS', list)).toBe('0')
  })
})
