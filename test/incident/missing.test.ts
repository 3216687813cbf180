import { describe, expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { fitted, type Incident, type Missing } from '../../src/incident/format.js'
import { incidentComposition } from '../../src/incident/index.js'
import { createDiagnosticsRouter, noopAuth, Refusal, scopeInspectors } from '../../src/index.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject } from '../diagnostics/subject.js'
import { connection, context, createWorld } from '../diagnostics/world.js'
import { askRouter, createOriginal, HEADERS as headers } from './subject.js'

const replayOf = (file: object) =>
  createDiagnosticsRouter({ ...incidentComposition(file), auth: noopAuth(), onError: null })

const missingOf = ({ missing }: Incident, route: string): Missing['reason'][] =>
  missing.flatMap((one) => (one.route === route ? one.reason : []))

const rowsOf = ({ parts }: Incident, route: string) => parts.find((part) => part.route === route)?.rows ?? []

const many = (count: number) =>
  Array.from({ length: count }, (_, i) =>
    connection({ connection_id: `conn-${i}`, client_id: `desk-${i}`, metadata: { text: 'x'.repeat(500) } }),
  )

describe('what an incident lacks', () => {
  it('is named where the source fails, and answers 503 instead of an empty list', async () => {
    const inspectors = createFakeInspectors(createWorld())
    const failing = {
      ...inspectors,
      contextRegistry: { listContexts: () => Promise.reject(new Refusal('unavailable')), getContext: () => null },
    }
    const incident = await captureIncident(createSubject({ inspectors: failing }), { headers })
    expect(incident.missing.find(({ route }) => route === '/contexts')).toMatchObject({
      reason: 'unreachable',
      detail: expect.stringMatching(/^503 inspector_unavailable: /),
    })
    const replay = replayOf(incident)
    expect((await askRouter(replay, '/contexts')).status).toBe(503)
    expect((await askRouter(replay, '/contexts/ctx-1')).status).toBe(503)
    expect(await askRouter(replay, '/users')).toMatchObject({
      body: { completeness: { complete: false, truncated_sources: ['context_registry', 'browser_window_registry'] } },
    })
  })

  it('is named where the caller may see some users only', async () => {
    const scoped = createSubject({ authorize: () => ({ user_ids: ['alice'] }) })
    const inspectors = scopeInspectors(createFakeInspectors(createWorld()), { user_ids: ['alice'] })
    for (const router of [scoped, createSubject({ inspectors })]) {
      const incident = await captureIncident(router, { headers, redact: false })
      expect(incident.limited).toBe(true)
      expect(missingOf(incident, '/delivery/summary')).toEqual(['forbidden'])
      expect(missingOf(incident, '/connections')).toEqual(['other_users'])
      const replay = replayOf(incident)
      expect((await askRouter(replay, '/delivery/summary')).status).toBe(503)
      expect((await askRouter(replay, '/capabilities')).body).toMatchObject({
        extensions: { incident: { limited: true } },
      })
      // Users in the file are complete; other users are unknown.
      const complete = { status: 200, body: { has_more: false } }
      expect(await askRouter(replay, '/connections?user_id=alice')).toMatchObject(complete)
      expect(await askRouter(replay, '/contexts?user_id=alice')).toMatchObject(complete)
      const part = { status: 200, body: { completeness: { complete: false } } }
      for (const path of [
        '/connections/count',
        '/users',
        '/actions',
        '/actions?user_id=bob',
        '/contexts/count',
        '/users/bob/summary',
      ])
        expect({ path, ...(await askRouter(replay, path)) }).toMatchObject({ path, ...part })
      expect(await askRouter(replay, '/actions?user_id=alice')).toMatchObject({
        body: { completeness: { complete: true } },
      })
      for (const path of ['/connections/conn-9', '/connections/conn-9/history'])
        expect([path, (await askRouter(replay, path)).status]).toEqual([path, 503])
    }
  })

  it('is named where the caller may not use some routes', async () => {
    const router = createSubject({ authorize: ({ route }) => !/^\/(?:contexts|connections\/churn)/.test(route) })
    const incident = await captureIncident(router, { headers })
    expect(incident.limited).toBe(true)
    for (const route of ['/contexts', '/connections/churn', '/connections/churn?node_id={node_id}'])
      expect([route, missingOf(incident, route)]).toEqual([route, ['forbidden']])
    expect(missingOf(incident, '/connections')).toEqual([])
    expect((await askRouter(replayOf(incident), '/contexts')).status).toBe(503)
    expect((await captureIncident(createSubject(), { headers })).limited).toBe(false)
  })

  it('is bounded on the page, and counted, however much there is and whatever the host added', async () => {
    const host = { host: 'x'.repeat(64_000) }
    const whole = await captureIncident(createSubject({ extensions: host }), { headers })
    const missing = Array.from(
      { length: 1_000 },
      (_, i): Missing => ({
        route: '/connections/{connection_id}/history',
        of: { connection_id: `${i}`.padStart(200, 'x') },
        reason: 'unreachable',
        count: null,
        detail: 'x'.repeat(500),
      }),
    )
    const { body } = await askRouter(replayOf({ ...whole, missing }), '/capabilities')
    const { incident, ...others } = (body as { extensions: Record<string, { missing: Missing[] }> }).extensions
    expect(incident).toMatchObject({ missing_omitted: 1_001 - Number(incident?.missing.length) })
    expect(incident?.missing[0]).toMatchObject({ route: '/capabilities', reason: 'cut' })
    expect(others).not.toHaveProperty('host')
    const kept = await askRouter(replayOf({ ...whole, extensions: { host: 'here' }, missing }), '/capabilities')
    expect(kept.body).toMatchObject({ extensions: { host: 'here', incident: { missing: { length: 50 } } } })
  })

  it('is named where the deployment has no such source, which stays 501', async () => {
    const { connections } = createWorld()
    const incident = await captureIncident(createSubject({ inspectors: createFakeInspectors({ connections }) }), {
      headers,
    })
    expect(missingOf(incident, '/sites')).toEqual(['not_deployed'])
    expect(missingOf(incident, '/connections/{connection_id}/history')).toEqual(['not_deployed'])
    const replay = replayOf(incident)
    expect((await askRouter(replay, '/sites')).status).toBe(501)
    expect((await askRouter(replay, '/connections/conn-1/history')).status).toBe(501)
  })

  it('is named where the bound of the file cut a list, which ends with a page that cannot be read', async () => {
    const world = { connections: many(2_000), contexts: [context({ client_id: 'desk-0' })] }
    const maxBytes = 1_000_000
    const incident = await captureIncident(createSubject({ inspectors: createFakeInspectors(world) }), {
      headers,
      maxBytes,
    })
    expect(JSON.stringify(incident).length).toBeLessThan(maxBytes)
    const kept = rowsOf(incident, '/connections').length
    expect(kept).toBeGreaterThan(100)
    expect(kept).toBeLessThan(2_000)
    expect(missingOf(incident, '/connections')).toEqual(['cut'])
    expect(missingOf(incident, '/contexts')).toEqual([])
    const replay = replayOf(incident)
    let cursor = ''
    let seen = 0
    for (;;) {
      const { status, body } = await askRouter(replay, `/connections?limit=500${cursor && `&cursor=${cursor}`}`)
      if (status !== 200) {
        expect(status).toBe(503)
        break
      }
      const page = body as { items: unknown[]; has_more: boolean; next_cursor: string }
      seen += page.items.length
      expect(page.has_more).toBe(true)
      cursor = page.next_cursor
    }
    expect(seen).toBe(kept)
    // If the file may lack connections, it is unknown whether this one existed.
    expect((await askRouter(replay, '/connections/conn-1')).status).toBe(503)
    expect((await askRouter(replay, '/contexts/ctx-9')).status).toBe(404)
    expect((await askRouter(replay, '/search?q=conn-1')).body).toMatchObject({ hits: [], cut: ['registry'] })
    expect(await askRouter(replay, '/connections/count')).toMatchObject({ body: { completeness: { complete: false } } })
  })

  it('is named where what no walk has counted leaves less room for rows, so that the file keeps its bound', async () => {
    const inspectors = createFakeInspectors({ connections: many(300) })
    const router = createSubject({ inspectors, extensions: { host: 'x'.repeat(60_000) } })
    const whole = await captureIncident(router, { headers })
    const maxBytes = 150_000
    const incident = fitted(whole, maxBytes)
    expect(JSON.stringify(incident).length).toBeLessThanOrEqual(maxBytes)
    expect(rowsOf(incident, '/connections').length).toBeGreaterThan(20)
    expect(missingOf(incident, '/connections')).toEqual(['cut'])
    // The oldest rows go first.
    expect(rowsOf(incident, '/connections').at(-1)).toEqual(rowsOf(whole, '/connections').at(-1))
    await expect(captureIncident(router, { headers, maxBytes: 50_000 })).rejects.toThrow(
      'nothing was captured: the file without rows takes more than 50000 bytes',
    )
  })

  it('is named where lists went on changing from one walk to the next', async () => {
    const world = createWorld()
    let asked = 0
    const inspectors = createFakeInspectors(world)
    const listContexts = inspectors.contextRegistry?.listContexts
    const changing = {
      ...inspectors,
      contextRegistry: {
        getContext: () => null,
        listContexts: (...given: Parameters<NonNullable<typeof listContexts>>) => {
          world.contexts = [context({ context_id: `ctx-${++asked}` })]
          return listContexts?.(...given) as never
        },
      },
    }
    const incident = await captureIncident(createSubject({ inspectors: changing }), { headers })
    expect(incident.consistent).toBe(false)
    expect(incident.missing.find(({ route }) => route === '/contexts')).toMatchObject({ reason: 'unsteady', count: 2 })
    expect((await askRouter(replayOf(incident), '/contexts')).status).toBe(200)
  })

  it('is consistent where nothing changed but by the clock', async () => {
    let now = Date.UTC(2026, 0, 2, 3, 4, 5)
    const world = createWorld()
    const inspectors = createFakeInspectors(world)
    const beating = {
      ...inspectors,
      registry: {
        ...inspectors.registry,
        listConnections: () => ({
          items: world.connections.map((one) =>
            connection({ ...(one as object), last_seen_at: new Date(++now).toISOString() }),
          ),
          next_cursor: null,
          has_more: false,
        }),
      },
    }
    const incident = await captureIncident(createSubject({ inspectors: beating as never }), { headers })
    expect(incident.consistent).toBe(true)
  })
})

describe('an incident of one user', () => {
  it('has rows of that user only, and says so where it is asked for others', async () => {
    const incident = await captureIncident(createOriginal(), { headers, user: 'bob' })
    const text = JSON.stringify(incident)
    expect(text).not.toContain('alice')
    expect(text).not.toContain('carol')
    expect(rowsOf(incident, '/connections')).toHaveLength(2)
    expect(rowsOf(incident, '/delivery/nodes')).toHaveLength(3)
    expect(rowsOf(incident, '/delivery/tenants')).toHaveLength(0)
    const replay = replayOf(incident)
    expect(await askRouter(replay, '/connections?user_id=bob')).toMatchObject({ body: { has_more: false } })
    expect(await askRouter(replay, '/connections')).toMatchObject({ body: { has_more: true } })
    expect((await askRouter(replay, '/connections/conn-1')).status).toBe(503)
    expect((await askRouter(replay, '/users/bob/summary')).status).toBe(200)
  })
})

describe('an incident since an instant', () => {
  it('leaves out what ended before, and keeps what is still open however old it is', async () => {
    const world = createWorld()
    const old = '2026-01-01T00:00:00.000Z'
    world.connections = [
      connection({ connected_at: old, last_seen_at: old }),
      connection({
        connection_id: 'conn-old',
        status: 'disconnected',
        connected_at: old,
        last_seen_at: old,
        disconnected_at: old,
      }),
      connection({ connection_id: 'conn-ended', status: 'disconnected', connected_at: old }),
    ]
    const since = Date.parse('2026-01-02T00:00:00.000Z')
    const incident = await captureIncident(createOriginal({}, world), { headers, since })
    expect(rowsOf(incident, '/connections').map(({ connection_id }) => connection_id)).toEqual(['conn-1', 'conn-ended'])
    expect(incident.missing.find(({ route }) => route === '/connections')).toMatchObject({ reason: 'older', count: 1 })
  })
})

describe('captureIncident', () => {
  it('fails where the router refuses the caller', async () => {
    await expect(captureIncident(createOriginal())).rejects.toThrow('nothing was captured: 403 forbidden')
  })

  it('fails where something else answers', async () => {
    const other = { prefix: '/', fetch: async () => Response.json({ service: 'other' }) }
    await expect(captureIncident(other)).rejects.toThrow('this is not a diagnostics router of relayscope')
    const none = { prefix: '/', fetch: async () => Promise.reject(new Error('secret')) }
    await expect(captureIncident(none)).rejects.toThrow('nothing was captured: no answer')
  })

  it('fails where the file could not be opened again', async () => {
    const router = createOriginal()
    const deep = JSON.parse(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`)
    const hostile = {
      prefix: router.prefix,
      fetch: async (request: Request) => {
        const response = await router.fetch(request)
        if (!request.url.endsWith('/capabilities')) return response
        return Response.json({ ...((await response.json()) as object), extensions: { deep } })
      },
    }
    await expect(captureIncident(hostile, { headers })).rejects.toThrow(
      'the capture could not be opened again: the file must not nest deeper',
    )
  })

  it('ends with its signal', async () => {
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(captureIncident(createOriginal(), { headers, signal })).rejects.toThrow('enough')
  })

  it('writes no header of a request to the file', async () => {
    expect(JSON.stringify(await captureIncident(createOriginal(), { headers }))).not.toContain(headers['x-admin-key'])
  })

  it('survives a router that answers endless pages, deep rows and hostile names', async () => {
    const page = { items: [JSON.parse('{"__proto__":{"x":1},"connection_id":"a"}')], has_more: true, next_cursor: 'c' }
    const hostile = {
      prefix: '',
      fetch: async (request: Request) => {
        const { pathname } = new URL(request.url)
        if (pathname === '/')
          return Response.json({
            service: 'relayscope',
            routes: [{ path: '/connections', available: true }, { path: '/new', available: true }, 7],
          })
        if (pathname === '/capabilities')
          return Response.json({ registry: true, 'a b': true, extensions: { __proto: 1, operations: ['x', 1] } })
        return Response.json(page)
      },
    }
    const incident = await captureIncident(hostile)
    expect(missingOf(incident, '/connections')).toContain('unreadable')
    expect(missingOf(incident, '/new')).toEqual(['unknown_route'])
    expect(incident.capabilities).toEqual(['registry', 'x'])
    expect(() => replayOf(incident)).not.toThrow()
  })
})
