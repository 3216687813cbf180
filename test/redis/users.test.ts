/** Users that only commands, ended calls, sites or sessions mention, in both compositions. */
import { expect, it, onTestFinished } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities, type MemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createRedisFacilities, type RedisFacilities } from '../../src/redis/composition/facilities.js'
import { describeStores } from './matrix.js'
import { createObserver, get, type Router } from './router.js'

const KNOWN = {
  'ada-command': ['delivery'],
  'bea-ended-call': ['rpc'],
  'cem-site': ['sites'],
  'dan-session': ['sessions'],
}

async function mention({ dispatcher, rpc, sites, sessions }: MemoryFacilities | RedisFacilities) {
  const client = { client_id: 'c', action: 'a' }
  await dispatcher.dispatch({ ...client, user_id: 'ada-command', command_id: 'x', deadline_ms: 60_000 })
  const { correlation_id, result } = await rpc.open({ ...client, user_id: 'bea-ended-call' })
  await rpc.settle(correlation_id, { ok: true, result: 1 })
  await result
  await sites.put({ site_id: 's1', owner: 'cem-site', mode: 'observe' })
  await sites.put({ site_id: 's2', owner: 'dan-session', mode: 'observe' })
  await sessions.open({ site_id: 's2', owner: 'dan-session' })
  await sites.delete('s2')
}

async function check(router: Router): Promise<void> {
  const users = (await get(router, '/users')).body.items as { user_id: string; sources: string[] }[]
  expect(Object.fromEntries(users.map(({ user_id, sources }) => [user_id, sources]))).toEqual(KNOWN)
  for (const [user, sources] of Object.entries(KNOWN)) {
    const { status, body } = await get(router, `/users/${user}/summary`)
    const observed_client_ids = /command|call/.test(user) ? ['c'] : []
    expect([user, status, body]).toMatchObject([user, 200, { sources, observed_client_ids, pending_rpc: 0 }])
    expect(body.completeness).toMatchObject({ complete: true })
  }
  expect((await get(router, '/users/missing/summary')).status).toBe(404)
}

it('lists users with only a command, an ended call, a site or a session, from memory', async () => {
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  await mention(facilities)
  await check(createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth() }))
})

describeStores('users that are only mentioned', (kind, place) => {
  it(`are listed, and their summaries found (${kind})`, async () => {
    const where = place()
    const facilities = createRedisFacilities({ ...where, nodeId: 'n' })
    onTestFinished(async () => void (await facilities.close()))
    await mention(facilities)
    await check(createObserver({ client: where.client, deploymentId: where.deploymentId }))
  })
})
