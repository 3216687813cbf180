/** The newest events of all connections, in every registry. */
import { expect, it } from 'vitest'
import type { ClientEventFilter, ClientEventInput, ConnectInput } from '../../src/internal/contract/connections.js'
import type { PageQuery } from '../../src/internal/contract/page.js'
import { ASK, at, type Clock, walk } from './clock.js'
import type { ConnectionFacility } from './connections.js'

/** A registry that loses a connection after 90 s and forgets it an hour later, with nothing in it yet. */
export function clientEvents(subject: () => { clock: Clock; registry: ConnectionFacility }): void {
  const clock = () => subject().clock
  const registry = () => subject().registry
  const connect = (user_id: string, over: Partial<ConnectInput> = {}) =>
    registry().connect({ user_id, client_id: 'desk', instance_id: 'one', client_type: 'console', ...over })
  const page = async (query: PageQuery, filter: ClientEventFilter = {}) => {
    const listed = await registry().inspector.listConnectionEvents?.(filter, query, ASK)
    if (!listed) throw new Error('no connection events')
    return listed
  }
  const events = (filter: ClientEventFilter = {}, limit = 100) => walk((query) => page(query, filter), limit)
  const brief = ({ user_id, event, reason }: ClientEventInput) => [user_id, event, reason].join(' ').trim()

  it('lists connects and ends of all clients, the newest first, with their reasons', async () => {
    const first = await connect('ann')
    clock().advance(1_000)
    await connect('bob')
    clock().advance(1_000)
    await connect('ann', { instance_id: 'two' })
    clock().advance(1_000)
    const closed = await connect('carol')
    clock().advance(1_000)
    await registry().disconnect(closed.connection_id, 'client_closed')
    clock().advance(1_000)
    const all = await events()
    expect(all.map(brief).slice(0, 2)).toEqual(['carol disconnected client_closed', 'carol connected'])
    expect(all.map(brief).slice(2, 4).sort()).toEqual(['ann connected', 'ann superseded new_instance'])
    expect(all.map(brief).slice(4)).toEqual(['bob connected', 'ann connected'])
    expect(all.at(-1)).toEqual({
      connection_id: first.connection_id,
      user_id: 'ann',
      client_id: 'desk',
      instance_id: 'one',
      client_type: 'console',
      node_id: first.node_id,
      event: 'connected',
      at: at(),
      reason: null,
    })
    for (const limit of [1, 2, 3]) expect((await events({}, limit)).map(brief)).toEqual(all.map(brief))
    expect((await events({ user_id: 'ann' })).map(brief)).toHaveLength(3)
    expect((await events({ reason: 'client_closed' })).map(brief)).toEqual(['carol disconnected client_closed'])
    expect((await events({ event: 'superseded' })).map(brief)).toEqual(['ann superseded new_instance'])
    expect(await events({ user_id: 'missing' })).toEqual([])
  })

  it('lists those who fell silent, at the time when they were lost', async () => {
    await connect('ann')
    clock().advance(60_000)
    await connect('bob')
    clock().advance(40_000)
    const [newest] = await events()
    expect(newest).toMatchObject({ user_id: 'ann', event: 'disconnected', at: at(90_000), reason: 'heartbeat_lost' })
    expect((await events()).map(brief)).toEqual(['ann disconnected heartbeat_lost', 'bob connected', 'ann connected'])
    clock().advance(3_600_000)
    expect((await events()).map(brief)).not.toContain('ann connected')
  })

  it('shows an event once, and none late, in a walk while clients come and go', async () => {
    for (let i = 0; i < 30; i++) {
      const { connection_id } = await connect(`user-${i}`)
      if (i % 2) await registry().disconnect(connection_id, 'left')
      // Several events have one time.
      if (i % 5 === 0) clock().advance(1)
    }
    const before = await events()
    expect(before).toHaveLength(45)
    let turn = 0
    const seen = await walk(async (query) => {
      const answer = await page(query)
      clock().advance(5)
      const { connection_id } = await connect(`later-${turn++}`)
      await registry().disconnect(connection_id, 'left')
      return answer
    }, 4)
    expect(seen).toEqual(before)
  })
}
