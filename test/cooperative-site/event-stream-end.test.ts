/** When an event stream ends, how fast, and the reason that its viewer receives. */
import { describe, expect, it, vi } from 'vitest'
import { createSessionPolicy } from '../../src/cooperative-site/sessions/grants.js'
import { createSessionRegistry } from '../../src/memory/cooperative/sessions.js'
import { createSiteRegistry } from '../../src/memory/cooperative/sites.js'
import { event } from '../contract/event-bus.js'
import { notes } from '../contract/sites.js'
import { deferred } from './deferred.js'
import { type Frame, flushPromises, holdTime, publish, watch } from './viewer.js'
import { createWorld, TOPIC, type World } from './world.js'

holdTime()

describe('the event stream ends', () => {
  const last = (frames: Frame[]) => frames.at(-1)

  it('immediately when the session is closed, and no event follows', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    await viewer.read()
    const rest = viewer.drain()
    await flushPromises()
    const closing = world.sessions.close(world.session_id)
    publish(world, 1, 5)
    await closing
    publish(world, 6, 9)
    expect(await rest).toHaveLength(2)
    expect(last(viewer.frames)).toMatchObject({ event: 'end', data: { reason: 'session_closed' } })
    expect(world.relay.streams).toBe(0)
  })

  it('immediately when a share is revoked, for that viewer only', async () => {
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

  it('within a second when its session id now belongs to another site', async () => {
    const sites = createSiteRegistry()
    const sessions = createSessionRegistry({ sites, newId: () => 'again' })
    const world = await createWorld({ sites, sessions, policy: createSessionPolicy({ sessions }) })
    await sites.put(notes)
    await sites.put({ ...notes, site_id: 'board', owner: 'bob' })
    await sessions.open({ site_id: 'notes', owner: 'alice' })
    await sessions.activate('again')
    await sessions.share('again', { user_id: 'bob', rights: ['view'] })
    const bob = await watch({ ...world, session_id: 'again' })
    void bob.drain()
    await flushPromises()
    await sessions.open({ site_id: 'board', owner: 'bob' })
    await sessions.activate('again')
    const own = await watch({ ...world, session_id: 'again' })
    void own.drain()
    await vi.advanceTimersByTimeAsync(1_000)
    publish(world, 1, 1)
    await flushPromises()
    expect(bob.frames.map(({ event: name }) => name)).toEqual(['ready', 'end'])
    expect(last(bob.frames)?.data).toEqual({ reason: 'session_closed' })
    expect(own.frames.map(({ event: name }) => name)).toEqual(['ready'])
  })

  it('within a second when a policy refuses, without a signal of the registry', async () => {
    let may = true
    const world = await createWorld({ policy: { check: async () => may } })
    const viewer = await watch(world)
    const rest = viewer.drain()
    await flushPromises()
    may = false
    await vi.advanceTimersByTimeAsync(1_000)
    publish(world, 1, 1)
    await rest
    expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'end'])
    expect(last(viewer.frames)?.data).toEqual({ reason: 'policy_revoked' })
  })

  /** Alice, reading the stream of a session of hers that lives for `ttl_ms`. */
  async function watchExpiring(world: World, ttl_ms: number) {
    const { session_id } = await world.sessions.open({ site_id: 'notes', owner: 'alice', ttl_ms })
    await world.sessions.activate(session_id)
    const viewer = await watch({ ...world, session_id }, 'alice')
    return { viewer, rest: viewer.drain() }
  }

  it('within a second of its expiry', async () => {
    const { viewer, rest } = await watchExpiring(await createWorld(), 1_500)
    await vi.advanceTimersByTimeAsync(2_500)
    await rest
    expect(last(viewer.frames)?.data).toEqual({ reason: 'session_expired' })
  })

  it('without events published after its expiry', async () => {
    const world = await createWorld()
    const { viewer, rest } = await watchExpiring(world, 1_300)
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
    await flushPromises()
    await world.sites.delete('notes')
    if (what === 'taken over') await world.sites.put({ site_id: 'notes', owner: 'mallory', mode: 'cooperative' })
    await vi.advanceTimersByTimeAsync(1_000)
    await rest
    expect(last(viewer.frames)?.data).toEqual({ reason: 'session_closed' })
  })

  it('with shutdown and a random retry delay when the relay closes', async () => {
    const world = await createWorld({ streamsPerViewerInSession: 100 })
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
    await flushPromises()
    world.bus.close()
    await rest
    await stalled.drain()
    for (const { frames } of [waiting, stalled]) expect(last(frames)?.data).toEqual({ reason: 'shutdown' })
  })

  it('silently when the client disconnects, and releases everything', async () => {
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
    expect(await world.bus.publish(TOPIC, event(1))).toBe(0)
  })

  it('before it begins when the client has already disconnected', async () => {
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

  it('with shutdown while it is still being opened when the relay closes', async () => {
    const word = deferred<{ user_id: string }>()
    const world = await createWorld({ authenticateViewer: () => word.promise })
    const opening = watch(world)
    await flushPromises()
    const closing = world.relay.close()
    word.resolve({ user_id: 'bob' })
    const viewer = await opening
    await closing
    expect((await viewer.drain()).at(-1)?.data).toEqual({ reason: 'shutdown' })
    expect(world.relay.streams).toBe(0)
  })
})
