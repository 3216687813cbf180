import { afterAll, beforeAll } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createClock } from '../contract/clock.js'
import { describeScope, SCOPES, type Worlds } from '../diagnostics/scoped.js'
import { Ids, MARKS, type Mark, tell } from '../diagnostics/scoped-world.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

describeRedis('a shared store', () => {
  const ends: (() => unknown)[] = []
  let server: Server
  let connected: Connected
  let worlds: Worlds

  async function worldOf(deploymentId: string, users: readonly Mark[]) {
    const clock = createClock()
    const ids = new Ids()
    const made = {
      now: clock.now,
      newId: ids.next,
      rpc: { newId: ids.next },
      nodeId: 'node',
      bus: { newId: () => 'epoch' },
    }
    // Ben is in Ann's shard, Cyd in another.
    const facilities = createRedisFacilities({
      client: connected.client,
      deploymentId,
      shards: 2,
      ...made,
      onError: null,
    })
    ends.push(() => facilities.close())
    await tell(facilities, clock, ids, users)
    return { ...redisComposition({ client: connected.client, deploymentId, now: clock.now }), now: clock.now }
  }

  beforeAll(async () => {
    server = await startServer()
    connected = await clients['node-redis']([server.port])
    const full = await worldOf('full', MARKS)
    const none = await worldOf('none', SCOPES.none)
    const [ann, team] = [await worldOf('ann', SCOPES.ann), await worldOf('team', SCOPES.team)]
    worlds = { full, alone: { none, ann, team }, now: full.now }
  })
  afterAll(async () => {
    await Promise.all(ends.map((end) => end()))
    await connected?.close()
    await server?.stop()
  })

  describeScope('in a shared store', () => worlds, [2])
})
