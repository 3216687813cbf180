/** A node of the dispatcher that is closed, and one that loses a shard of the store. */
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { createHeartbeat } from '../../src/redis/delivery/heartbeat.js'
import type { NodeRecord } from '../../src/redis/delivery/nodes.js'
import { createRedisCommandDispatcher } from '../../src/redis/index.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { shardOf } from '../../src/redis/store/keys.js'
import type { Store } from '../../src/redis/store/store.js'
import { runsOf } from './delivery-shard.js'
import { lossyClient } from './lossy-client.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

/** A client that, after `lose()`, fails every command with a key that contains `mark`. */
function breakable(client: RedisClient, mark: string) {
  const real = client as unknown as { sendCommand(args: string[], options: object): Promise<unknown> }
  let isLost = false
  const broken = Object.create(client, {
    sendCommand: {
      value: async (args: string[], options: object) => {
        if (isLost && args.some((arg) => arg.includes(mark))) throw new Error('CLUSTERDOWN Hash slot not served')
        return real.sendCommand.call(client, args, options)
      },
    },
    isOpen: { get: () => (client as { isOpen: boolean }).isOpen },
    isReady: { get: () => (client as unknown as { isReady: boolean }).isReady },
    on: { value: () => broken },
  })
  const lose = () => {
    isLost = true
  }
  return { client: broken as RedisClient, lose }
}

describeRedis('a node of the dispatcher', () => {
  let server: Server
  let connected: Connected
  let deployments = 0
  beforeAll(async () => {
    server = await startServer()
    connected = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await connected?.close()
    await server?.stop()
  })

  function open(options: Partial<Parameters<typeof createRedisCommandDispatcher>[0]> = {}) {
    const deploymentId = `endings-${++deployments}`
    const dispatcher = createRedisCommandDispatcher({ client: connected.client, deploymentId, ...options })
    onTestFinished(async () => void (await dispatcher.close()))
    return { dispatcher, deploymentId }
  }

  it('reports no errors of unfinished work after close', async () => {
    const onError: unknown[] = []
    const { client, plan } = lossyClient(connected.client)
    // The first pass is still under way when the node is closed.
    const held = plan.meet('held', runsOf('pass'))
    const { dispatcher } = open({ client, commandTimeoutMs: 1_000, onError: (error) => onError.push(error) })
    await held
    // What a busy machine made late until now is another matter.
    onError.length = 0
    await dispatcher.close()
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(onError).toEqual([])
  })

  it('continues in the other shards if one is down', async () => {
    const user_id = ['a', 'b', 'c', 'd'].find((id) => shardOf(id, 2) === 1) as string
    const deploymentId = `endings-${++deployments}`
    const { client, lose } = breakable(connected.client, `{${deploymentId}:0}`)
    const { dispatcher } = open({
      client,
      deploymentId,
      shards: 2,
      onError: null,
      ackTimeoutMs: 50,
      maxDeliveriesPerClient: 1,
    })
    const given: string[] = []
    await dispatcher.attach({ user_id, client_id: 'c', instance_id: 'i' }, ({ command_id }) => {
      given.push(command_id)
      // The first attempt hangs until its timeout.
      return command_id === 'k1' ? new Promise<void>(() => {}) : undefined
    })
    await dispatcher.reconcile()
    lose()
    for (const command_id of ['k1', 'k2'])
      await dispatcher.dispatch({ user_id, client_id: 'c', command_id, action: 'a' })
    await soon(() => expect(given).toContain('k2'))
  })
})

it('a node sends one heartbeat after several changes during which the store did not reply', async () => {
  let beats = 0
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  const store = {
    deploymentId: 'd',
    key: (shard: number) => `d:${shard}`,
    joinShards: async () => answered.then(() => 1),
    heldShards: async () => 1,
    fenced: async () => {
      beats++
      throw new Refusal('unavailable')
    },
    onError: () => {},
  } as unknown as Store
  const heartbeat = createHeartbeat(store, 'n')
  heartbeat.start(() => ({}) as NodeRecord)
  const all = Array.from({ length: 100 }, () => heartbeat.publish().catch(() => {}))
  // One change in each turn of the event loop.
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    all.push(heartbeat.publish().catch(() => {}))
  }
  answer()
  await Promise.all(all)
  expect(beats).toBe(2)
})
