/** The gate when a store or the policy does not answer: every call times out, and pending calls are counted. */
import { describe, expect, it } from 'vitest'
import type { Session } from '../../src/internal/contract/sessions.js'
import { answer } from './answer.js'
import { deferred } from './deferred.js'
import { createWorld, refusal } from './gate-world.js'
import { createWorld as createRelay } from './world.js'

const never = () => new Promise<never>(() => {})
const onlyView = { check: ({ right }: { right: string }) => right === 'view' || never() }

/** Sessions that answer `times` times, and then no more. */
function sessionsFor(times: number, session: () => Session | null) {
  let asked = 0
  return { get: async () => (++asked > times ? never() : session()) }
}

describe('a gate whose ports hang', () => {
  const session = () => createWorld().world.session
  it.each([
    ['the session', { sessions: { get: never } }],
    ['the right to view', { policy: { check: never } }],
    ['the right to invoke', { policy: onlyView }],
    ['the site', { sites: { get: never } }],
    ['the session as it is now', { sessions: sessionsFor(1, session) }],
    ['the session after the approval', { sessions: sessionsFor(2, session), approve: () => true }],
  ])('refuses with unavailable when %s is not known in time', async (_, ports) => {
    const { world, gate, invoke } = createWorld({ ...ports, deadlineMs: 5 })
    await expect(invoke({ idempotency_key: 'k1' })).rejects.toMatchObject(refusal('unavailable'))
    expect(world.calls).toEqual([])
    expect(gate.pending).toBe(0)
  })

  it('frees the key of a call that was not sent', async () => {
    let asked = 0
    const policy = { check: () => (++asked === 4 ? never() : true) }
    const { invoke } = createWorld({ approve: () => true, policy, deadlineMs: 500 })
    await expect(invoke({ idempotency_key: 'k1' })).rejects.toMatchObject(refusal('unavailable'))
    expect(await invoke({ idempotency_key: 'k1' })).toMatchObject({ status: 'succeeded' })
  })

  it.each([
    ['the session', { sessions: { get: never } }],
    ['the right to invoke', { policy: onlyView }],
  ])('stops waiting for %s when the viewer disconnects', async (_, ports) => {
    const controller = new AbortController()
    const { gate, invoke } = createWorld(ports)
    const invoked = invoke({ signal: controller.signal })
    controller.abort()
    await expect(invoked).rejects.toMatchObject(refusal('cancelled'))
    expect(gate.pending).toBe(0)
  })

  it('counts a call that waits for a store in the limit of its viewer', async () => {
    const held = deferred<null>()
    const { gate, invoke } = createWorld({ sites: { get: () => held.promise } })
    const calls = Array.from({ length: 1_001 }, () => invoke().catch((error) => error.code))
    expect(await calls[1_000]).toBe('capacity_exceeded')
    expect(gate.pending).toBe(1_000)
    held.resolve(null)
    await Promise.all(calls)
    expect(gate.pending).toBe(0)
  })

  it('answers a stranger that the session is unknown, however many calls it has pending', async () => {
    const held = deferred<null>()
    const { invoke } = createWorld({
      sites: { get: () => held.promise },
      policy: { check: ({ viewer }) => viewer.user_id === 'bob' },
    })
    const calls = Array.from({ length: 1_000 }, () => invoke().catch((error) => error.code))
    await expect(invoke({ viewer: { user_id: 'mallory' } })).rejects.toMatchObject(refusal('session_not_found'))
    held.resolve(null)
    await Promise.all(calls)
  })
})

it('a relay whose policy hangs for one right answers 503 and can be closed', async () => {
  const world = await createRelay({ policy: onlyView, deadlineMs: 5 })
  const got = await answer(world, 'bob', 'POST', `/sessions/${world.session_id}/actions/archive_note`, {})
  expect([got.status, got.body.code, got.headers.get('retry-after')]).toEqual([503, 'unavailable', '1'])
  await world.relay.close()
})
