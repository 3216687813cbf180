/** Nodes of a dispatcher on a server of their own, and an observer of them. */
import { afterAll, afterEach, beforeAll } from 'vitest'
import type { DeliveryInspector } from '../../src/internal/contract/delivery.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisCommandDispatcher, type RedisCommandDispatcherOptions } from '../../src/redis/delivery/facility.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

export interface NodeSubject {
  server(): Server
  /** The client that nodes and observers have unless they bring their own. */
  client(): RedisClient
  /** Creates a node, in a new deployment unless one is given. */
  make(options?: Partial<RedisCommandDispatcherOptions>): {
    deploymentId: string
    dispatcher: ReturnType<typeof createRedisCommandDispatcher>
  }
  /** What another process sees of the deployment. */
  observe(deploymentId: string, options?: object): DeliveryInspector
  /** Closes `closable` after the test, as the nodes are. */
  keep(closable: { close(): unknown }): void
}

let deployments = 0

/** Runs `body` over one server. */
export function describeNode(name: string, body: (subject: NodeSubject) => void): void {
  describeRedis(name, () => {
    let server: Server
    let connected: Connected
    let open: { close(): unknown }[] = []
    beforeAll(async () => {
      server = await startServer()
      connected = await clients.ioredis([server.port])
    })
    afterEach(async () => {
      for (const each of open) await each.close()
      open = []
    })
    afterAll(async () => {
      await connected.close()
      await server.stop()
    })
    const keep = (closable: { close(): unknown }) => void open.push(closable)
    body({
      server: () => server,
      client: () => connected.client,
      keep,
      make(options = {}) {
        const deploymentId = options.deploymentId ?? `own${++deployments}`
        const dispatcher = createRedisCommandDispatcher({
          client: connected.client,
          deploymentId,
          // Each test asserts what its calls return: what a loop meets in a broken store is not asserted again.
          onError: null,
          ...options,
        })
        keep(dispatcher)
        return { deploymentId, dispatcher }
      },
      observe(deploymentId, options = {}) {
        const { delivery } = redisComposition({ client: connected.client, deploymentId, ...options }).inspectors
        if (!delivery) throw new Error('the composition has no delivery')
        return delivery
      },
    })
  })
}
