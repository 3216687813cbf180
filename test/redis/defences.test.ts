/** What a reader checks although nobody of ours would write it: each of these answers wrongly without its check. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createClock } from '../contract/clock.js'
import { createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

describeRedis('a reader of what stands under the wrong key', () => {
  let server: Server
  let host: Connected
  const clock = createClock()
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await host.close()
    await server.stop()
  })

  function deployment(deploymentId: string) {
    const where = { client: host.client, deploymentId, now: clock.now }
    const reported: string[] = []
    const router = createObserver({ ...where, onError: (error) => void reported.push(String(error)) })
    const key = (...parts: string[]) => `relayscope:{${deploymentId}:0}:${parts.join(':')}`
    return { facilities: createRedisFacilities(where), reported, router, key }
  }
  const context = (user_id: string, context_id: string) =>
    ({ user_id, context_id, client_id: 'c', client_type: 'web', status: 'idle' }) as const

  it.each([
    ['user', ['bob', 'c', 'k']],
    ['client', ['ann', 'd', 'k']],
    ['command', ['ann', 'c', 'l']],
  ])("shows no status that is of another %s's command", async (_, [user_id = '', client_id = '', command_id = '']) => {
    const { facilities, reported, router, key } = deployment(`status-${user_id}-${client_id}-${command_id}`)
    const command = { user_id: 'ann', client_id: 'c', command_id: 'k', action: 'open', deadlineMs: 600_000 }
    await facilities.dispatcher.dispatch(command)
    await facilities.dispatcher.close()
    const path = (user: string, client: string, id: string) =>
      `/delivery/status?user_id=${user}&client_id=${client}&command_id=${id}`
    expect((await get(router, path('ann', 'c', 'k'))).status).toBe(200)
    const other = key('delivery', 'command', user_id, client_id, command_id)
    expect(await server.cli('COPY', key('delivery', 'command', 'ann', 'c', 'k'), other)).toBe('1')
    expect((await get(router, path(user_id, client_id, command_id))).status).toBe(404)
    expect(reported).toEqual([`BadRow: ${other} should hold the record of a command, and holds something else`])
  })

  it('shows no status whose retention is over, though nobody has cleared it up', async () => {
    const { facilities, router } = deployment('retention')
    const command = { user_id: 'ann', client_id: 'c', command_id: 'k', action: 'open' }
    await facilities.dispatcher.dispatch(command)
    await facilities.dispatcher.cancel(command)
    await facilities.dispatcher.close()
    const path = '/delivery/status?user_id=ann&client_id=c&command_id=k'
    expect((await get(router, path)).status).toBe(200)
    clock.advance(3_600_000)
    expect((await get(router, path)).status).toBe(404)
  })

  describe('takes a row for none that is longer than any record', () => {
    it.each([
      ['a page', '/contexts', { items: [], omitted: 1 }],
      ['counts', '/contexts/count', { total: 0, completeness: { complete: false } }],
      ['a user', '/users', { items: [{ user_id: 'ann', observed_contexts: null }], completeness: { complete: false } }],
      ['one record', '/contexts/x', { code: 'not_found' }],
    ])('in %s', async (name, path, body) => {
      const { facilities, reported, router, key } = deployment(`long-${name.replaceAll(' ', '_')}`)
      await facilities.contexts.report(context('ann', 'x'))
      const row = await server.cli('GET', key('contexts', 'row', 'x'))
      const long = row.replace('{', `{${' '.repeat(131_072)}`)
      await (host.client as unknown as { sendCommand(args: string[]): Promise<unknown> }).sendCommand([
        'SET',
        key('contexts', 'row', 'x'),
        long,
      ])
      expect((await get(router, path)).body).toMatchObject(body)
      expect(reported.join()).toMatch(/x is \d+ characters long, and a row at most/)
    })
  })

  it("counts as a user's what the record says is, whatever the index of users says", async () => {
    const { facilities, router, key } = deployment('index')
    await facilities.contexts.report(context('ann', 'x'))
    await server.cli('ZADD', key('contexts', 'users'), '0', 'bob')
    await server.cli('ZADD', key('contexts', 'live', 'bob'), String(clock.now() + 90_000), 'x')
    await server.cli('ZADD', key('contexts', 'user_id', 'bob'), '1', 'x')
    const { items } = (await get(router, '/users')).body
    expect(items).toMatchObject([{ user_id: 'ann', observed_contexts: 1 }])
    expect((await get(router, '/users/bob/summary')).status).toBe(404)
    expect((await get(router, '/contexts?user_id=bob')).body.items).toEqual([])
  })
})
