/** The client of `/watch`: whatever happens on the way, it ends with what a GET answers, and says when it does not know. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sliceClock } from '../../src/async/turns.js'
import { type WatchedList, WatchRefused, watch } from '../../src/browser/watch.js'
import { createDiagnosticsRouter } from '../../src/diagnostics/router.js'
import { apiKeyAuth } from '../../src/http/auth.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'

const KEY = 'a-key-of-the-test'
const ORIGIN = 'http://localhost'
const headers = { 'x-admin-key': KEY }

/** Numbers from 0 to below 1 that are the same for the same seed. */
function createRandom(seed: number) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A live host, its router, and a way to it that the test can cut, slow down or break. */
function createHost() {
  const facilities = createMemoryFacilities()
  const { inspectors, deployment } = memoryComposition(facilities)
  let isFailing = false
  const registry = new Proxy(inspectors.registry as object, {
    get: (target, name) => {
      if (isFailing && name === 'version') return () => Promise.reject(new Error('down'))
      if (isFailing && name === 'listConnections') return () => Promise.reject(new Error('down'))
      return Reflect.get(target, name)
    },
  })
  const router = createDiagnosticsRouter({
    inspectors: { ...inspectors, registry } as typeof inspectors,
    deployment,
    auth: apiKeyAuth(KEY),
    onError: null,
  })
  const open = new Set<AbortController>()
  let delayMs = 0
  let connections = 0
  async function fetch(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    connections++
    const link = new AbortController()
    open.add(link)
    init.signal?.addEventListener('abort', () => link.abort(), { once: true })
    const response = await router(new Request(`${ORIGIN}${url}`, { ...init, signal: link.signal }))
    const reader = response.body?.getReader()
    if (!reader || !response.headers.get('content-type')?.startsWith('text/event-stream')) return response
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
          const { done, value } = await reader.read()
          if (link.signal.aborted) return controller.error(new Error('cut'))
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: () => reader.cancel(),
      },
      { highWaterMark: 0 },
    )
    return new Response(body, { status: response.status, headers: response.headers })
  }
  return {
    facilities,
    fetch: fetch as typeof globalThis.fetch,
    get connections() {
      return connections
    },
    slow(ms: number) {
      delayMs = ms
    },
    fail(failing: boolean) {
      isFailing = failing
    },
    cut() {
      for (const link of open) link.abort()
      open.clear()
    },
    async get(path: string) {
      return (await router(new Request(`${ORIGIN}${path}`, { headers }))).json()
    },
  }
}

const VIEWS = ['/connections?limit=20', '/contexts', '/users?limit=3']

describe('the watch of a browser', () => {
  beforeEach(() => {
    // A busy machine must not make a reading wait for a turn of the real event loop.
    vi.spyOn(sliceClock, 'now').mockReturnValue(0)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })
  const tick = (ms = 1_000) => vi.advanceTimersByTimeAsync(ms)

  function begin(host: ReturnType<typeof createHost>, views = VIEWS) {
    const left = new AbortController()
    const seen: Record<string, WatchedList>[] = []
    const over = watch('/watch', {
      views,
      headers,
      fetch: host.fetch,
      signal: left.signal,
      onChange: (lists) => void seen.push(lists),
    })
    over.catch(() => {})
    return { over, seen, now: () => seen.at(-1) ?? {}, leave: () => left.abort() }
  }

  it.each([1, 2, 3, 4, 5, 6])('converges to the result of a GET, whatever happens (seed %i)', async (seed) => {
    const random = createRandom(seed)
    const pick = (n: number) => Math.floor(random() * n)
    const host = createHost()
    const { connections, contexts } = host.facilities
    const ids: string[] = []
    const clientOf = (n: number) => ({
      user_id: `user-${n % 5}`,
      client_id: `client-${n}`,
      client_type: 'console' as const,
    })
    const acts: (() => unknown)[] = [
      async () =>
        ids.push((await connections.connect({ ...clientOf(pick(30)), instance_id: `i-${pick(3)}` })).connection_id),
      () => connections.disconnect(ids[pick(ids.length)] ?? 'none'),
      () => connections.heartbeat(ids[pick(ids.length)] ?? 'none'),
      () =>
        contexts.report({ ...clientOf(pick(5)), context_id: `c-${pick(5)}-${seed}`, status: 'active' }).catch(() => {}),
      () => contexts.close(`c-${pick(5)}-${seed}`),
      () => host.slow(pick(3) * 1_500),
      () => host.fail(pick(3) === 0),
      () => pick(4) === 0 && host.cut(),
      () => tick(pick(4) * 700),
    ]
    const { now, leave } = begin(host)
    for (let n = 0; n < 150; n++) await acts[pick(acts.length)]?.()
    host.fail(false)
    host.slow(0)
    await tick(60_000)
    for (const view of VIEWS) {
      const { items, ...page } = await host.get(view)
      expect(now()[view]).toMatchObject({ items, stale: false })
      expect(now()[view]?.page.has_more).toEqual(page.has_more)
    }
    expect(now()['/contexts']?.complete).toBe(true)
    leave()
    await host.facilities.close()
  })

  it('refuses an unknown option by name', async () => {
    const options = { views: ['/connections'], onChange: () => {}, header: {} }
    await expect(watch(ORIGIN, options)).rejects.toThrow(
      'Unknown option "header". Valid options: views, headers, onChange, signal, fetch',
    )
  })

  it('marks a list as stale, with its last read time, while the host cannot read it', async () => {
    const host = createHost()
    const { now, leave } = begin(host, ['/connections'])
    await tick()
    expect(now()['/connections']).toMatchObject({ items: [], stale: false, complete: true })
    const { asOf } = now()['/connections'] as WatchedList
    host.fail(true)
    await tick(30_000)
    expect(now()['/connections']).toMatchObject({ items: [], stale: true, asOf: expect.any(String) })
    expect(asOf).not.toBeNull()
    leave()
    await host.facilities.close()
  })

  it('marks each list as stale separately, and stays connected for the lists that are still read', async () => {
    const host = createHost()
    const { now, leave } = begin(host, ['/connections', '/contexts'])
    await tick()
    host.fail(true)
    await tick(60_000)
    expect(now()).toMatchObject({ '/connections': { items: [], stale: true }, '/contexts': { stale: false } })
    host.fail(false)
    await tick(15_000)
    expect(now()).toMatchObject({ '/connections': { stale: false }, '/contexts': { stale: false } })
    expect(host.connections).toBe(1)
    leave()
    await host.facilities.close()
  })

  it('treats headers() that never resolves as silence, and can be ended meanwhile', async () => {
    const left = new AbortController()
    let asked = 0
    let isOver = false
    const never = () => {
      asked++
      return new Promise<never>(() => {})
    }
    void watch('/watch', { views: ['/users'], headers: never, signal: left.signal, onChange: () => {} }).then(() => {
      isOver = true
    })
    await tick(60_000)
    expect(asked).toBeGreaterThan(1)
    left.abort()
    await tick()
    expect(isOver).toBe(true)
  })

  it('reconnects after a cut, with a pause, and starts from a snapshot', async () => {
    const host = createHost()
    const { now, leave } = begin(host, ['/connections'])
    await tick()
    host.cut()
    await tick(10)
    expect(now()['/connections']?.stale).toBe(true)
    expect(host.connections).toBe(1)
    await host.facilities.connections.connect({ user_id: 'a', client_id: 'c', instance_id: 'i', client_type: 'web' })
    await tick(3_000)
    expect(host.connections).toBe(2)
    expect(now()['/connections']).toMatchObject({ stale: false, items: [{ user_id: 'a' }] })
    leave()
    await host.facilities.close()
  })

  it.each([403, 501, 302, 200])('ends on a permanent refusal such as %i, and not on a temporary one', async (last) => {
    const answers = [503, 429, last]
    const fetch = async () => new Response('{}', { status: answers.shift() as number })
    const over = watch('/watch', { views: ['/users'], onChange: () => {}, fetch: fetch as typeof globalThis.fetch })
    const told = expect(over).rejects.toEqual(new WatchRefused(last))
    await tick(60_000)
    await told
    expect(answers).toEqual([])
  })

  it('continues when its listener throws, and reports nothing after an abort', async () => {
    const host = createHost()
    const told = vi.spyOn(console, 'error').mockImplementation(() => {})
    const left = new AbortController()
    let calls = 0
    const over = watch('/watch', {
      views: ['/connections'],
      headers: async () => headers,
      fetch: host.fetch,
      signal: left.signal,
      onChange() {
        calls++
        throw new Error('of the page')
      },
    })
    await tick(25_000)
    expect(calls).toBeGreaterThan(1)
    left.abort()
    await over
    const before = calls
    await tick(60_000)
    expect(calls).toBe(before)
    expect(told).toHaveBeenCalled()
    told.mockRestore()
    await host.facilities.close()
  })
})
