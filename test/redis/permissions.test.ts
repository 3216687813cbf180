import { readFile } from 'node:fs/promises'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createClock } from '../contract/clock.js'
import { createObserver, get } from './router.js'
import { describeRedis, startServer } from './server.js'
import { createIds, live } from './world.js'

describeRedis('the documented permissions of a node', () => {
  it('suffice for everything that a node does, and only in its deployment', async () => {
    const docs = await readFile(new URL('../../docs/shared-store.md', import.meta.url), 'utf8')
    const [, acl] = /```text\n(ACL SETUSER node[^`]*)```/.exec(docs) ?? []
    const server = await startServer()
    onTestFinished(() => server.stop())
    await server.cli(...(acl as string).trim().split(/\s+/))
    const client = await createClient({ url: `redis://node:change-me-too@127.0.0.1:${server.port}` }).connect()
    const clock = createClock()
    const options = {
      client: client,
      now: clock.now,
      newId: createIds(),
      rpc: { newId: createIds() },
    }
    const facilities = createRedisFacilities({ ...options, deploymentId: 'prod' })
    await live(facilities, clock)
    const command = { command_id: 'c-1', user_id: 'ann', client_id: 'c', action: 'open' }
    expect((await facilities.dispatcher.dispatch(command)).admission.state).toBe('admitted')
    const router = createObserver({ client: options.client, deploymentId: 'prod', now: clock.now })
    for (const path of [
      '/users',
      '/delivery/summary',
      '/delivery/nodes',
      '/delivery/churn',
      '/rpc/pending',
      '/rpc/summary',
      '/connections/churn',
    ])
      expect((await get(router, path)).status).toBe(200)
    const elsewhere = createRedisFacilities({ ...options, deploymentId: 'prod2', onError: null })
    await expect(elsewhere.deduplicator.claim({ user_id: 'u', message_id: 'm' })).rejects.toMatchObject({
      code: 'unavailable',
    })
    await expect(client.sendCommand(['FLUSHALL'])).rejects.toThrow(/NOPERM/)
    await facilities.close()
    await elsewhere.close()
    client.destroy()
  })
})
