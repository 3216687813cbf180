/** Values of other applications among the reservations of a deployment. */
import { expect, it, onTestFinished } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { ASK, walk } from '../contract/clock.js'
import { clients, describeRedis, startServer } from './server.js'

/** Command, what it does to the list of two scopes, the scopes that stay, and how many entries are left out. */
const DAMAGE = [
  ['HSET scopes a text', ['b'], 1],
  ['HSET scopes a -5', ['b'], 1],
  ['HSET scopes a 1.5', ['b'], 1],
  ['HSET scopes a 1e300', ['b'], 1],
  ['HSET scopes a nan', ['b'], 1],
  ['ZADD scope-order 3 %zz', ['a', 'b'], 1],
  ['ZADD scope-order 3 a/b', ['a', 'b'], 1],
  ['ZADD scope-order 3 %00', ['a', 'b'], 1],
  ['ZADD scope-order -inf a', ['b'], 1],
  ['SET scope-order x', [], 1],
  ['SET scopes x', [], 2],
  ['HSET capacities a text', ['a', 'b'], 0],
  ['SET capacities x', ['a', 'b'], 0],
] as const

describeRedis('foreign values among the reservations', () => {
  it('lose no other scope, and are counted', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const { client, close } = await clients.ioredis([server.port])
    onTestFinished(close)
    for (const [i, [damage, scopes, omitted]] of DAMAGE.entries()) {
      const errors: unknown[] = []
      const where = { client, deploymentId: `d${i}`, onError: (error: unknown) => void errors.push(error) }
      const { dispatcher, close: end } = createRedisFacilities({ ...where, nodeId: 'n', onError: null })
      const given = { user_id: 'u', client_id: 'c', action: 'x', deadline_ms: 600_000 }
      for (const scope_id of ['a', 'b']) await dispatcher.dispatch({ ...given, scope_id, command_id: scope_id })
      await end()
      const [name = '', key = '', ...values] = damage.split(' ')
      const path = `relayscope:{d${i}:0}:delivery:${key}`
      if (name === 'SET') await server.cli('DEL', path)
      await server.cli(name, path, ...values)

      const { delivery } = redisComposition(where).inspectors
      let left = 0
      const list = async (page: Parameters<NonNullable<typeof delivery>['listTenants']>[0]) => {
        const answer = await (delivery as NonNullable<typeof delivery>).listTenants(page, ASK)
        left += answer.omitted ?? 0
        return answer
      }
      for (const limit of [1, 10]) {
        left = 0
        const found = await walk(list, limit)
        expect([damage, found.map(({ scope_id }) => scope_id).sort(), left]).toEqual([damage, scopes, omitted])
      }
      if (omitted > 0) expect([damage, errors.length > 0]).toEqual([damage, true])
    }
  })

  it('in a command are left out of the list of commands, and do not end it', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const { client, close } = await clients.ioredis([server.port])
    onTestFinished(close)
    const where = { client, deploymentId: 'd', onError: null }
    const { dispatcher, close: end } = createRedisFacilities({ ...where, nodeId: 'n' })
    const given = { user_id: 'u', client_id: 'c', action: 'x', deadline_ms: 600_000 }
    for (const command_id of ['a', 'b']) await dispatcher.dispatch({ ...given, command_id })
    await end()
    const log = (await server.cli('KEYS', 'relayscope:{d:0}:delivery:log:*')).trim()
    await server.cli('LSET', log, '0', 'u:c:%zz')
    const page = await redisComposition(where).inspectors.delivery?.listCommands?.({}, { limit: 9, cursor: null }, ASK)
    expect(page?.items.map(({ command_id }) => command_id)).toEqual(['b'])
  })
})
