/** Why a connection went and what the next one of its client knows of it, in every registry. */
import { expect, it } from 'vitest'
import type { ConnectInput, ConnectionFilter } from '../../src/internal/contract/connections.js'
import { ASK, type Clock, walk } from './clock.js'
import type { ConnectionFacility } from './connections.js'

/** A registry that loses a connection after 90 s and forgets it an hour later, with nothing in it yet. */
export function endings(subject: () => { clock: Clock; registry: ConnectionFacility }): void {
  const clock = () => subject().clock
  const registry = () => subject().registry
  const connect = (over: Partial<ConnectInput> = {}) =>
    registry().connect({ user_id: 'ann', client_id: 'desk', instance_id: 'one', client_type: 'console', ...over })
  const idsOf = async (filter: ConnectionFilter) =>
    (await walk((page) => registry().inspector.listConnections(filter, page, ASK))).map((one) => one.connection_id)

  it('says why each connection went', async () => {
    const first = await connect()
    const again = await connect()
    const newer = await connect({ instance_id: 'two' })
    const silent = await connect({ client_id: 'silent' })
    const closed = await connect({ client_id: 'closed' })
    const gone = await connect({ client_id: 'gone' })
    await registry().disconnect(closed.connection_id, 'client_closed')
    await registry().disconnect(gone.connection_id)
    clock().advance(89_999)
    await registry().heartbeat(newer.connection_id)
    clock().advance(1)
    for (const [{ connection_id }, reason] of [
      [first, 'reconnected'],
      [again, 'new_instance'],
      [newer, null],
      [silent, 'heartbeat_lost'],
      [closed, 'client_closed'],
      [gone, null],
    ] as const) {
      expect(await registry().inspector.getConnection(connection_id, ASK)).toMatchObject({ ended_reason: reason })
      if (reason) expect(await idsOf({ ended_reason: reason })).toEqual([connection_id])
    }
  })

  it('carries from connection to connection how often a client was superseded, for as long as one is retained', async () => {
    const countOf = async (instance_id: string) => {
      const { connection_id, superseded_count } = await connect({ instance_id })
      expect(await registry().inspector.getConnection(connection_id, ASK)).toMatchObject({ superseded_count })
      return { connection_id, superseded_count }
    }
    expect(await countOf('one')).toMatchObject({ superseded_count: 0 })
    expect(await countOf('two')).toMatchObject({ superseded_count: 1 })
    expect(await countOf('two')).toMatchObject({ superseded_count: 1 })
    const third = await countOf('three')
    expect(third).toMatchObject({ superseded_count: 2 })
    await registry().disconnect(third.connection_id)
    // A connection made after the previous one ended supersedes nothing.
    expect(await countOf('four')).toMatchObject({ superseded_count: 2 })
    clock().advance(90_000)
    expect(await countOf('five')).toMatchObject({ superseded_count: 2 })
    expect((await connect({ client_id: 'phone' })).superseded_count).toBe(0)
    clock().advance(90_000 + 3_600_000)
    expect(await countOf('six')).toMatchObject({ superseded_count: 0 })
  })

  it('knows who holds a client after all who held it before are forgotten', async () => {
    const old = await connect()
    const young = await connect({ instance_id: 'two' })
    for (let i = 0; i < 41; i++) {
      clock().advance(89_000)
      expect(await registry().heartbeat(young.connection_id)).toBe(true)
    }
    expect(await registry().inspector.getConnection(old.connection_id, ASK)).toBeNull()
    expect(await registry().currentInstance({ user_id: 'ann', client_id: 'desk' })).toBe('two')
    expect(await connect({ instance_id: 'three' })).toMatchObject({ superseded_count: 2 })
  })
}
