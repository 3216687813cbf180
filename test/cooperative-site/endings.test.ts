/** Whatever a host's hooks and its callers do: closing the relay ends, and says what it has left behind. */
import { describe, expect, it } from 'vitest'
import type { CooperativeSiteRouterOptions } from '../../src/cooperative-site/index.js'
import { changed, createWorld } from './world.js'

/** What never answers, and says when it is asked. */
function hanging() {
  let ask = () => {}
  const asked = new Promise<void>((resolve) => (ask = resolve))
  const hang = () => {
    ask()
    return new Promise<never>(() => {})
  }
  return { asked, hang }
}

type Hang = () => Promise<never>
type Options = Partial<CooperativeSiteRouterOptions>
const invocation = { body: { parameters: {} } }

const HOOKS: [string, (hang: Hang) => Options, (world: { session_id: string }) => Parameters<Ask>][] = [
  ['the authenticator of hosts', (hang) => ({ authenticateHost: hang }), () => ['alice', 'GET', '/sites/notes']],
  [
    'the authenticator of viewers',
    (hang) => ({ authenticateViewer: hang }),
    ({ session_id }) => ['bob', 'GET', `/sessions/${session_id}/events`],
  ],
  [
    'the policy',
    (hang) => ({ policy: { check: hang } }),
    ({ session_id }) => ['bob', 'GET', `/sessions/${session_id}/events`],
  ],
  [
    'the ingest, whose spill may hang',
    (hang) => ({ ingest: hang }),
    () => ['alice', 'POST', '/messages', { body: changed() }],
  ],
  [
    'the approval',
    (hang) => ({ approve: hang }),
    ({ session_id }) => ['bob', 'POST', `/sessions/${session_id}/actions/archive_note`, invocation],
  ],
  [
    'the connector',
    (hang) => ({ connector: { call: hang } }),
    ({ session_id }) => ['bob', 'POST', `/sessions/${session_id}/actions/archive_note`, invocation],
  ],
]
type Ask = Awaited<ReturnType<typeof createWorld>>['ask']

describe('closing the relay', () => {
  it.each(HOOKS)('closes while %s hangs, and reports it', async (_what, options, request) => {
    const { asked, hang } = hanging()
    const world = await createWorld({ ...options(hang), closeTimeoutMs: 20 })
    void world.ask(...request(world))
    await asked
    expect(await world.relay.close()).toEqual({ aborted: 1 })
  })

  it('closes while a request body is missing, and reports it', async () => {
    const { asked, hang } = hanging()
    const world = await createWorld({ closeTimeoutMs: 20 })
    const body = new ReadableStream({ pull: hang }, { highWaterMark: 0 })
    const headers = { authorization: 'Bearer alice', 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body, duplex: 'half' }
    void world.relay(new Request('http://relay.test/relay/messages', init as RequestInit))
    await asked
    expect(await world.relay.close()).toEqual({ aborted: 1 })
  })

  it('waits for requests that end in time, and reports nothing', async () => {
    let answer = (_: unknown) => {}
    let called = () => {}
    const isCalled = new Promise<void>((resolve) => (called = resolve))
    const connector = {
      call: () => {
        called()
        return new Promise((resolve) => (answer = resolve))
      },
    }
    const world = await createWorld({ connector })
    const asked = world.ask('bob', 'POST', `/sessions/${world.session_id}/actions/archive_note`, invocation)
    await isCalled
    const closing = world.relay.close()
    answer({ archived: true })
    expect((await asked).status).toBe(200)
    expect(await closing).toEqual({ aborted: 0 })
  })

  it('does not wait for a viewer that does not read its stream', async () => {
    const world = await createWorld({ closeTimeoutMs: 3_600_000 })
    const stream = await world.ask('bob', 'GET', `/sessions/${world.session_id}/events`)
    expect(stream.status).toBe(200)
    expect(world.relay.streams).toBe(1)
    expect(await world.relay.close()).toEqual({ aborted: 0 })
    expect(world.relay.streams).toBe(0)
  })
})
