/** A client of a Cluster that knows a part of the slots is waited for within the deadline, since nothing was sent. */
import { expect, it } from 'vitest'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { clients, describeRedis, formed, startServer } from './server.js'

const context = { context_id: 'ctx', user_id: 'ann', client_id: 'c', client_type: 'web', status: 'idle' } as const
const ARGS = ['--cluster-enabled', 'yes', '--cluster-require-full-coverage', 'no']

describeRedis('a Cluster of which the client knows half', () => {
  it('is written to completely over node-redis, which does not discover slots on its own', async () => {
    const servers = await Promise.all([0, 1].map(() => startServer({ args: ARGS })))
    const [first, second] = servers as [(typeof servers)[0], (typeof servers)[0]]
    await first.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '8191')
    await second.cli('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383')
    await second.cli('CLUSTER', 'SET-CONFIG-EPOCH', '2')
    const connected = await clients['node-redis cluster']([first.port])
    try {
      await first.cli('CLUSTER', 'MEET', '127.0.0.1', String(second.port))
      await formed(servers)
      for (const deploymentId of ['a', 'b', 'c', 'd', 'e', 'f']) {
        // Longer than the default: on a busy machine a command to a node that is first queried for its slots takes
        // time.
        const contexts = createRedisContextRegistry({
          client: connected.client,
          deploymentId,
          commandTimeoutMs: 20_000,
        })
        expect(await contexts.report(context)).toMatchObject({ context_id: 'ctx' })
      }
    } finally {
      await connected.close()
      await Promise.all(servers.map((server) => server.stop()))
    }
  })
})
