import { getEventListeners } from 'node:events'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { event } from '../contract/event-bus.js'
import { deferred } from './deferred.js'
import { changed, createWorld, TOPIC, type World } from './world.js'

const START = Date.parse('2026-01-01T00:00:00.000Z')

beforeEach(() => {
  vi.useFakeTimers({ now: START, toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** One frame as a client reads it. */
interface Frame {
  event: string
  id: string | undefined
  data: unknown
}

/** A viewer who reads when asked to. */
async function watch(world: World, user = 'bob', headers: Record<string, string> = {}) {
  const controller = new AbortController()
  const response = await world.relay(
    new Request(`http://relay.test/relay/sessions/${world.session_id}/events`, {
      headers: { authorization: `Bearer ${user}`, ...headers },
      signal: controller.signal,
    }),
  )
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${await response.text()}`)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const frames: Frame[] = []
  const comments: string[] = []
  const retries: number[] = []
  const parser = createParser({
    onEvent: ({ event: name = 'message', id, data }: EventSourceMessage) =>
      frames.push({ event: name, id, data: JSON.parse(data) }),
    onComment: (comment) => comments.push(comment),
    onRetry: (ms) => retries.push(ms),
  })
  const decoder = new TextDecoder()
  let writes = 0
  /** Reads one write; false at the end. */
  async function read(): Promise<boolean> {
    const { done, value } = await reader.read()
    if (done) return false
    writes++
    parser.feed(decoder.decode(value, { stream: true }))
    return true
  }
  return {
    response,
    frames,
    comments,
    retries,
    read,
    controller,
    reader,
    get writes() {
      return writes
    },
    /** Reads to the end. */
    async drain() {
      while (await read());
      return frames
    },
  }
}

const publish = (world: World, from: number, to: number) => {
  for (let n = from; n <= to; n++) world.bus.publish(TOPIC, { ...event(n), site_id: 'notes', name: 'note_changed' })
}
/** Lets promises settle; timers stand still. */
const settle = async () => {
  for (let n = 0; n < 20; n++) await Promise.resolve()
}

describe('the event stream of a session', () => {
  it('begins with ready, then brings events with their positions', async () => {
    const world = await createWorld()
    publish(world, 1, 3)
    const viewer = await watch(world)
    expect(viewer.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    await viewer.read()
    const epoch = viewer.frames[0]?.id?.split(':')[0]
    expect(viewer.retries).toEqual([5_000])
    expect(viewer.frames).toEqual([
      {
        event: 'ready',
        id: `${epoch}:3`,
        data: {
          subscription_id: expect.any(String),
          session_id: world.session_id,
          site_id: 'notes',
          queue_limit: 100,
          replay: false,
          heartbeat_ms: 15_000,
        },
      },
    ])
    const message = changed({ id: 7 })
    await world.ask('alice', 'POST', '/messages', { body: message })
    await viewer.read()
    expect(viewer.frames[1]).toEqual({
      event: 'site_event',
      id: `${epoch}:4`,
      data: {
        event_id: message.message_id,
        name: 'note_changed',
        site_id: 'notes',
        seq: 4,
        published_at: new Date(START).toISOString(),
        data: { id: 7 },
      },
    })
  })

  it('brings a burst in one write, and the very same bytes to every viewer', async () => {
    const world = await createWorld()
    const viewers = [await watch(world), await watch(world, 'carol')]
    for (const viewer of viewers) await viewer.read()
    const reads = viewers.map((viewer) => viewer.reader.read())
    publish(world, 1, 20)
    const chunks = await Promise.all(reads)
    expect(chunks[0]?.value).toBe(chunks[1]?.value)
    expect(new TextDecoder().decode(chunks[0]?.value).match(/event: site_event/g)).toHaveLength(20)
  })

  it('splits a burst of large events, and loses none of them', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    await viewer.read()
    const large = 'x'.repeat(40_000)
    for (let n = 1; n <= 10; n++) world.bus.publish(TOPIC, { ...event(n), data: large })
    while (viewer.frames.length < 11) await viewer.read()
    expect(viewer.writes).toBe(6)
    expect(viewer.frames.slice(1).map(({ data }) => (data as { seq: number }).seq)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ])
  })

  it('costs a reader that stops events, never memory, and tells it exactly which', async () => {
    const world = await createWorld()
    const stalled = await watch(world)
    await stalled.read()
    const other = await watch(world, 'carol')
    await other.read()
    for (let n = 1; n <= 250; n++) {
      publish(world, n, n)
      await other.read()
    }
    expect(other.frames.filter((frame) => frame.event === 'site_event')).toHaveLength(250)
    const epoch = stalled.frames[0]?.id?.split(':')[0]
    await stalled.read()
    await stalled.read()
    expect(stalled.frames[1]).toEqual({
      event: 'gap',
      id: `${epoch}:150`,
      data: { reason: 'overflow', dropped: 150, dropped_total: 150, first_seq: 1, last_seq: 150 },
    })
    expect(stalled.frames.slice(2).map(({ id }) => id)).toEqual(
      Array.from({ length: 100 }, (_, i) => `${epoch}:${151 + i}`),
    )
    expect(stalled.frames.length).toBe(102)
  })

  describe('after a reconnection', () => {
    const resumed = async (world: World, id: string) => {
      const viewer = await watch(world, 'bob', { 'last-event-id': id })
      await viewer.read()
      return viewer.frames
    }

    it('says exactly what was missed in the same epoch, and nothing when nothing was', async () => {
      const world = await createWorld()
      const first = await watch(world)
      await first.read()
      const epoch = first.frames[0]?.id?.split(':')[0]
      publish(world, 1, 5)
      expect(await resumed(world, `${epoch}:5`)).toMatchObject([{ event: 'ready' }])
      expect(await resumed(world, `${epoch}:2`)).toMatchObject([
        { event: 'ready', id: `${epoch}:5` },
        {
          event: 'gap',
          id: `${epoch}:5`,
          data: { reason: 'resume', dropped: 3, dropped_total: 3, first_seq: 3, last_seq: 5 },
        },
      ])
    })

    it.each([
      'other:2',
      'E:9',
      'E:-1',
      'E:01',
      'E',
      ':3',
      'E:',
      'E:9007199254740993',
      'x'.repeat(4_000),
    ])('says that it cannot know after %j', async (given) => {
      const world = await createWorld()
      publish(world, 1, 3)
      const epoch = world.bus.subscribe(TOPIC).position.epoch
      const frames = await resumed(world, given.replace('E', epoch))
      expect(frames[1]).toMatchObject({
        event: 'gap',
        data: { reason: 'resume', dropped: null, dropped_total: 0, first_seq: null, last_seq: null },
      })
    })
  })

  describe('is refused', () => {
    const ask = (world: World, user: string | null, id = world.session_id) =>
      world.ask(user, 'GET', `/sessions/${id}/events`)

    it('alike for a session that is not there and one that is not the viewer`s', async () => {
      const world = await createWorld()
      const answers = [await ask(world, 'mallory'), await ask(world, 'mallory', 'guessed')]
      const texts = await Promise.all(answers.map((answer) => answer.text()))
      expect(answers.map(({ status }) => status)).toEqual([404, 404])
      expect(texts[0]).toBe(texts[1])
      expect(JSON.parse(texts[0] ?? '').code).toBe('session_not_found')
    })

    it('for a session that is pending or closed, but not for one that is suspended', async () => {
      const world = await createWorld()
      await world.sessions.suspend(world.session_id)
      const suspended = await watch(world)
      await suspended.read()
      expect(suspended.frames[0]?.event).toBe('ready')
      await world.sessions.close(world.session_id)
      const closed = await ask(world, 'bob')
      expect([closed.status, (await closed.json()).code]).toEqual([409, 'session_not_active'])
      const pending = await world.sessions.open({ site_id: 'notes', owner: 'alice' })
      expect((await ask(world, 'alice', pending.session_id)).status).toBe(409)
    })

    it('when its site has gone', async () => {
      const world = await createWorld()
      await world.sites.delete('notes')
      expect((await ask(world, 'bob')).status).toBe(409)
    })
  })

  describe('ends', () => {
    const last = (frames: Frame[]) => frames.at(-1)

    it('at once when the session is closed, and no event follows', async () => {
      const world = await createWorld()
      const viewer = await watch(world)
      await viewer.read()
      const rest = viewer.drain()
      await settle()
      const closing = world.sessions.close(world.session_id)
      publish(world, 1, 5)
      await closing
      publish(world, 6, 9)
      expect(await rest).toHaveLength(2)
      expect(last(viewer.frames)).toMatchObject({ event: 'end', data: { reason: 'session_closed' } })
      expect(world.relay.streams).toBe(0)
    })

    it('at once when a share is taken back, for that viewer alone', async () => {
      const world = await createWorld()
      const bob = await watch(world)
      const carol = await watch(world, 'carol')
      const rest = bob.drain()
      await carol.read()
      await world.sessions.unshare(world.session_id, 'bob')
      publish(world, 1, 1)
      await rest
      expect(last(bob.frames)).toMatchObject({ event: 'end', data: { reason: 'policy_revoked' } })
      expect(bob.frames).toHaveLength(2)
      await carol.read()
      expect(last(carol.frames)).toMatchObject({ event: 'site_event' })
    })

    it('within a second without a word of the registry: when a policy says no', async () => {
      let may = true
      const world = await createWorld({ policy: { check: async () => may } })
      const viewer = await watch(world)
      const rest = viewer.drain()
      await settle()
      may = false
      await vi.advanceTimersByTimeAsync(1_000)
      publish(world, 1, 1)
      await rest
      expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'end'])
      expect(last(viewer.frames)?.data).toEqual({ reason: 'policy_revoked' })
    })

    it('within a second of its expiry', async () => {
      const world = await createWorld()
      const session = await world.sessions.open({ site_id: 'notes', owner: 'alice', ttlMs: 1_500 })
      await world.sessions.activate(session.session_id)
      const viewer = await watch({ ...world, session_id: session.session_id }, 'alice')
      const rest = viewer.drain()
      await vi.advanceTimersByTimeAsync(2_500)
      await rest
      expect(last(viewer.frames)?.data).toEqual({ reason: 'session_expired' })
    })

    it('without what was published after its expiry', async () => {
      const world = await createWorld()
      const session = await world.sessions.open({ site_id: 'notes', owner: 'alice', ttlMs: 1_300 })
      await world.sessions.activate(session.session_id)
      const viewer = await watch({ ...world, session_id: session.session_id }, 'alice')
      const rest = viewer.drain()
      await vi.advanceTimersByTimeAsync(1_250)
      publish(world, 1, 1)
      await vi.advanceTimersByTimeAsync(49)
      expect(last(viewer.frames)).toMatchObject({ event: 'site_event' })
      await vi.advanceTimersByTimeAsync(1)
      publish(world, 2, 2)
      await vi.advanceTimersByTimeAsync(1_000)
      await rest
      expect(viewer.frames.map(({ event }) => event)).toEqual(['ready', 'site_event', 'end'])
    })

    it.each(['deleted', 'taken over'])('within a second of its site being %s', async (what) => {
      const world = await createWorld()
      const viewer = await watch(world)
      const rest = viewer.drain()
      await settle()
      await world.sites.delete('notes')
      if (what === 'taken over') await world.sites.put({ site_id: 'notes', owner: 'mallory', mode: 'cooperative' })
      await vi.advanceTimersByTimeAsync(1_000)
      await rest
      expect(last(viewer.frames)?.data).toEqual({ reason: 'session_closed' })
    })

    it('with shutdown and a spread time to come back when the relay closes', async () => {
      const world = await createWorld()
      const viewers = await Promise.all(Array.from({ length: 50 }, () => watch(world)))
      for (const viewer of viewers) await viewer.read()
      expect(world.relay.streams).toBe(50)
      const stalled = viewers.pop()
      const rests = viewers.map((viewer) => viewer.drain())
      await world.relay.close()
      await Promise.all(rests)
      expect(world.relay.streams).toBe(0)
      const retries = viewers.map((viewer) => viewer.retries.at(-1) ?? 0)
      expect(Math.min(...retries)).toBeGreaterThanOrEqual(5_000)
      expect(Math.max(...retries)).toBeLessThan(10_000)
      expect(new Set(retries).size).toBeGreaterThan(10)
      for (const viewer of viewers) expect(last(viewer.frames)?.data).toEqual({ reason: 'shutdown' })
      expect(last((await stalled?.drain()) ?? [])?.data).toEqual({ reason: 'shutdown' })
    })

    it('with shutdown when the bus closes', async () => {
      const world = await createWorld()
      const [waiting, stalled] = [await watch(world), await watch(world)]
      await stalled.read()
      const rest = waiting.drain()
      await settle()
      world.bus.close()
      await rest
      await stalled.drain()
      for (const { frames } of [waiting, stalled]) expect(last(frames)?.data).toEqual({ reason: 'shutdown' })
    })

    it('without a word when the client goes away, and lets go of everything', async () => {
      const world = await createWorld()
      const [cancelled, aborted, unread] = [await watch(world), await watch(world), await watch(world)]
      await cancelled.read()
      const rest = aborted.drain()
      await cancelled.reader.cancel()
      aborted.controller.abort()
      unread.controller.abort()
      unread.controller.abort()
      await rest
      expect(aborted.frames.map(({ event: name }) => name)).toEqual(['ready'])
      expect(world.relay.streams).toBe(0)
      expect(world.bus.publish(TOPIC, event(1))).toBe(0)
    })

    it('before it begins when the client has gone already', async () => {
      const world = await createWorld()
      const controller = new AbortController()
      controller.abort()
      const response = await world.relay(
        new Request(`http://relay.test/relay/sessions/${world.session_id}/events`, {
          headers: { authorization: 'Bearer bob' },
          signal: controller.signal,
        }),
      )
      expect(await response.text()).toBe('')
      expect(world.relay.streams).toBe(0)
    })
  })

  describe('asks again whether the viewer may read', () => {
    /** A world whose policy counts, and answers when it is told to. */
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
      await settle()
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

    it('before it writes when the last answer is older, and holds the event until it knows', async () => {
      const { world, say } = await counting()
      const viewer = await watch(world)
      const rest = viewer.drain()
      await settle()
      const word = deferred<boolean>()
      say(() => word.promise)
      vi.setSystemTime(START + 500)
      publish(world, 1, 1)
      await settle()
      expect(viewer.frames).toHaveLength(1)
      word.resolve(true)
      await settle()
      expect(viewer.frames).toHaveLength(2)
      const no = deferred<boolean>()
      say(() => no.promise)
      vi.setSystemTime(START + 1_000)
      publish(world, 2, 2)
      no.resolve(false)
      await rest
      expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'site_event', 'end'])
    })

    it('once, however many events wait for the answer', async () => {
      const { world, asked, say } = await counting()
      const viewers = [await watch(world), await watch(world)]
      for (const viewer of viewers) void viewer.drain()
      await settle()
      asked.length = 0
      const word = deferred<boolean>()
      say(() => word.promise)
      vi.setSystemTime(START + 500)
      for (let n = 1; n <= 5; n++) {
        publish(world, n, n)
        await settle()
      }
      expect(asked).toHaveLength(1)
      word.resolve(true)
      await settle()
      for (const viewer of viewers) expect(viewer.frames).toHaveLength(6)
    })

    it('anew when something has changed while it was being asked', async () => {
      const { world, say } = await counting()
      const viewer = await watch(world)
      const rest = viewer.drain()
      await settle()
      const word = deferred<boolean>()
      say(() => word.promise)
      vi.setSystemTime(START + 500)
      publish(world, 1, 1)
      await settle()
      await world.sessions.close(world.session_id)
      word.resolve(true)
      await rest
      expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'end'])
    })

    it('about two hundred viewers at a time when time alone asks, until all were asked about', async () => {
      const { world, asked, say } = await counting()
      for (let n = 0; n < 300; n++) void (await watch(world, `user-${n}`)).drain()
      await settle()
      asked.length = 0
      const word = deferred<boolean>()
      say(() => word.promise)
      await vi.advanceTimersByTimeAsync(500)
      expect(asked).toHaveLength(200)
      word.resolve(true)
      await settle()
      expect(new Set(asked.map(({ user }) => user)).size).toBe(300)
    })

    it('again when no answer came within five seconds', async () => {
      const { world, asked, say } = await counting()
      void (await watch(world)).drain()
      await settle()
      asked.length = 0
      say(() => new Promise(() => {}))
      await vi.advanceTimersByTimeAsync(500)
      expect(asked).toHaveLength(1)
      await vi.advanceTimersByTimeAsync(5_500)
      expect(asked).toHaveLength(2)
    })

    it('and while nobody can say, writes no event; after ten seconds it sends the client away', async () => {
      const { world, say } = await counting()
      const viewer = await watch(world)
      const rest = viewer.drain()
      await settle()
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

  it('writes a comment after 15 s of silence, but none to a reader that stalls', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    const stalled = await watch(world)
    await stalled.read()
    void viewer.drain()
    await vi.advanceTimersByTimeAsync(14_000)
    publish(world, 1, 1)
    await vi.advanceTimersByTimeAsync(14_000)
    expect(viewer.comments).toEqual([])
    await vi.advanceTimersByTimeAsync(1_500)
    expect(viewer.comments).toEqual([''])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(viewer.comments).toHaveLength(5)
    await stalled.read()
    expect(stalled.comments).toEqual([])
    expect(stalled.frames.at(-1)?.event).toBe('site_event')
  })

  it('ends what was still being opened when the relay closed', async () => {
    const word = deferred<{ user_id: string }>()
    const world = await createWorld({ authenticateViewer: () => word.promise })
    const opening = watch(world)
    await settle()
    const closing = world.relay.close()
    word.resolve({ user_id: 'bob' })
    const viewer = await opening
    await closing
    expect((await viewer.drain()).at(-1)?.data).toEqual({ reason: 'shutdown' })
    expect(world.relay.streams).toBe(0)
  })

  it('watches a session while somebody does, and listens to a client while it is there', async () => {
    const base = await createWorld()
    let watched = 0
    const sessions = {
      get: base.sessions.get,
      watch: (id: string, changed: () => void) => {
        watched++
        const unwatch = base.sessions.watch?.(id, changed)
        return () => {
          watched--
          unwatch?.()
        }
      },
    }
    const world = await createWorld({ sessions, sites: base.sites, policy: base.policy })
    const request = new Request(`http://relay.test/relay/sessions/${base.session_id}/events`, {
      headers: { authorization: 'Bearer bob' },
    })
    const response = await world.relay(request)
    expect([watched, getEventListeners(request.signal, 'abort').length]).toEqual([1, 1])
    await response.body?.cancel()
    expect([watched, getEventListeners(request.signal, 'abort').length]).toEqual([0, 0])
  })

  it('keeps no timer, no stream and no permission when viewers come and go', async () => {
    const world = await createWorld()
    const before = vi.getTimerCount()
    for (let n = 0; n < 500; n++) {
      const viewer = await watch(world)
      if (n % 3 === 0) await viewer.read()
      if (n % 2 === 0) viewer.controller.abort()
      else await viewer.reader.cancel()
    }
    expect(world.relay.streams).toBe(0)
    expect(vi.getTimerCount()).toBe(before)
  })
})
