/**
 * The entity tags of lists and counts: the same while nothing changes, another after any change, and 304 for a client
 * that sends the current one.
 */
import { describe, expect, it } from 'vitest'
import { familiesOf } from '../../src/internal/diagnostics/question.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createMessageHistory } from '../../src/memory/history/facility.js'
import { createMemorySpillStore } from '../../src/memory/history/spill-store.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createPartial, PARTIAL } from './partial.js'
import { CASES, createSubject, createWatched, get, never, withQuery } from './subject.js'
import { call, connection, createWorld, NOW, node } from './world.js'

const isList = ({ response }: { response: unknown }) => 'items' in ((response as { shape?: object }).shape ?? {})
const COMPARED = CASES.filter(({ path, route }) => path.endsWith('/count') || isList(route))

describe.each(COMPARED)('the tag of $path', ({ url, route }) => {
  it('returns 304 without a body for a matching If-None-Match, for GET and HEAD', async () => {
    const router = createSubject()
    const etag = (await get(router, url)).headers.get('etag') as string
    expect(etag).toMatch(/^W\/"[0-9a-f]{16}"$/)
    for (const method of ['GET', 'HEAD']) {
      for (const named of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
        const answer = await get(router, url, { method, headers: { 'if-none-match': named } })
        expect([named, answer.status, answer.text]).toEqual([named, 304, ''])
        expect(answer.headers.get('etag')).toBe(etag)
        expect(answer.headers.get('cache-control')).toBe('no-store')
      }
      const other = await get(router, url, { method, headers: { 'if-none-match': 'W/"0000000000000000"' } })
      expect(other.status).toBe(200)
    }
  })

  it('is of this question alone', async () => {
    const router = createSubject()
    const { headers } = await get(router, url)
    if (!route.page) return
    const narrower = await get(router, withQuery(url, 'limit=1'), {
      headers: { 'if-none-match': `${headers.get('etag')}` },
    })
    expect(narrower.status).toBe(200)
  })
})

describe.each(COMPARED.filter(({ route }) => !route.unversioned))('the version of $path', ({ url, route }) => {
  it('is that of every source that the answer is made of', async () => {
    const { router, calls } = createWatched()
    expect((await get(router, url)).status).toBe(200)
    const asked = new Set(calls.map(({ name }) => name.split('.')[0]))
    expect([...asked].filter((name) => !familiesOf(route).includes(name as never))).toEqual([])
    expect(asked.size).toBeGreaterThan(0)
  })
})

describe.each(COMPARED.filter(({ route }) => route.unversioned))('the tag of $path', ({ url }) => {
  it('is made of the answer, whatever its sources say of their changes', async () => {
    const inspectors = createFakeInspectors(createWorld())
    const said = Object.entries(inspectors).map(([name, one]) => [name, { ...one, version: () => 'the same' }])
    const tags = [inspectors, Object.fromEntries(said)].map(async (some) =>
      (await get(createSubject({ inspectors: some, now: () => NOW }), url)).headers.get('etag'),
    )
    const [plain, given] = await Promise.all(tags)
    expect(given).toBe(plain)
  })
})

describe('a tag', () => {
  it('is not the clock: an age that grows is no change', async () => {
    const tagAt = async (age: number, path: string) => {
      const world = { calls: [call({ age_ms: age })], delivery: { nodes: [node({ staleness_ms: age })] } }
      const inspectors = createFakeInspectors(world)
      return (await get(createSubject({ inspectors, now: () => NOW + age }), path)).headers.get('etag')
    }
    for (const path of ['/rpc/pending', '/delivery/nodes', '/sources'])
      expect(await tagAt(5, path)).toBe(await tagAt(5_000, path))
  })

  it('is another one for other users in sight', async () => {
    const tagFor = async (user_ids: string[]) =>
      (await get(createSubject({ authorize: () => ({ user_ids }) }), '/connections/count')).headers.get('etag')
    expect(await tagFor(['missing'])).not.toBe(await tagFor(['no-one']))
  })

  it('of a source that knows its changes costs no reading', async () => {
    let version = 'v1'
    const { registry } = createFakeInspectors({ connections: [connection()] })
    const inspectors = { registry: { ...registry, version: () => version } } as ReturnType<typeof createFakeInspectors>
    const { router, calls } = createWatched({ inspectors })
    const etag = (await get(router, '/connections')).headers.get('etag') as string
    calls.length = 0
    const headers = { 'if-none-match': etag }
    expect((await get(router, '/connections', { headers })).status).toBe(304)
    expect(calls.map(({ name }) => name)).toEqual(['registry.version'])
    version = 'v2'
    expect((await get(router, '/connections', { headers })).status).toBe(200)
  })

  it.each(PARTIAL)('is made of the answer while %s, and of versions when it is whole', async (_, path, source, cut) => {
    const { router, calls, restore } = createPartial(source, cut)
    const ask = (etag = '') => get(router, path, { headers: { 'if-none-match': etag } })
    const partial = (await ask()).headers.get('etag') as string
    expect((await ask(partial)).status).toBe(304)
    restore()
    const whole = await ask(partial)
    expect(whole.status).toBe(200)
    calls.length = 0
    expect((await ask(whole.headers.get('etag') as string)).status).toBe(304)
    expect(calls.filter(({ name }) => !name.endsWith('.version'))).toEqual([])
  })

  it('of messages is another one when a payload has gone from where it was spilled', async () => {
    const spill = createMemorySpillStore({ maxBytes: 60 })
    const payload = { text: 'forty bytes of text, or some more than so' }
    const say = (history: ReturnType<typeof createMessageHistory>, user_id: string) =>
      history.append({
        stream: `users/${user_id}/notes`,
        user_id,
        client_id: 'c',
        instance_id: 'i',
        message_id: 'm',
        kind: 'event',
        payload,
      } as never)
    const history = createMessageHistory({ spill, inlineBytes: 1 })
    await say(history, 'ann')
    const router = createSubject({ inspectors: { history: history.inspector } })
    const url = '/history/messages?stream=users%2Fann%2Fnotes'
    const headers = { 'if-none-match': (await get(router, url)).headers.get('etag') as string }
    expect((await get(router, url, { headers })).status).toBe(304)
    // Another node, which shares the store.
    await say(createMessageHistory({ spill, inlineBytes: 1 }), 'bob')
    expect((await get(router, url, { headers })).status).toBe(200)
  })

  it.each([
    ['/connections/unknown-id/history', 404],
    ['/connections?cursor=garbage', 422],
  ])('of whatever there is, *, is not that of %s', async (path, status) => {
    const facilities = createMemoryFacilities({ now: () => NOW })
    const router = createSubject(memoryComposition(facilities))
    expect((await get(router, path, { headers: { 'if-none-match': '*' } })).status).toBe(status)
    await facilities.close()
  })

  it.each([
    ['throws', () => Promise.reject(new Error('no'))],
    ['does not know now', () => null],
    ['answers nonsense', () => 7 as never],
    [
      'fails',
      () => {
        throw new Error('no')
      },
    ],
  ])('of a source whose version %s is made of the answer', async (_what, version) => {
    const { registry } = createFakeInspectors({ connections: [connection()] })
    const tags = [{ ...registry }, { ...registry, version }].map(async (one) => {
      const router = createSubject({ inspectors: { registry: one } as ReturnType<typeof createFakeInspectors> })
      return (await get(router, '/connections')).headers.get('etag')
    })
    const [plain, given] = await Promise.all(tags)
    expect(given).toBe(plain)
  })
})

it('of a source whose version hangs is waited for until the deadline, and not beyond', async () => {
  const { registry } = createFakeInspectors({ connections: [connection()] })
  const inspectors = { registry: { ...registry, version: never } } as ReturnType<typeof createFakeInspectors>
  const answer = await get(createSubject({ inspectors, deadlineMs: 1_000 }), '/connections')
  expect([answer.status, answer.body.items.length]).toEqual([200, 1])
})

describe('over live objects in memory', () => {
  it('changes with every change, what passes by silence included, and with nothing else', async () => {
    let time = NOW
    const now = () => time
    const facilities = createMemoryFacilities({ now })
    const router = createSubject({ ...memoryComposition(facilities), now })
    const tags = async () => {
      const found: Record<string, string> = {}
      for (const path of [
        '/connections',
        '/connections/count',
        '/contexts',
        '/browser-windows',
        '/rpc/pending',
        '/users',
      ])
        found[path] = (await get(router, path)).headers.get('etag') as string
      return found
    }
    const client = { user_id: 'ann', client_id: 'c' }
    const client_type = 'console'
    const changes: Record<string, () => Promise<unknown>> = {
      '/connections': () => facilities.connections.connect({ ...client, client_type, instance_id: 'i' }),
      '/contexts': () => facilities.contexts.report({ ...client, client_type, context_id: 'x', status: 'active' }),
      '/browser-windows': () => facilities.browserWindows.report({ ...client, window_id: 'w' }),
      '/rpc/pending': () => facilities.rpc.open({ ...client, action: 'a', timeout_ms: 86_400_000 }),
    }
    for (const [path, change] of Object.entries(changes)) {
      const before = await tags()
      expect(await tags()).toEqual(before)
      await change()
      const after = await tags()
      expect([path, after[path] !== before[path], after['/users'] !== before['/users']]).toEqual([path, true, true])
    }
    // No heartbeat for so long that all of them have gone silent.
    const before = await tags()
    time += 90_001
    const silent = await tags()
    for (const path of ['/connections', '/contexts', '/browser-windows'])
      expect([path, silent[path] !== before[path]]).toEqual([path, true])
    await facilities.close()
  })

  it('returns 200 for a filter by silence once a record matches it', async () => {
    let time = NOW
    const now = () => time
    const facilities = createMemoryFacilities({ now })
    const router = createSubject({ ...memoryComposition(facilities), now })
    const client = { user_id: 'ann', client_id: 'c', client_type: 'console' } as const
    await facilities.connections.connect({ ...client, instance_id: 'i' })
    await facilities.contexts.report({ ...client, context_id: 'x', status: 'active' })
    const paths = ['/connections', '/connections/count', '/contexts', '/contexts/count']
    const tagOf = async (path: string) => (await get(router, `${path}?silent_for_ms=10000`)).headers.get('etag')
    const before = await Promise.all(paths.map(tagOf))
    time += 10_001
    for (const [i, path] of paths.entries()) {
      const headers = { 'if-none-match': before[i] as string }
      const answer = await get(router, `${path}?silent_for_ms=10000`, { headers })
      expect([path, answer.status, answer.body.total ?? answer.body.items.length]).toEqual([path, 200, 1])
    }
    await facilities.close()
  })
})
