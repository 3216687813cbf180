/** Fields of sites and sessions that come from other inspectors, if those exist and can answer. */
import { describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createFakeInspectors } from '../../src/testing/kits.js'

const connector = { user_id: 'ada', client_id: 'app' }
const world = () =>
  createFakeInspectors({
    sites: [
      { site_id: 'notes', owner: 'ada' },
      { site_id: 'board', owner: 'ada', sessions: 7 },
    ],
    sessions: [
      { session_id: 's1', connector },
      { session_id: 's2', connector: { ...connector, client_id: 'gone' } },
      { session_id: 's3', connector: null },
      { session_id: 's4', connector, connector_connected: false },
    ],
  })

async function ctx(inspectors: Inspectors, path: string) {
  const errors: unknown[] = []
  const router = createDiagnosticsRouter({
    inspectors,
    auth: noopAuth(),
    onError: (error, place) => errors.push([String(error), place.source]),
  })
  const response = await router(new Request(`http://relay${path}`))
  const body = (await response.json()) as Record<string, unknown> & { items?: Record<string, unknown>[] }
  return { status: response.status, body, errors, of: (field: string) => body.items?.map((item) => item[field]) }
}

describe('the sessions of sites', () => {
  it('are null, never 0, without an inspector that counts them', async () => {
    expect((await ctx(world(), '/sites')).of('sessions')).toEqual([null, 7])
    const { sessions: _, ...alone } = world()
    expect((await ctx(alone, '/sites')).of('sessions')).toEqual([null, 7])
  })

  it('are counted in one question for all sites that do not say it themselves', async () => {
    const inspectors = world()
    const asked: unknown[] = []
    const sessions = {
      ...inspectors.sessions,
      countSessions(sites: unknown) {
        asked.push(sites)
        return [3]
      },
    } as Inspectors['sessions']
    const { of } = await ctx({ ...inspectors, sessions }, '/sites')
    expect(of('sessions')).toEqual([3, 7])
    expect(asked).toMatchObject([[{ site_id: 'notes', owner: 'ada' }]])
    expect((await ctx({ ...inspectors, sessions }, '/sites/notes')).body.sessions).toBe(3)
  })

  it('are unknown when their registry fails, and the error is reported', async () => {
    const inspectors = world()
    const countSessions = () => {
      throw new Error('no luck')
    }
    const sessions = { ...inspectors.sessions, countSessions } as Inspectors['sessions']
    const { status, of, errors } = await ctx({ ...inspectors, sessions }, '/sites')
    expect([status, of('sessions'), errors]).toEqual([200, [null, 7], [['Error: no luck', 'sessions']]])
  })
})

describe('the connectors of sessions', () => {
  const connected = [{ ...connector, instance_id: 'i' }]

  it('are there or not as far as a registry can say, and unknown for a session without one', async () => {
    const { registry } = createFakeInspectors({ connections: connected })
    const inspectors = { ...world(), registry }
    expect((await ctx(world(), '/sessions?order=oldest')).of('connector_connected')).toEqual([null, null, null, false])
    expect((await ctx(inspectors, '/sessions?order=oldest')).of('connector_connected')).toEqual([
      true,
      false,
      null,
      false,
    ])
    expect((await ctx(inspectors, '/sessions/s1')).body.connector_connected).toBe(true)
  })

  it('are unknown where the registry fails', async () => {
    const { registry } = createFakeInspectors({ connections: connected })
    const failing = { ...registry, currentInstances: () => Promise.reject(new Error('no luck')) } as never
    const { status, of, errors } = await ctx({ ...world(), registry: failing }, '/sessions?order=oldest')
    expect([status, of('connector_connected')]).toEqual([200, [null, null, null, false]])
    expect(errors).toEqual([['Error: no luck', 'registry']])
  })
})
