/** How fresh a grant is while its session changes. */
import { describe, expect, it, vi } from 'vitest'
import { createSessionGrants } from '../../src/cooperative-site/sessions/grants.js'
import { siteStream } from '../../src/internal/contract/ingest.js'
import type { Session } from '../../src/internal/contract/sessions.js'
import { deferred } from './deferred.js'
import { createWorld as createGate, START } from './gate-world.js'
import { flushPromises } from './viewer.js'

describe('a grant', () => {
  it('is not fresh when something changed while it was read', async () => {
    const session = { ...(createGate().world.session as Session) }
    const first = deferred<Session>()
    const answers = [first.promise, new Promise<Session>(() => {})]
    let changed = () => {}
    const grants = createSessionGrants({
      sessions: {
        get: () => answers.shift() as Promise<Session>,
        watch: (_, notify) => {
          changed = notify
          return () => {}
        },
      },
      sites: { get: async () => createGate().world.site },
      policy: { check: async () => true },
      now: () => START,
    })
    const fresh = vi.fn()
    const grant = grants.hold(
      { fresh, ended: () => {} },
      { user_id: 'bob' },
      { session_id: 's1', topic: siteStream('alice', 'notes') },
    )
    grant.refresh()
    await flushPromises()
    changed()
    first.resolve(session)
    await flushPromises()
    expect(grant.isFresh).toBe(false)
    expect(fresh).not.toHaveBeenCalled()
    expect(answers).toEqual([])
  })

  it('is no longer fresh once a change was signalled, until it has been read', async () => {
    const { world } = createGate()
    let answer: () => Promise<typeof world.session> = async () => world.session
    let changed = () => {}
    const grants = createSessionGrants({
      sessions: {
        get: () => answer(),
        watch: (_, notify) => {
          changed = notify
          return () => {}
        },
      },
      sites: { get: async () => world.site },
      policy: { check: async () => true },
      now: () => START,
    })
    const grant = grants.hold(
      { fresh: () => {}, ended: () => {} },
      { user_id: 'bob' },
      { session_id: 's1', topic: siteStream('alice', 'notes') },
    )
    grant.refresh()
    await flushPromises()
    expect(grant.isFresh).toBe(true)
    answer = () => new Promise(() => {})
    changed()
    expect(grant.isFresh).toBe(false)
  })
})
