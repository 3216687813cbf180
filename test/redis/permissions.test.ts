import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { createClock } from '../contract/clock.js'
import { createObserver, get } from './router.js'
import { describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'
import { createIds, live } from './world.js'

describeRedis('the documented permissions of a node', () => {
  it('suffice for everything that a node does, and only in its deployment', async () => {
    const docs = await readFile(new URL('../../docs/redis-keys.md', import.meta.url), 'utf8')
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
    for (const { path } of ROUTES) {
      const { status } = await get(router, path.replaceAll(/\{\w+\}/g, 'x'))
      expect([path, [200, 404, 422].includes(status)]).toEqual([path, true])
    }
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

/** What an observer sends; each is taken away in turn. */
const COMMANDS = [
  'get',
  'mget',
  'hget',
  'hmget',
  'hgetall',
  'zrange',
  'zcount',
  'zcard',
  'eval_ro',
  'llen',
  'lrange',
  'scard',
]

/** Asks every route of the deployment `prod`, and returns the commands that were refused on the way. */
async function refusedOn(client: RedisClient, now: () => number): Promise<string[]> {
  const errors: unknown[] = []
  const composition = redisComposition({ client, deploymentId: 'prod', now, onError: null })
  const router = createDiagnosticsRouter({
    ...composition,
    auth: noopAuth(),
    deadlineMs: 60_000,
    now,
    onError: (error) => errors.push(error),
  })
  for (const { path } of ROUTES) {
    const seen = errors.length
    const { status } = await get(router, path.replaceAll(/\{\w+\}/g, 'ann'))
    expect([path, status, [200, 404, 422, 503].includes(status)]).toEqual([path, status, true])
    // No route fails without saying why.
    if (status === 503) expect([path, errors.length > seen]).toEqual([path, true])
  }
  return errors.map((error) => inspect(error).toLowerCase())
}

/** Starts a store that has what the one at `port` has, and not the command `name`. */
async function startWithout(name: string, port: number): Promise<Server> {
  const server = await startServer({ args: ['--replicaof', `127.0.0.1 ${port}`, '--rename-command', name, ''] })
  await soon(async () => expect(await server.cli('INFO', 'replication')).toContain('master_link_status:up'))
  return server
}

describeRedis('a command that an observer may not send', () => {
  it.each(['is forbidden', 'was renamed'])('that %s is 503, and named to onError', async (how) => {
    const full = await startServer({ args: ['--repl-diskless-sync-delay', '0'] })
    onTestFinished(() => full.stop())
    const clock = createClock()
    const writer = await createClient({ url: `redis://127.0.0.1:${full.port}` }).connect()
    const facilities = createRedisFacilities({ client: writer, deploymentId: 'prod', now: clock.now, onError: null })
    await live(facilities, clock)
    await facilities.close()
    writer.destroy()
    let refused = 0
    for (const name of COMMANDS) {
      const server = how === 'was renamed' ? await startWithout(name, full.port) : full
      if (server === full)
        await full.cli('ACL', 'SETUSER', 'other', 'reset', 'on', '>x', '~*', '&*', '+@all', `-${name}`)
      const user = server === full ? 'other:x@' : ''
      const client = await createClient({ url: `redis://${user}127.0.0.1:${server.port}` }).connect()
      const errors = await refusedOn(client, clock.now)
      refused += errors.length
      expect(errors.filter((text) => !text.includes(name))).toEqual([])
      client.destroy()
      if (server !== full) await server.stop()
    }
    expect(refused).toBeGreaterThan(COMMANDS.length)
  })
})
