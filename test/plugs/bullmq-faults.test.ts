/** That queues which are down, hang, or hold nonsense cost an answer of their own, and that no question changes them. */
import type { Job } from 'bullmq'
import { expect, it, onTestFinished } from 'vitest'
import { type BullmqQueue, createBullmqInspectors } from '../../src/bullmq/index.js'
import { BadRecord } from '../../src/internal/contract/bad-record.js'
import type { DeliveryCommand, DeliveryNode } from '../../src/internal/contract/delivery.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { Refusal } from '../../src/internal/refusal.js'
import { scopeInspectors } from '../../src/internal/views/scope/inspectors.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { ASK } from '../contract/clock.js'
import { createWorld } from '../diagnostics/world.js'
import { get } from '../redis/router.js'
import { type Server, startServer } from '../redis/server.js'
import { soon } from '../redis/wait-for.js'
import {
  type Bullmq,
  commandsOf,
  describeBullmq,
  listed,
  NEWEST,
  nodesOf,
  observe,
  scopesOf,
  startWorld,
  statusPath,
  worldOver,
} from './bullmq-world.js'

const ROUTES = [
  '/delivery/summary',
  '/delivery/nodes',
  '/delivery/tenants',
  '/delivery/commands',
  statusPath('emails', '1'),
]

const jobs = (count: number, data: unknown = {}) => Array.from({ length: count }, () => ({ name: 'send', data }))

/** Everything that a server holds, key by key. */
async function contentsOf(server: Server): Promise<Map<string, string>> {
  const keys = (await server.cli('KEYS', '*')).split('\n').sort()
  return new Map(
    await Promise.all(keys.map(async (key): Promise<[string, string]> => [key, await server.cli('DUMP', key)])),
  )
}

const inspect = (bullmq: Bullmq) => {
  it('change nothing that the queues hold', async () => {
    const { server, queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(jobs(5))
    const before = await contentsOf(server)
    const router = observe({ queues: [emails], identify: () => ({ user_id: 'ada' }) })
    expect(await commandsOf(router)).toHaveLength(5)
    expect((await scopesOf(router))[0]?.reserved_commands).toBe(5)
    for (const path of ROUTES) await get(router, path)
    expect(await contentsOf(server)).toEqual(before)
  })

  it('answer 503 while a queue is down, and its siblings and other sources answer', async () => {
    const { queue } = await startWorld(bullmq)
    const doomed = await startServer()
    onTestFinished(() => doomed.stop())
    const lost = worldOver(doomed, bullmq).queue('lost')
    const emails = queue('emails')
    await Promise.all([lost.add('send', {}), emails.add('send', {})])
    const { registry } = createFakeInspectors(createWorld())
    const { delivery } = createBullmqInspectors({ queues: [emails, lost] })
    const router = createDiagnosticsRouter({ inspectors: { registry, delivery }, auth: noopAuth(), onError: null })
    expect(await commandsOf(router)).toHaveLength(2)
    await doomed.kill()
    const { client } = (bullmq.at === 'bullmq' ? lost.getBackend() : lost) as unknown as {
      client: Promise<{ status: string }>
    }
    await soon(async () => expect(['ready', 'connect']).not.toContain((await client).status))
    for (const path of [
      '/delivery/summary',
      '/delivery/tenants',
      '/delivery/commands?scope_id=lost',
      '/delivery/nodes',
    ]) {
      const { status, body } = await get(router, path)
      expect([path, status, body.code]).toEqual([path, 503, 'inspector_unavailable'])
    }
    expect(await commandsOf(router, '?scope_id=emails')).toHaveLength(1)
    expect((await get(router, statusPath('emails', '1'))).status).toBe(200)
    expect((await get(router, '/connections')).status).toBe(200)
    const { body } = await get(router, '/sources')
    expect(body.items).toMatchObject([
      { source: 'registry', answered: true },
      { source: 'delivery', answered: false, code: 'inspector_unavailable' },
    ])
  })

  it('are unavailable when a queue hangs, late where the request ends before, and answer again after', async () => {
    const { server, queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.add('send', {})
    const [patient, hasty] = [observe({ queues: [emails], timeoutMs: 2_000 }), observe({ queues: [emails] }, 200)]
    expect(await commandsOf(patient)).toHaveLength(1)
    server.pause()
    const codes = async (router: typeof patient) =>
      Promise.all(ROUTES.map(async (path) => (await get(router, path)).body.code))
    expect(await codes(patient)).toEqual(ROUTES.map(() => 'inspector_unavailable'))
    expect(await codes(hasty)).toEqual(ROUTES.map(() => 'inspector_timeout'))
    server.resume()
    await soon(async () => expect(await commandsOf(patient)).toHaveLength(1))
  })

  it('gather no more than a bounded number of questions to a queue that never answers', async () => {
    let asked = 0
    const pending = () => {
      asked += 1
      return new Promise<never>(() => {})
    }
    const hanging: BullmqQueue = {
      name: 'hanging',
      getJob: pending,
      getJobState: pending,
      getJobs: pending,
      getJobCounts: pending,
      isPaused: pending,
      getMetrics: pending,
      getWorkers: pending,
    }
    const { delivery } = createBullmqInspectors({ queues: [hanging], timeoutMs: 1 })
    const refused: string[] = []
    for (let i = 0; i < 1_050; i++)
      await Promise.resolve(delivery.listCommands?.({}, { limit: 1, cursor: null }, ASK)).catch((error) =>
        refused.push(String(error.message)),
      )
    expect(asked).toBe(1_000)
    expect(refused).toHaveLength(1_050)
    expect(refused.filter((message) => message.includes('1000 calls'))).toHaveLength(50)
  })

  it('leave out jobs that cannot be read, or whose id is too long, and say how many', async () => {
    const { server, queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk(jobs(3))
    await emails.add('send', {}, { jobId: 'x'.repeat(250) })
    await server.cli('DEL', 'bull:emails:2')
    await server.cli('RPUSH', 'bull:emails:active', 'meta')
    await server.cli('ZADD', 'bull:emails:completed', '1', '3')
    await server.cli('SET', 'bull:emails:text', 'no hash')
    await server.cli('RPUSH', 'bull:emails:active', 'text')
    const errors: unknown[] = []
    const router = observe({ queues: [emails] }, 5_000, (error) => errors.push(error))
    const { status, body } = await get(router, '/delivery/commands')
    expect(status).toBe(200)
    expect(body.items.map(({ command_id }: { command_id: string }) => command_id)).toEqual(['emails:3', 'emails:1'])
    expect(body.omitted).toBe(4)
    expect(errors.every((error) => error instanceof BadRecord)).toBe(true)
    expect(errors).toHaveLength(4)
    for (const id of ['2', 'meta', 'text', 'none', ''])
      expect((await get(router, statusPath('emails', id))).status).toBe(404)
    expect((await get(router, statusPath('other', '1'))).status).toBe(404)
  })

  it('look at no more jobs than a request may, whatever the filter passes over', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk([...jobs(3, { user: 'bob' }), ...jobs(250, { user: 'ada' })])
    const identify = ({ data }: { data: unknown }) => ({ user_id: (data as { user: string }).user })
    const inspectors = createBullmqInspectors({ queues: [emails], identify })
    const router = createDiagnosticsRouter({ inspectors, auth: noopAuth(), limits: { examined: 120 } })
    const pages: number[] = []
    for (let cursor = ''; ; ) {
      const { body } = await get(router, `/delivery/commands?user_id=bob&limit=2${cursor}`)
      pages.push(body.items.length)
      if (!body.has_more) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(pages).toEqual([0, 0, 2, 1])
  })

  it('give `identify` the payload of a job, and survive what it does', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk([...jobs(1, 'x'.repeat(70_000)), ...jobs(100, { to: 'y' }), ...jobs(3, 'z')])
    const seen: unknown[] = []
    const errors: unknown[] = []
    const identify = async ({ id, queue, name, data }: { id: string; queue: string; name: string; data: unknown }) => {
      seen.push([queue, name, typeof data])
      if (id === '102') throw new Error('no such user')
      if (id === '103') return { user_id: 'a\nb' }
      return id === '104' ? null : { user_id: `u${id}`, client_id: 'c' }
    }
    const router = observe({ queues: [emails], identify }, 5_000, (error) => errors.push(error))
    const commands = await listed<DeliveryCommand>(router, '/delivery/commands', 200)
    expect(commands).toHaveLength(104)
    expect(seen.slice(-2)).toEqual([
      ['emails', 'send', 'object'],
      ['emails', 'send', 'string'],
    ])
    expect(commands.slice(0, 4).map(({ user_id, client_id }) => [user_id, client_id])).toEqual([
      [null, null],
      [null, null],
      [null, null],
      ['u101', 'c'],
    ])
    expect(errors.map(String).sort()).toEqual([
      'Error: no such user',
      expect.stringContaining('identify: user_id must not'),
    ])
  })

  it('show a job without a user when `identify` returns nothing or an invalid value, and report the latter', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    const told: unknown[] = [
      new Promise(() => {}),
      42,
      'ada',
      [],
      { userId: 'ada' },
      { user_id: 'bob', instance_id: 'i' },
      { user_id: 'bob', role: 'x' },
    ]
    await emails.addBulk(jobs(told.length, 'z'))
    const errors: unknown[] = []
    const identify = (({ id }: { id: string }) => told[Number(id) - 1]) as NonNullable<
      Parameters<typeof createBullmqInspectors>[0]['identify']
    >
    const router = observe({ queues: [emails], identify }, 5_000, (error) => errors.push(error))
    expect((await commandsOf(router)).map(({ user_id }) => user_id)).toEqual([
      null,
      'bob',
      null,
      null,
      null,
      null,
      null,
    ])
    const amiss = 'TypeError: identify must return null or an object with user_id and client_id'
    expect(errors.map(String).sort()).toEqual([
      'Error: identify did not return within 1000 ms',
      ...Array(3).fill(amiss),
      'TypeError: identify: Unknown field "role". Valid fields: user_id, client_id',
      'TypeError: identify: Unknown field "userId". Did you mean "user_id"?',
    ])
  })

  it('show a job only to callers that may see its user', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk([...jobs(2, { user: 'ada' }), ...jobs(2, {})])
    const identify = ({ data }: { data: unknown }) => ({ user_id: (data as { user?: string }).user })
    const inspectors = scopeInspectors(createBullmqInspectors({ queues: [emails], identify }), {
      user_ids: ['ada', 'emails'],
    })
    const router = createDiagnosticsRouter({ inspectors, auth: noopAuth() })
    expect((await commandsOf(router)).map(({ command_id }) => command_id)).toEqual(['emails:2', 'emails:1'])
    expect((await get(router, statusPath('emails', '1', 'ada'))).status).toBe(200)
    expect((await get(router, statusPath('emails', '3'))).status).toBe(404)
    expect((await get(router, '/delivery/tenants')).status).toBe(403)
  })

  it('miss no client where a job is for none', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    await emails.addBulk([...jobs(1, { user: 'ada' }), ...jobs(1, { user: 'ada', client: 'gone' })])
    const identify = ({ data }: { data: unknown }) => {
      const { user, client } = data as { user: string; client?: string }
      return { user_id: user, client_id: client }
    }
    const { registry } = createFakeInspectors({ connections: [] })
    const { delivery } = createBullmqInspectors({ queues: [emails], identify })
    const router = createDiagnosticsRouter({ inspectors: { registry, delivery }, auth: noopAuth() })
    const { body } = await get(router, '/findings')
    expect(body.items.map(({ kind, subject }: { kind: string; subject: unknown }) => [kind, subject])).toEqual([
      ['command_waiting_for_nobody', { user_id: 'ada', client_id: 'gone', command_id: 'emails:2' }],
    ])
  })

  it('show workers of a store whose connections have no numbers, page by page', async () => {
    const { queue } = await startWorld(bullmq)
    const emails = queue('emails')
    const names = ['emails:w:w2', 'emails', 'emails:w:w1', 'emails:w:w1']
    const getWorkers = async () => names.map((rawname) => ({ name: 'emails', rawname }))
    const listing: BullmqQueue = new Proxy(emails, {
      get: (on, name) => (name === 'getWorkers' ? getWorkers : Reflect.get(on, name, on)),
    })
    const router = observe({ queues: [listing] }, 5_000, null)
    const first = (await get(router, '/delivery/nodes?limit=3')).body
    const rest = (await get(router, `/delivery/nodes?limit=3&cursor=${first.next_cursor}`)).body
    const shown = [...first.items, ...rest.items].map(({ node_id, metadata }) => [node_id, metadata.worker_name])
    expect(shown).toEqual([
      ['emails::', null],
      ['emails:w1:', 'w1'],
      ['emails:w1:1', 'w1'],
      ['emails:w2:', 'w2'],
    ])
    expect(rest.has_more).toBe(false)
  })

  it('say that a store does not list its workers, and answer all else', async () => {
    const { queue, worker } = await startWorld(bullmq)
    const [emails, mute, managed] = [queue('emails'), queue('mute'), queue('managed')]
    await worker('emails', async () => {})
    const errors: unknown[] = []
    /** A queue whose store lists connections in another way. */
    const listing = (own: BullmqQueue, getWorkers: BullmqQueue['getWorkers']): BullmqQueue =>
      new Proxy(own, { get: (on, name) => (name === 'getWorkers' ? getWorkers : Reflect.get(on, name, on)) })
    const refused = async () =>
      Promise.reject(new Error('NOPERM this user has no permissions to run the client|list command'))
    const queues = [
      listing(mute, refused),
      listing(managed, async () => [{ name: 'GCP does not support client list' }]),
      emails,
    ]
    const router = observe({ queues }, 5_000, (error) => errors.push(error))
    const { body } = await get(router, '/delivery/nodes')
    expect(body).toMatchObject({ items: [{ metadata: { queue: 'emails', worker_name: null } }], omitted: 2 })
    expect(errors.map(String)).toEqual([
      expect.stringContaining('the queue mute does not list its workers'),
      expect.stringContaining('the queue managed does not list its workers'),
    ])
    expect(await scopesOf(router)).toHaveLength(3)
    expect(await nodesOf(router)).toHaveLength(1)
  })

  it('list workers queue by queue, and ask no more queues than a request may', async () => {
    const { server, queue, worker } = await startWorld(bullmq)
    const queues = ['first', 'ä second', 'third'].map((name) => queue(name))
    for (const [i, { name }] of queues.entries()) await worker(name, async () => {}, { name: `worker-${i}` })
    const asked = async () =>
      Number(/cmdstat_client\|list:calls=(\d+)/.exec(await server.cli('INFO', 'commandstats'))?.[1] ?? 0)
    const inspectors = createBullmqInspectors({ queues })
    const router = createDiagnosticsRouter({ inspectors, auth: noopAuth(), limits: { examined: 2 } })
    const names = async (cursor = ''): Promise<unknown[]> => {
      const { body } = await get(router, `/delivery/nodes${cursor}`)
      const shown = body.items.map(({ metadata }: DeliveryNode) => metadata?.worker_name)
      return body.has_more ? [...shown, ...(await names(`?cursor=${body.next_cursor}`))] : shown
    }
    expect(await names()).toEqual(['worker-0', 'worker-1', 'worker-2'])
    expect(await asked()).toBeLessThanOrEqual(5)
  })

  it('know nothing of who waits for a result, for nothing in the store does', async () => {
    const { server, queue } = await startWorld(bullmq)
    const emails = queue('emails')
    const events = new bullmq.QueueEvents('emails', { connection: { host: '127.0.0.1', port: server.port } })
    onTestFinished(() => events.close())
    await events.waitUntilReady()
    const job: Job = await emails.add('send', {})
    const before = await contentsOf(server)
    const waiting = job.waitUntilFinished(events, 60_000)
    waiting.catch(() => {})
    await soon(() => expect(events.listenerCount(`completed:${job.id}`)).toBe(1))
    await job.isCompleted()
    expect(await contentsOf(server)).toEqual(before)
    const router = observe({ queues: [emails] })
    expect((await get(router, '/rpc/pending')).body).toMatchObject({ code: 'inspector_absent' })
    expect((await get(router, '/capabilities')).body).toMatchObject({ delivery: true, rpc: false })
  })

  it('refuse what are no queues, and two of one name', async () => {
    const { queue } = await startWorld(bullmq)
    const [emails, other] = [queue('emails'), queue('emails', { prefix: 'other' })]
    const refusal = (queues: unknown) => () => createBullmqInspectors({ queues: queues as never })
    expect(refusal([{}])).toThrow('Invalid option "queues.0": expected a Queue of bullmq 5 or 6, got an object')
    const ofAnother = { name: 'six', toKey() {}, getWorkers() {} }
    expect(refusal([ofAnother])).toThrow('Invalid option "queues.0": expected a Queue of bullmq 5 or 6')
    expect(refusal([null])).toThrow('Invalid option "queues.0": expected a Queue of bullmq 5 or 6, got null')
    expect(refusal(emails)).toThrow('Invalid option "queues": expected an array')
    expect(refusal([emails, other])).toThrow('Invalid option "queues.1": another queue has the name "emails"')
    expect(
      refusal([new Proxy(emails, { get: (on, name) => (name === 'name' ? 'a\nb' : Reflect.get(on, name)) })]),
    ).toThrow(/Invalid option "queues.0": the queue name must not contain control/)
  })

  it('refuse a token of another list, or of a queue that is not theirs', async () => {
    const { queue } = await startWorld(bullmq)
    const { delivery } = createBullmqInspectors({ queues: [queue('emails')] })
    for (const cursor of [
      ...['8/0/0/emails', '1/01/0/emails', '1/0/0/other', '1/0/0/', 'emails', '1/1/3/42emails', '-1/0/0/emails'],
    ])
      await expect(async () => delivery.listCommands?.({}, { limit: 1, cursor }, ASK)).rejects.toThrow(Refusal)
    for (const cursor of ['x.emails', '1.other', 'emails'])
      await expect(async () => delivery.listNodes({ limit: 1, cursor }, ASK)).rejects.toThrow(Refusal)
  })
}

describeBullmq('the inspectors of queues', inspect, NEWEST)
