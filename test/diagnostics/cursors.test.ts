import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { createContextRegistry } from '../../src/memory/contexts.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import {
  CASES,
  createSubject,
  createWatched,
  expectProblem,
  get,
  type Router,
  type RouterOptions,
  withQuery,
} from './subject.js'
import { createWorld, NOW } from './world.js'

const PAGED = CASES.filter(({ route }) => route.page === 'paged')

const HERE = { id: 'here', mode: 'direct' } as const

async function cursorOf(router: Router, url: string): Promise<string> {
  const { body } = await get(router, withQuery(url, 'limit=1'))
  expect(body.has_more).toBe(true)
  return body.next_cursor
}

/** Asks with a cursor that must be refused before any inspector is asked. */
async function expectRefused(url: string, cursors: readonly string[], options: RouterOptions = {}) {
  const { router, calls } = createWatched(options)
  for (const cursor of cursors) {
    const target = withQuery(url, `cursor=${encodeURIComponent(cursor)}`)
    expectProblem(await get(router, target), 422, 'invalid_cursor')
  }
  expect(calls).toEqual([])
}

const OTHER_TEXTS = {
  'not base64url': '!!!',
  'one character': 'A',
  'of 512 characters': 'A'.repeat(512),
  'of 513 characters': 'A'.repeat(513),
  'of 6,000 characters': 'A'.repeat(6_000),
  'no UTF-8': btoa('\xff\xfe\xfd'.repeat(9)).replaceAll('/', '_'),
  'an older version': toBase64url('00123456789abcdef5'),
  'without a digest': toBase64url('1'),
  'an inspector token': '5',
  padded: `${toBase64url('10123456789abcdef5')}=`,
  'a path': '../../etc/passwd',
  'a line break': 'AAAA\r\nx: y',
  'a star': '*',
}

describe.each(PAGED)('$path', ({ url }) => {
  it('shows every entry once over its pages, whatever the limit', async () => {
    const router = createSubject()
    const whole = (await get(router, url)).body.items
    for (const limit of [1, 2, 500]) {
      const items: unknown[] = []
      let query = `limit=${limit}`
      for (let pages = 0; pages < 50; pages++) {
        const { body } = await get(router, withQuery(url, query))
        items.push(...body.items)
        if (!body.has_more) {
          expect(body.next_cursor).toBeNull()
          break
        }
        query = `limit=${limit}&cursor=${body.next_cursor}`
      }
      expect(items).toEqual(whole)
    }
  })

  it('continues with another limit, and in another process of the deployment', async () => {
    const cursor = await cursorOf(createSubject({ deployment: HERE }), url)
    const { status } = await get(
      createSubject({ deployment: HERE, prefix: '/x' }),
      withQuery(url, `limit=5&cursor=${cursor}`),
    )
    expect(status).toBe(200)
  })

  it('refuses any other text as a cursor', () => expectRefused(url, Object.values(OTHER_TEXTS)))
})

describe('a cursor', () => {
  it('with any character changed, cut at any length, or longer, is refused', async () => {
    const deployment = HERE
    const { router, calls } = createWatched({ deployment })
    const cursor = await cursorOf(router, '/connections')
    calls.length = 0
    const changed = new Set<string>()
    for (let i = 0; i < cursor.length; i++) {
      changed.add(cursor.slice(0, i))
      for (const other of ['A', 'B', 'Q', 'w', '9', '-', '_', '.', '=', ' '])
        changed.add(cursor.slice(0, i) + other + cursor.slice(i + 1)).add(cursor.slice(0, i) + other + cursor.slice(i))
    }
    for (const other of ['A', '=', '==', 'AA', 'AAA', 'AAAA']) changed.add(cursor + other).add(other + cursor)
    changed.delete(cursor)
    changed.delete('')
    expect(changed.size).toBeGreaterThan(500)
    for (const bad of changed) {
      const answer = await get(router, `/connections?cursor=${encodeURIComponent(bad)}`)
      expect([bad, answer.status, answer.body.code]).toEqual([bad, 422, 'invalid_cursor'])
    }
    expect(calls).toEqual([])
  })

  it('belongs to one route, its parameters, its filters and its deployment', async () => {
    const deployment = HERE
    const cursor = await cursorOf(createSubject({ deployment }), '/connections?user_id=alice')
    const { status } = await get(createSubject({ deployment }), `/connections?user_id=alice&cursor=${cursor}`)
    expect(status).toBe(200)
    for (const url of [
      '/connections',
      '/connections?user_id=bob',
      '/connections?client_id=alice',
      '/connections?user_id=alice&status=connected',
      '/contexts?user_id=alice',
      '/users',
      '/actions?user_id=alice',
      '/delivery/nodes',
    ])
      await expectRefused(url, [cursor], { deployment })
    for (const other of [
      { id: 'there', mode: 'direct' },
      { id: 'here', mode: 'shared_store' },
      { id: null, mode: 'direct' },
      { id: 'HERE', mode: 'direct' },
    ] as const)
      await expectRefused('/connections?user_id=alice', [cursor], { deployment: other })
    const events = await cursorOf(createSubject(), '/connections/conn-1/history')
    await expectRefused('/connections/conn-2/history', [events])
    const idle = await cursorOf(createSubject(), '/workers/available?user_id=alice')
    await expectRefused('/workers/available?user_id=dave', [idle])
    await expectRefused('/workers/tasks/task-1?user_id=alice', [idle])
  })

  it('does not care in which order the filters stand', async () => {
    const cursor = await cursorOf(createSubject(), '/connections?user_id=alice&status=connected')
    expect((await get(createSubject(), `/connections?cursor=${cursor}&status=connected&user_id=alice`)).status).toBe(
      200,
    )
  })

  it('carries tokens of up to 360 bytes, and a longer one is the fault of the inspector', async () => {
    for (const [token, status] of [
      ['t'.repeat(360), 200],
      ['é'.repeat(180), 200],
      ['\u{1F600}'.repeat(90), 200],
      ['t'.repeat(361), 500],
      ['é'.repeat(181), 500],
      ['\ud800', 500],
      [7, 500],
      [undefined, 500],
      [null, 500],
    ] as const) {
      const seen: unknown[] = []
      const { router } = createWatched({}, ({ args }) => {
        seen.push((args[1] as { cursor: string | null }).cursor)
        return { items: [], next_cursor: token, has_more: true }
      })
      const { status: given, body } = await get(router, '/connections')
      expect([token, given]).toEqual([token, status])
      if (given !== 200) continue
      expect(Buffer.byteLength(body.next_cursor)).toBeLessThanOrEqual(512)
      expect((await get(router, `/connections?cursor=${body.next_cursor}`)).status).toBe(200)
      expect(seen).toEqual([null, token])
    }
  })

  it('is null on the last page, whatever the inspector says', async () => {
    const { router } = createWatched({}, () => ({ items: [], next_cursor: 'left over', has_more: false }))
    expect((await get(router, '/connections')).body).toEqual({ items: [], next_cursor: null, has_more: false })
  })

  it('on an empty page is normal', async () => {
    const { router } = createWatched({}, () => ({ items: [], next_cursor: 'on', has_more: true }))
    expect((await get(router, '/connections')).body).toMatchObject({ items: [], has_more: true })
  })

  it('whose token the inspector refuses is 422', async () => {
    const cursor = await cursorOf(createSubject(), '/connections')
    const { router } = createWatched({}, () => Promise.reject(new Refusal('invalid_cursor')))
    expectProblem(await get(router, `/connections?cursor=${cursor}`), 422, 'invalid_cursor')
  })

  it('reaches an inspector of actions as that inspector handed it out', async () => {
    const seen: unknown[] = []
    const inspectors = createFakeInspectors(createWorld())
    const { router } = createWatched({ inspectors }, ({ name, args, proceed }) => {
      if (name !== 'registry.listActions') return proceed()
      seen.push((args[1] as { cursor: string | null }).cursor)
      return { items: [], next_cursor: `token-${seen.length}`, has_more: seen.length < 3 }
    })
    const first = (await get(router, '/actions')).body
    const second = (await get(router, `/actions?cursor=${first.next_cursor}`)).body
    await get(router, `/actions?cursor=${second.next_cursor}`)
    expect(seen).toEqual([null, 'token-1', 'token-2'])
  })

  it('walks while entries come and go: the walk ends, and shows what was there throughout', async () => {
    const contexts = createContextRegistry({ now: () => NOW })
    const report = (context_id: string) =>
      contexts.report({ context_id, user_id: 'alice', client_id: 'desk', client_type: 'web', status: 'idle' })
    for (let i = 0; i < 60; i++) await report(`old-${i}`)
    const router = createSubject({ inspectors: { contextRegistry: contexts.inspector } })
    const seen: string[] = []
    let query = 'limit=7'
    let pages = 0
    for (; pages < 100; pages++) {
      const { body } = await get(router, `/contexts?${query}`)
      seen.push(...body.items.map((item: { context_id: string }) => item.context_id))
      if (!body.has_more) break
      query = `limit=7&cursor=${body.next_cursor}`
      // Those behind the walk go, those before it stay, and a few come.
      for (let i = pages * 7; i < pages * 7 + 3; i++) await contexts.close(`old-${i}`)
      if (pages < 5) await report(`new-${pages}`)
    }
    expect(pages).toBeLessThan(20)
    for (let i = 0; i < 60; i++) expect(seen).toContain(`old-${i}`)
  })
})

function toBase64url(text: string): string {
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

describe.each(PAGED.filter(({ route }) => route.order))('$path in its orders', ({ route, url }) => {
  const other = route.order === 'newest' ? 'oldest' : 'newest'

  it('refuses a cursor of one order in the other', async () => {
    const router = createSubject()
    await expectRefused(withQuery(url, `order=${other}`), [await cursorOf(router, url)])
    await expectRefused(url, [await cursorOf(router, withQuery(url, `order=${other}`))])
  })

  it('is the same list whether its default is named or not, and backwards in the other', async () => {
    const router = createSubject()
    const items = async (query: string) => (await get(router, withQuery(url, query))).body.items
    const named = withQuery(url, `order=${route.order}`)
    expect((await get(router, withQuery(named, `cursor=${await cursorOf(router, url)}`))).status).toBe(200)
    expect(await items(`order=${route.order}`)).toEqual(await items('limit=100'))
    expect(await items(`order=${other}`)).toEqual((await items('limit=100')).reverse())
  })
})
