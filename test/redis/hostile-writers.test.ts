/** Keys with foreign values, seen by writers: they get `unavailable`. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDispatchConnector } from '../../src/cooperative-site/actions/dispatch-connector.js'
import { createCooperativeSiteRouter } from '../../src/cooperative-site/router.js'
import { createSessionPolicy } from '../../src/cooperative-site/sessions/grants.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import { createRedisSessionRegistry } from '../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { ASK } from '../contract/clock.js'
import { spoil } from './record.js'
import { createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

describeRedis('a writer to a store that others write to', () => {
  let server: Server
  let host: Connected
  const open: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    for (const close of open) await close()
    await host.close()
    await server.stop()
  })

  // biome-ignore lint/suspicious/noExplicitAny: replies of a foreign hand, read by their command
  const send = (...args: string[]): Promise<any> => (host.client as any).sendCommand(args)

  // In one step, because keys come and go by themselves: they expire, and the node's own loops write them.
  const AWAY = `if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('DEL', KEYS[2])
    else redis.call('RENAME', KEYS[1], KEYS[2]) redis.call('PERSIST', KEYS[2]) end
    return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`
  const BACK = `redis.call('DEL', KEYS[1])
    return redis.call('EXISTS', KEYS[2]) == 1 and redis.call('RENAME', KEYS[2], KEYS[1])`
  /** Replaces the value under `key`, which is kept, with a foreign one. */
  const plant = (key: string, ...command: string[]) => send('EVAL', AWAY, '2', key, 'kept', ...command)
  const restore = (key: string) => send('EVAL', BACK, '2', key, 'kept')

  /** Creates a node with a site, a session and one of everything; `told` contains its reported errors. */
  async function createNode(deploymentId: string) {
    const told: unknown[] = []
    const on = { client: host.client, deploymentId, onError: (error: unknown) => void told.push(error) }
    const facilities = createRedisFacilities({ ...on, nodeId: 'n' })
    const sites = createRedisSiteRegistry(on)
    const sessions = createRedisSessionRegistry({ ...on, sites })
    const bus = createRedisEventBus(on)
    const authenticate = () => ({ user_id: 'ada' })
    const relay = createCooperativeSiteRouter({
      sites,
      sessions,
      bus,
      ingest: facilities.ingest,
      connector: createDispatchConnector(facilities),
      authenticateHost: authenticate,
      authenticateViewer: authenticate,
      policy: createSessionPolicy({ sessions }),
    })
    open.push(relay.close, bus.close, sessions.disconnect, facilities.close)
    const site = { site_id: 's', owner: 'ada', mode: 'cooperative' as const, action_names: ['go'] }
    await sites.put({ ...site, capability_profile: { action_invocation: true } })
    const { session_id } = await sessions.open({ site_id: 's', owner: 'ada' })
    await sessions.activate(session_id)
    return { told, facilities, sites, sessions, relay, session_id }
  }

  let last = 0
  const next = (name: string) => `${name}${++last}`
  const client = { user_id: 'ada', client_id: 'c' }
  const instance = { ...client, instance_id: 'i' }

  /** Returns the calls of a host to its facilities and registries, by name. */
  function callsOf({ facilities, sites, sessions, session_id }: Awaited<ReturnType<typeof createNode>>) {
    const { connections, contexts, browserWindows, deduplicator, history, rpc, dispatcher } = facilities
    const message = { stream: 'users/ada/log', kind: 'event' as const, ...instance, payload: 1 }
    const calls: Record<string, () => unknown> = {
      connect: () => connections.connect({ ...instance, client_type: 'web', actions: ['open'] }),
      heartbeat: async () => connections.heartbeat('none'),
      current: () => connections.isCurrentInstance(instance),
      report: () =>
        contexts.report({ context_id: 'x', ...client, client_type: 'web', status: 'idle', ownership: 'worker' }),
      assign: () => contexts.assignTask('x', next('t')),
      close: () => contexts.close('x'),
      window: () => browserWindows.report({ window_id: 'w', ...client, tab_count: 1 }),
      claim: () => deduplicator.claim({ user_id: 'ada', message_id: 'm' }),
      release: () => deduplicator.release({ user_id: 'ada', message_id: 'm' }),
      append: () => history.append({ message_id: next('a'), ...message }),
      ingest: () => facilities.ingest({ message_id: next('m'), ...message, stream: 'log' }),
      open: async () => {
        const { correlation_id, result } = await rpc.open({ action: 'go', ...client })
        await rpc.settle(correlation_id, { ok: true, result: 1 })
        await result
      },
      dispatch: () => dispatcher.dispatch({ command_id: next('k'), ...client, action: 'go' }),
      again: () => dispatcher.dispatch({ command_id: 'k', ...client, action: 'go' }),
      acknowledge: () => dispatcher.acknowledge({ command_id: 'k', ...instance }),
      cancel: () => dispatcher.cancel({ command_id: next('none'), ...client }),
      attach: async () => (await dispatcher.attach(instance, () => new Promise(() => {}))).detach(),
      put: () => sites.put({ site_id: 's', owner: 'ada', mode: 'cooperative', action_names: ['go'] }),
      get: () => sites.get('s'),
      session: () => sessions.open({ site_id: 's', owner: 'ada' }),
      share: () => sessions.share(session_id, { user_id: 'bob', rights: ['view'] }),
      unshare: () => sessions.unshare(session_id, 'bob'),
      suspend: async () => {
        await sessions.suspend(session_id)
        await sessions.activate(session_id)
      },
    }
    return Object.entries(calls)
  }

  /** Returns the requests of a host and a viewer to the relay. */
  function requestsOf(session_id: string): [string, RequestInit?][] {
    const json = (method: string, body: unknown): RequestInit => ({
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const message = { message_id: next('m'), kind: 'event', stream: 'sites/s/events', client_id: 'c', instance_id: 'i' }
    return [
      ['/messages', json('POST', { ...message, payload: { name: 'changed' } })],
      ['/sites/s', json('PUT', { mode: 'cooperative', action_names: ['go'] })],
      ['/sites/s'],
      [`/sessions/${session_id}/events`],
      [`/sessions/${session_id}/actions/go`, json('POST', { timeout_ms: 50 })],
    ]
  }

  const FOREIGN: [string, ...string[]][] = [
    ['SET', 'junk'],
    ['SET', '{"user_id":"ada","owner":"ada","created_at":1e99,"ix":[[1]]}\n{}'],
    ['RPUSH', 'junk'],
    ['HSET', 'deadline_at', 'junk'],
    ['ZADD', 'inf', 'junk'],
  ]
  /**
   * Foreign values by the type that they replace: another type, a string, and a hash for a string, which was an earlier
   * format.
   */
  const IN_PLACE_OF: Record<string, string[]> = {
    string: ['SET', 'HSET', 'RPUSH'],
    hash: ['HSET', 'SET'],
    zset: ['ZADD', 'SET'],
    set: ['RPUSH', 'SET'],
    list: ['RPUSH', 'SET'],
  }

  it("gets a refusal, reports the reason, and does not reveal the store's message to clients", async () => {
    const node = await createNode('writers')
    const calls = callsOf(node)
    for (const [, call] of calls) await call()
    const wrong = new Set<string>()
    const keys: string[] = await send('KEYS', 'relayscope:{writers:*')
    for (const key of keys) {
      const commands = IN_PLACE_OF[await send('TYPE', key)] ?? ['SET', 'RPUSH']
      for (const [command, ...values] of FOREIGN.filter(([command]) => commands.includes(command))) {
        await plant(key, command, ...values)
        const place = `with ${key} by ${command} ${values[0]}`
        await Promise.all(
          calls.map(async ([name, call]) => {
            try {
              await call()
            } catch (error) {
              if (!(error instanceof Refusal)) wrong.add(`${name} threw ${error} ${place}`)
              else if (/WRONGTYPE|ERR|script:/.test(error.message)) wrong.add(`${name} said ${error.message} ${place}`)
            }
          }),
        )
        for (const [path, init] of requestsOf(node.session_id)) {
          const answer = await node.relay(new Request(`http://h${path}`, init))
          const reader = answer.body?.getReader()
          const text = new TextDecoder().decode((await reader?.read())?.value)
          await reader?.cancel()
          if (answer.status === 500 || /WRONGTYPE|user_script/.test(text))
            wrong.add(`${answer.status} ${path} ${place}`)
        }
        await restore(key)
      }
    }
    expect(keys.length).toBeGreaterThan(40)
    expect([...wrong]).toEqual([])
    expect(node.told.map(String).join()).toMatch(/another type/)
  })

  it('returns 503 while a key has another type, and works once it is deleted', async () => {
    const { relay, facilities, sites } = await createNode('gone')
    await facilities.connections.connect({ ...instance, client_type: 'web' })
    for (const [key, request] of [
      ['messages:seq', '/messages'],
      ['dedup:seen', '/messages'],
    ] as const) {
      const ctx = async () => {
        const [path, init] = requestsOf('none').find(([path]) => path === request) as [string, RequestInit]
        const answer = await relay(new Request(`http://h${path}`, init))
        return [key, answer.status, (await answer.json()).code]
      }
      const success = [key, 202, undefined]
      expect(await ctx()).toEqual(success)
      await plant(`relayscope:{gone:0}:${key}`, 'RPUSH', 'a')
      expect(await ctx()).toEqual([key, 503, 'unavailable'])
      await restore(`relayscope:{gone:0}:${key}`)
      expect(await ctx()).toEqual(success)
    }
    const put = (site_id: string) => sites.put({ site_id, owner: 'ada', mode: 'observe' })
    await put('one')
    await plant('relayscope:{gone:0}:sites:leaves', 'RPUSH', 'a')
    await expect(put('two')).rejects.toMatchObject({ code: 'unavailable' })
    await restore('relayscope:{gone:0}:sites:leaves')
    expect(await put('two')).toMatchObject({ created: true })
  })

  it('replaces a site with an invalid time', async () => {
    const { sites } = await createNode('times')
    await send(
      'SET',
      'relayscope:{times:0}:sites:row:s',
      '{"seq":1,"ix":[["owner","ada"]]}\n{"site_id":"s","owner":"ada","created_at":1e99,"updated_at":1}',
    )
    expect(await sites.put({ site_id: 's', owner: 'ada', mode: 'observe' })).toMatchObject({ created: true })
    expect(await sites.get('s')).toMatchObject({ owner: 'ada', mode: 'observe' })
  })

  it.each(['junk', '0', '1e99'])('cannot serve a deployment whose number of shards is %s', async (number) => {
    await send('SET', 'relayscope:{shards:0}:shards', number)
    const { contexts } = createRedisFacilities({ client: host.client, deploymentId: 'shards', onError: null })
    await expect(contexts.close('x')).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('cannot serve a deployment whose number of shards is of another type, and reports it', async () => {
    await send('RPUSH', 'relayscope:{list:0}:shards', '1')
    const told: unknown[] = []
    const onError = (error: unknown) => void told.push(String(error))
    const observer = createObserver({ client: host.client, deploymentId: 'list', onError })
    expect(await get(observer, '/contexts')).toMatchObject({ status: 503 })
    const { contexts } = createRedisFacilities({ client: host.client, deploymentId: 'list', onError: null })
    await expect(contexts.close('x')).rejects.toMatchObject({ code: 'unavailable' })
    expect(told).toEqual(['WrongType: a key holds another type than its command expects'])
  })

  it('ends commands despite foreign records and references', async () => {
    let now = 1_000
    const on = { client: host.client, deploymentId: 'loop', now: () => now }
    const dispatcher = createRedisCommandDispatcher(on)
    open.push(dispatcher.close)
    for (const command_id of ['k1', 'k2', 'k3', 'k4'])
      await dispatcher.dispatch({ ...client, command_id, action: 'go', deadline_ms: 500 })
    const delivery = 'relayscope:{loop:0}:delivery'
    for (const index of ['due', 'chunks']) await send('ZADD', `${delivery}:${index}`, '0', 'junk')
    for (const list of ['due:4', 'queue:ada:c']) await send('RPUSH', `${delivery}:${list}`, 'junk', '7 junk', '=junk=')
    await spoil(send, `${delivery}:command:ada:c:k1`, 'deadline_at', 'junk')
    await spoil(send, `${delivery}:command:ada:c:k2`, 'attempts', 'junk')
    await spoil(send, `${delivery}:command:ada:c:k3`, 'scope', '')
    now += 750
    await dispatcher.reconcile()
    const status = await dispatcher.inspector.status({ ...client, command_id: 'k4' }, ASK)
    expect(status?.terminal).toMatchObject({ state: 'expired' })
    expect(await send('HGET', `${delivery}:counts`, 'w')).toBe('0')
    // An invalid record leaves the id of its command free.
    for (const command_id of ['k1', 'k2', 'k3']) {
      const again = await dispatcher.dispatch({ ...client, command_id, action: 'go' })
      expect(again).toMatchObject({ admission: { state: 'admitted' }, terminal: null })
    }
  })
})
