/** How often, and when, a stream asks again whether its viewer may read. */
import { describe, expect, it, vi } from 'vitest'
import { deferred } from './deferred.js'
import { flushPromises, holdTime, publish, START, watch } from './viewer.js'
import { createWorld } from './world.js'

holdTime()

describe('the event stream asks again whether the viewer may read', () => {
  /** Creates a world whose policy records its calls, and whose answer `say` sets. */
  async function counting() {
    const asked: { user: string; at: number }[] = []
    let answer: () => Promise<boolean> = async () => true
    const world = await createWorld({
      policy: {
        check: async ({ viewer }) => {
          asked.push({ user: viewer.user_id, at: Date.now() - START })
          return answer()
        },
      },
    })
    return { world, asked, say: (next: typeof answer) => (answer = next) }
  }

  it('at most every 500 ms, once for all streams of one viewer', async () => {
    const { world, asked } = await counting()
    const viewers = [await watch(world), await watch(world), await watch(world)]
    for (const viewer of viewers) void viewer.drain()
    await flushPromises()
    asked.length = 0
    for (let n = 0; n < 40; n++) {
      publish(world, n, n)
      await vi.advanceTimersByTimeAsync(50)
    }
    expect(asked.length).toBeGreaterThanOrEqual(3)
    expect(asked.length).toBeLessThanOrEqual(4)
    for (const [index, { at }] of asked.entries())
      expect(at - (asked[index - 1]?.at ?? -500)).toBeGreaterThanOrEqual(500)
  })

  it('before it writes when the last answer is older, and holds the event until the answer', async () => {
    const { world, say } = await counting()
    const viewer = await watch(world)
    const rest = viewer.drain()
    await flushPromises()
    const word = deferred<boolean>()
    say(() => word.promise)
    vi.setSystemTime(START + 500)
    publish(world, 1, 1)
    await flushPromises()
    expect(viewer.frames).toHaveLength(1)
    word.resolve(true)
    await flushPromises()
    expect(viewer.frames).toHaveLength(2)
    const no = deferred<boolean>()
    say(() => no.promise)
    vi.setSystemTime(START + 1_000)
    publish(world, 2, 2)
    no.resolve(false)
    await rest
    expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'site_event', 'end'])
  })

  it('and queues events meanwhile: a hundred, then the newest', async () => {
    const { world, say } = await counting()
    const viewer = await watch(world)
    void viewer.drain()
    await flushPromises()
    const word = deferred<boolean>()
    say(() => word.promise)
    vi.setSystemTime(START + 500)
    publish(world, 1, 100)
    await flushPromises()
    publish(world, 101, 250)
    await flushPromises()
    word.resolve(true)
    await flushPromises()
    expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'gap', ...Array(100).fill('site_event')])
    expect(viewer.frames[1]?.data).toMatchObject({ dropped: 150, dropped_total: 150, first_seq: 1, last_seq: 150 })
  })

  it('once, however many events wait for the answer', async () => {
    const { world, asked, say } = await counting()
    const viewers = [await watch(world), await watch(world)]
    for (const viewer of viewers) void viewer.drain()
    await flushPromises()
    asked.length = 0
    const word = deferred<boolean>()
    say(() => word.promise)
    vi.setSystemTime(START + 500)
    for (let n = 1; n <= 5; n++) {
      publish(world, n, n)
      await flushPromises()
    }
    expect(asked).toHaveLength(1)
    word.resolve(true)
    await flushPromises()
    for (const viewer of viewers) expect(viewer.frames).toHaveLength(6)
  })

  it('once more when something changed during the check', async () => {
    const { world, say } = await counting()
    const viewer = await watch(world)
    const rest = viewer.drain()
    await flushPromises()
    const word = deferred<boolean>()
    say(() => word.promise)
    vi.setSystemTime(START + 500)
    publish(world, 1, 1)
    await flushPromises()
    await world.sessions.close(world.session_id)
    word.resolve(true)
    await rest
    expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'end'])
  })

  it('about two hundred viewers at a time in the periodic check, until all were checked', async () => {
    const { world, asked, say } = await counting()
    for (let n = 0; n < 300; n++) void (await watch(world, `user-${n}`)).drain()
    await flushPromises()
    asked.length = 0
    const word = deferred<boolean>()
    say(() => word.promise)
    await vi.advanceTimersByTimeAsync(500)
    expect(asked).toHaveLength(200)
    word.resolve(true)
    await flushPromises()
    expect(new Set(asked.map(({ user }) => user)).size).toBe(300)
  })

  it('again when no answer came within five seconds', async () => {
    const { world, asked, say } = await counting()
    void (await watch(world)).drain()
    await flushPromises()
    asked.length = 0
    say(() => new Promise(() => {}))
    await vi.advanceTimersByTimeAsync(500)
    expect(asked).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(5_500)
    expect(asked).toHaveLength(2)
  })

  it('and while the check fails, writes no event; after ten seconds it ends the stream', async () => {
    const { world, say } = await counting()
    const viewer = await watch(world)
    const rest = viewer.drain()
    await flushPromises()
    say(() => Promise.reject(new Error('the policy is out of reach')))
    await vi.advanceTimersByTimeAsync(600)
    publish(world, 1, 1)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(viewer.frames).toHaveLength(1)
    say(async () => true)
    await vi.advanceTimersByTimeAsync(500)
    expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'site_event'])
    say(() => Promise.reject(new Error('the policy is out of reach')))
    await vi.advanceTimersByTimeAsync(11_000)
    await rest
    expect(viewer.frames.at(-1)).toMatchObject({ event: 'end', data: { reason: 'shutdown' } })
  })
})

describe('a live stream', () => {
  it.each([1, 'yes', {}])('ends when the policy answers %j', async (said) => {
    let answer: unknown = true
    const world = await createWorld({ policy: { check: async () => answer as boolean } })
    const viewer = await watch(world)
    await viewer.read()
    answer = said
    publish(world, 1, 1)
    await vi.advanceTimersByTimeAsync(1_000)
    expect((await viewer.drain()).at(-1)).toMatchObject({ event: 'end', data: { reason: 'policy_revoked' } })
  })

  it('of a revoked token ends, and that of another token of the same user continues', async () => {
    const revoked = new Set<string>()
    const world = await createWorld({
      authenticateViewer: (request) => ({ user_id: 'bob', key: request.headers.get('x-token') as string }),
      policy: { check: async ({ viewer }) => !revoked.has(viewer.key as string) },
    })
    const [first, second] = [
      await watch(world, 'bob', { 'x-token': 'a' }),
      await watch(world, 'bob', { 'x-token': 'b' }),
    ]
    await Promise.all([first.read(), second.read()])
    revoked.add('a')
    await vi.advanceTimersByTimeAsync(1_000)
    publish(world, 1, 1)
    expect((await first.drain()).at(-1)).toMatchObject({ event: 'end', data: { reason: 'policy_revoked' } })
    await second.read()
    expect(second.frames.at(-1)).toMatchObject({ event: 'site_event' })
  })

  it('without a key passes the policy a user id and nothing else', async () => {
    const seen: object[] = []
    const world = await createWorld({
      authenticateViewer: () => ({ user_id: 'bob', token: 'secret' }) as { user_id: string },
      policy: { check: async ({ viewer }) => seen.push(viewer) > 0 },
    })
    await watch(world)
    expect(seen[0]).toEqual({ user_id: 'bob' })
  })

  it('is checked again, and has its heartbeats, when the wall clock is set back', async () => {
    const world = await createWorld({ heartbeatMs: 2_000 })
    const viewer = await watch(world)
    await viewer.read()
    const beat = viewer.read()
    await vi.advanceTimersByTimeAsync(1_000)
    vi.setSystemTime(START - 600_000)
    await vi.advanceTimersByTimeAsync(2_000)
    await beat
    expect(viewer.comments).toHaveLength(1)
    await world.sites.delete('notes')
    publish(world, 1, 1)
    const last = viewer.drain()
    await vi.advanceTimersByTimeAsync(1_000)
    expect((await last).at(-1)).toMatchObject({ event: 'end', data: { reason: 'session_closed' } })
  })
})
