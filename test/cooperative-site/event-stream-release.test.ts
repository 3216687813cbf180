/** What the relay holds for a stream, and that it lets go of all of it. */
import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createCooperativeSiteEventBus } from '../../src/cooperative-site/index.js'
import { event } from '../contract/event-bus.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'
import { deferred } from './deferred.js'
import { flushPromises, HELD, holdTime, publish, watch } from './viewer.js'
import { createWorld, TOPIC } from './world.js'

holdTime()

const raise = (error: Error): never => {
  throw error
}

describe('the relay', () => {
  it('watches a session while it has viewers, and listens to a client while it is connected', async () => {
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

  const odd = new Error('odd')
  it.each<[string, () => unknown, unknown[]]>([
    ['answers nothing', () => undefined, []],
    ['returns a value that is not a function', () => ({}), []],
    ['answers by promise', async () => () => {}, []],
    ['answers nothing by promise', async () => {}, []],
    ['throws', () => raise(odd), [odd]],
    ['rejects', async () => raise(odd), [odd]],
    ['cannot end', () => () => raise(odd), [odd]],
    ['cannot end, said by promise', async () => async () => raise(odd), [odd]],
  ])('serves and releases a viewer when the registry has a watch that %s', async (_, watchAs, expected) => {
    const base = await createWorld()
    const reported: unknown[] = []
    const sessions = { get: base.sessions.get, watch: watchAs as () => () => void }
    const { sites, policy } = base
    const world = await createWorld({ sessions, sites, policy, onError: (error) => reported.push(error) })
    const viewer = await watch({ ...world, session_id: base.session_id })
    await viewer.read()
    publish(world, 1, 1)
    await viewer.read()
    expect(viewer.frames.map(({ event: name }) => name)).toEqual(['ready', 'site_event'])
    await viewer.reader.cancel()
    await flushPromises()
    expect(reported).toEqual(expected)
    expect(world.relay.streams).toBe(0)
    expect(await world.bus.publish(TOPIC, event(2))).toBe(0)
  })

  it('ends a watch that resolves after the viewer has disconnected', async () => {
    const base = await createWorld()
    const word = deferred<() => void>()
    let ended = 0
    const sessions = { get: base.sessions.get, watch: () => word.promise as unknown as () => void }
    const world = await createWorld({ sessions, sites: base.sites, policy: base.policy })
    const viewer = await watch({ ...world, session_id: base.session_id })
    await viewer.reader.cancel()
    word.resolve(() => ended++)
    await flushPromises()
    expect(ended).toBe(1)
  })

  it('handles a watch that signals immediately', async () => {
    const base = await createWorld()
    const sessions = {
      get: base.sessions.get,
      watch(_: string, changed: () => void) {
        changed()
        return () => {}
      },
    }
    const world = await createWorld({ sessions, sites: base.sites, policy: base.policy })
    const viewer = await watch({ ...world, session_id: base.session_id })
    await viewer.read()
    expect(viewer.frames).toHaveLength(1)
  })

  it('leaves no subscription of a stream that failed to open', async () => {
    const bus = createCooperativeSiteEventBus({ newId: () => 'a\rb' })
    const world = await createWorld({ bus })
    const answer = await world.ask('bob', 'GET', `/sessions/${world.session_id}/events`)
    expect(answer.status).toBe(500)
    expect(world.relay.streams).toBe(0)
    expect(await bus.publish(TOPIC, event(1))).toBe(0)
  })

  it('leaks no timer, stream or permission when viewers connect and disconnect', async () => {
    useFakeTimers(HELD)
    const world = await createWorld()
    const before = ourTimers().length
    for (let n = 0; n < 500; n++) {
      const viewer = await watch(world)
      if (n % 3 === 0) await viewer.read()
      if (n % 2 === 0) viewer.controller.abort()
      else await viewer.reader.cancel()
    }
    expect(world.relay.streams).toBe(0)
    expect(ourTimers()).toHaveLength(before)
  })
})
