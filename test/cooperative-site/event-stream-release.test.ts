/** What the relay holds for a stream, and that it lets go of all of it. */
import { getEventListeners } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { holdTime, watch } from './viewer.js'
import { createWorld } from './world.js'

holdTime()

describe('the relay', () => {
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
