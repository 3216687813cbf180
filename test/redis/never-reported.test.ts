/** Families of a shared store to which nothing was ever written: how many there are is unknown, and not 0. */
import { expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createClock } from '../contract/clock.js'
import { describeStores } from './matrix.js'
import { createObserver, get } from './router.js'

/** A number of each family. */
const ASKED = {
  '/connections/count': 'total',
  '/contexts/count': 'total',
  '/browser-windows/count': 'total',
  '/rpc/summary': 'pending',
  '/deduplicator/summary': 'entries',
  '/delivery/summary': 'tracked_commands',
}

describeStores('numbers of families that no host feeds', (_kind, place) => {
  it('are unknown before the first record, and 0 when the last one has gone', async () => {
    const clock = createClock()
    const store = { ...place(), now: clock.now }
    const router = createObserver(store)
    const numbers = () =>
      Promise.all(
        Object.entries(ASKED).map(async ([path, name]) => {
          const { status, body } = await get(router, path)
          expect([path, status]).toEqual([path, 200])
          return body[name]
        }),
      )
    expect(await numbers()).toEqual([null, null, null, null, null, null])
    const { body } = await get(router, '/connections/count')
    expect([body.by_status, body.by_client_type, body.completeness.complete]).toEqual([null, null, true])

    const node = createRedisFacilities(store)
    const user = { user_id: 'ann', client_id: 'c', instance_id: 'i', client_type: 'web' } as const
    const { connection_id } = await node.connections.connect(user)
    await node.contexts.report({ ...user, context_id: 'x', status: 'active' })
    await node.browserWindows.report({ ...user, window_id: 'w', status: 'open' })
    const call = await node.rpc.open({ ...user, action: 'a' })
    await node.deduplicator.claim({ user_id: 'ann', message_id: 'm' })
    expect(await numbers()).toEqual([1, 1, 1, 1, 1, 0])

    await node.rpc.settle(call.correlation_id, { ok: true, result: 1 })
    await node.connections.disconnect(connection_id, 'bye')
    clock.advance(7_200_000)
    expect(await numbers()).toEqual([0, 0, 0, 0, 0, 0])
    await node.close()
  })
})
