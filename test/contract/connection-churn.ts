/** What came and went minute by minute, in every registry. */
import { expect, it } from 'vitest'
import type { ChurnFilter, ConnectInput, ConnectionChurn } from '../../src/internal/contract/connections.js'
import { ASK, at, type Clock } from './clock.js'
import type { ConnectionFacility } from './connections.js'

/** The beginning of the minute that is so many after that of the clock's start. */
const minute = (after: number) => `${at(after * 60_000).slice(0, 16)}:00.000Z`

/** A registry that loses a connection after 90 s, with nothing in it yet. */
export function churning(subject: () => { clock: Clock; registry: ConnectionFacility }): void {
  const clock = () => subject().clock
  const registry = () => subject().registry
  const connect = (over: Partial<ConnectInput> = {}) =>
    registry().connect({ user_id: 'ann', client_id: 'desk', instance_id: 'one', client_type: 'console', ...over })
  const churn = async (filter: ChurnFilter = {}) =>
    (await registry().inspector.connectionChurn?.(filter, ASK)) as ConnectionChurn
  const minutes = async (filter: ChurnFilter = {}) => (await churn(filter)).items

  it('tells what came and went in each minute, by reason and by client type', async () => {
    await connect()
    await connect()
    const { connection_id: desk } = await connect({ instance_id: 'two' })
    const { connection_id: phone } = await connect({ user_id: 'bob', client_type: 'mobile' })
    await connect({ user_id: 'cid', client_type: 'web' })
    expect(await registry().disconnect(phone, 'client_closed')).toBe(true)
    expect(await registry().disconnect(phone, 'client_closed')).toBe(false)
    const first = { minute: minute(0), opened: 5, ended: { client_closed: 1, new_instance: 1, reconnected: 1 } }
    expect(await churn()).toEqual({ items: [first], observed_at: at() })
    expect(await minutes({ client_type: 'mobile' })).toEqual([{ ...first, opened: 1, ended: { client_closed: 1 } }])
    expect(await minutes({ client_type: 'browser' })).toEqual([{ ...first, opened: 0, ended: {} }])
    expect(await minutes({ node_id: 'elsewhere' })).toEqual([{ ...first, opened: 0, ended: {} }])

    // A minute without events, and one with a lost heartbeat.
    clock().advance(60_000)
    expect(await registry().heartbeat(desk)).toBe(true)
    expect(await minutes()).toEqual([first, { minute: minute(1), opened: 0, ended: {} }])
    clock().advance(60_000)
    expect(await registry().disconnect(desk)).toBe(true)
    expect(await registry().currentInstance({ user_id: 'cid', client_id: 'desk' })).toBeNull()
    const { connection_id } = await connect({ user_id: 'cid', client_type: 'web' })
    const [, second, third] = await minutes()
    expect(third).toEqual({ minute: minute(2), opened: 1, ended: { unspecified: 1 } })
    expect(second).toEqual({ minute: minute(1), opened: 0, ended: { heartbeat_lost: 1 } })
    expect(await registry().disconnect(connection_id, 'Not a low-cardinality name')).toBe(true)
    expect((await minutes())[2]?.ended).toEqual({ other: 1, unspecified: 1 })
  })

  it('reports the last sixty minutes', async () => {
    const { connection_id } = await connect()
    for (let i = 0; i < 70; i++) {
      clock().advance(60_000)
      expect(await registry().heartbeat(connection_id)).toBe(true)
    }
    await connect({ client_id: 'phone' })
    const items = await minutes()
    expect(items.map((one) => one.minute)).toEqual(Array.from({ length: 60 }, (_, i) => minute(i + 11)))
    expect(items.filter(({ opened }) => opened > 0)).toEqual([{ minute: minute(70), opened: 1, ended: {} }])
  })

  it('tells no more kinds apart than it may, and counts every one', async () => {
    for (let i = 0; i < 150; i++) {
      const { connection_id } = await connect({ client_id: `c${i}`, client_type: i % 2 ? 'web' : 'mobile' })
      expect(await registry().disconnect(connection_id, `reason_${i}`)).toBe(true)
    }
    const [item] = await minutes()
    const kinds = Object.keys(item?.ended ?? {})
    expect(kinds.length).toBeGreaterThan(90)
    expect(kinds.length).toBeLessThanOrEqual(101)
    expect(item?.ended.other).toBeGreaterThan(40)
    for (const [filter, count] of [
      [{}, 150],
      [{ client_type: 'web' }, 75],
    ] as const) {
      const [{ opened, ended } = { opened: 0, ended: {} }] = await minutes(filter)
      expect([opened, Object.values(ended).reduce((a, b) => a + b, 0)]).toEqual([count, count])
    }
  })
}
