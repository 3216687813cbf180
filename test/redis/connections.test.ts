import { describe, expect, it } from 'vitest'
import type { ChurnFilter } from '../../src/contract/connections.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { ASK, createClock } from '../contract/clock.js'
import { connectionBattery } from '../contract/connections.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

const client = { client_id: 'desk', instance_id: 'one', client_type: 'web' as const }

describeStores('the connection registry in Redis', (kind, place) => {
  connectionBattery(kind, (options) => createRedisConnectionRegistry({ ...place(), ...options }))

  describe('what came and went at several nodes', () => {
    function start() {
      const clock = createClock()
      const where = { ...place(), now: clock.now }
      const at = (nodeId: string) => createRedisConnectionRegistry({ ...where, nodeId })
      const [a, b] = [at('a'), at('node b')]
      const minutes = async (filter: ChurnFilter = {}) => (await a.inspector.connectionChurn?.(filter, ASK))?.items
      return { clock, where, a, b, minutes }
    }

    it('is told of each, and of a connection at the node that had it', async () => {
      const { a, b, minutes } = start()
      for (let i = 0; i < 12; i++) await a.connect({ ...client, user_id: `u${i}` })
      for (let i = 0; i < 6; i++) await b.connect({ ...client, user_id: `u${i}`, instance_id: 'two' })
      expect(await minutes({ node_id: 'a' })).toMatchObject([{ opened: 12, ended: { new_instance: 6 } }])
      expect(await minutes({ node_id: 'node b' })).toMatchObject([{ opened: 6, ended: {} }])
      expect(await minutes({ node_id: 'node' })).toMatchObject([{ opened: 0, ended: {} }])
      expect(await minutes()).toMatchObject([{ opened: 18, ended: { new_instance: 6 } }])
    })

    it('says nothing of minutes that nobody watched, and counts what was lost in them when somebody notices', async () => {
      const { clock, a, minutes } = start()
      await a.connect({ ...client, user_id: 'ann' })
      clock.advance(600_000)
      expect(await minutes()).toMatchObject([{ opened: 1, ended: {} }])
      await a.connect({ ...client, user_id: 'ann', client_id: 'phone' })
      const items = await minutes()
      expect(items).toMatchObject([
        { opened: 1, ended: {} },
        { opened: 1, ended: { heartbeat_lost: 1 } },
      ])
      expect(items?.map(({ minute }) => minute.slice(11, 16))).toEqual(['03:04', '03:14'])
    })

    it('is watched by the loop of a node, though nothing comes or goes', async () => {
      const { clock, where, a, minutes } = start()
      await a.connect({ ...client, user_id: 'ann' })
      clock.advance(60_000)
      const node = createRedisFacilities(where)
      await node.dispatcher.dispatch({ user_id: 'ann', client_id: 'c', command_id: 'k', action: 'a' })
      await soon(async () => {
        await node.dispatcher.reconcile()
        expect(await minutes()).toMatchObject([{ opened: 1 }, { opened: 0, ended: {} }])
      })
      await node.close()
    })
  })
})
