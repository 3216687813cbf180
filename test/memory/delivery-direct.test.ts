/** What a dispatcher in one process reports. */
import { describe, expect, it } from 'vitest'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { ASK, walk } from '../contract/clock.js'
import { command, eventually, first, key } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'

const { clock, dispatcher, open, status, summary, node } =
  createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('direct mode', () => {
  it('has one node, no listener and no legacy stream', async () => {
    await open({ nodeId: 'n1', deploymentId: 'dep1' })
    expect(await node()).toMatchObject({ node_id: 'n1', mailbox_listener_alive: null })
    expect(await summary()).toMatchObject({
      deployment_id: 'dep1',
      mode: 'direct',
      legacy_stream_depth: null,
      legacy_pending_depth: null,
      legacy_stream_lag: null,
      legacy_reason: 'not_configured',
    })
    await expect((async () => dispatcher.inspector.listNodes({ limit: 1, cursor: '1' }, ASK))()).rejects.toMatchObject({
      code: 'invalid_cursor',
    })
  })

  it('keeps its position in the list of scopes while scopes before it change', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await dispatcher.dispatch(command(id, { scope_id: id }))
    const page = await dispatcher.inspector.listTenants({ limit: 2, cursor: null }, ASK)
    for (const id of ['a', 'b']) await dispatcher.cancel(key(id))
    await dispatcher.dispatch(command('e', { scope_id: 'a' }))
    const rest = await walk((query) =>
      dispatcher.inspector.listTenants({ ...query, cursor: query.cursor ?? page.next_cursor }, ASK),
    )
    expect(rest.map(({ scope_id }) => scope_id)).toEqual(['c', 'd', 'a'])
  })

  it('rejects ids with a line break instead of finding another command', async () => {
    await dispatcher.dispatch(command('c1'))
    const forged = { user_id: 'ada\ntab', client_id: 'c1', command_id: 'c1' }
    await expect((async () => dispatcher.inspector.status(forged, ASK))()).rejects.toMatchObject({
      code: 'invalid_identity',
    })
  })
})

describe('the summary', () => {
  it('samples the first hundred unacknowledged commands', async () => {
    for (let i = 0; i < 150; i++) await dispatcher.dispatch(command(`c${i}`))
    expect(await summary()).toMatchObject({ tracked_commands: 150, waiting_for_client: 150, sample_size: 100 })
  })

  it('counts a command as due again as soon as its pause is over', async () => {
    await dispatcher.attach(first, () => Promise.reject(new Error('gone')))
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(1))
    clock.advance(199)
    expect(await summary()).toMatchObject({ due_commands: 0 })
    clock.advance(1)
    expect(await summary()).toMatchObject({ due_commands: 1 })
  })
})
