import { describe, expect, it } from 'vitest'
import type { DiagnosticsRouterOptions } from '../../src/internal/diagnostics/options.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createLivedFacilities } from '../testing/lived-facilities.js'
import { CASES, createSubject, get, KEY, ORIGIN, PREFIX } from './subject.js'

/** The one route that answers no JSON. */

describe('the index', () => {
  it('says what can be asked, where, and of which deployment', async () => {
    const router = createSubject({ deployment: { id: 'blue', mode: 'shared_store' }, dashboardPath: '/board' })
    const { body } = await get(router, '/')
    expect(body).toEqual({
      service: 'relayscope',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      deployment_id: 'blue',
      mode: 'shared_store',
      dashboard_path: '/board',
      openapi_path: '/openapi.json',
      routes: CASES.map(({ route, path }) => ({
        method: 'GET',
        path,
        summary: route.summary,
        capability: route.operation ?? route.requires[0] ?? null,
        available: true,
      })),
    })
    expect((await get(createSubject(), '')).body).toMatchObject({
      deployment_id: null,
      mode: 'direct',
      dashboard_path: '/dashboard',
    })
  })

  it('shows its deployment in a delivery summary that has none, and keeps one that it has', async () => {
    const summaryOf = async (deployment_id: string | null) => {
      const inspectors = createFakeInspectors({ delivery: { summary: { deployment_id } } })
      const router = createSubject({ inspectors, deployment: { id: 'blue', mode: 'shared_store' } })
      return (await get(router, '/delivery/summary')).body
    }
    expect(await summaryOf(null)).toMatchObject({ deployment_id: 'blue' })
    expect(await summaryOf('green')).toMatchObject({ deployment_id: 'green' })
  })

  it('mounts no dashboard', async () => {
    expect((await get(createSubject(), '/dashboard')).status).toBe(404)
  })
})

describe('the capabilities', () => {
  const NONE = {
    history: false,
    registry: false,
    rpc: false,
    deduplicator: false,
    context_registry: false,
    browser_window_registry: false,
    delivery: false,
    history_list_streams: false,
    registry_connection_history: false,
    rpc_instance_check: false,
    dedup_per_user: false,
    extensions: { deployment_id: null, mode: 'direct' },
  }
  const of = async (options: Partial<DiagnosticsRouterOptions>) =>
    (await get(createSubject(options), '/capabilities')).body

  it('are all false without inspectors', async () => {
    expect(await of({ inspectors: {} })).toEqual(NONE)
    expect(await of({ inspectors: createFakeInspectors() })).toEqual(NONE)
  })

  it.each([
    [{ connections: [] }, { registry: true }],
    [{ connectionEvents: [] }, { registry: true, registry_connection_history: true }],
    [{ messages: [] }, { history: true }],
    [{ streams: [] }, { history: true, history_list_streams: true }],
    [{ calls: [] }, { rpc: true }, ['findings']],
    [{ instances: [] }, { rpc: true, rpc_instance_check: true }, ['findings']],
    [{ deduplicator: {} }, { deduplicator: true }],
    [{ deduplicator: { users: [] } }, { deduplicator: true, dedup_per_user: true }],
    [{ contexts: [] }, { context_registry: true }, ['findings']],
    [{ browserWindows: [] }, { browser_window_registry: true }, ['findings']],
    [{ delivery: {} }, { delivery: true }, ['delivery_why', 'findings']],
    [{ delivery: { statuses: [] } }, { delivery: true }, ['delivery_commands', 'delivery_why', 'findings']],
    [{ delivery: { churn: [] } }, { delivery: true }, ['delivery_churn', 'delivery_why', 'findings']],
    [{ delivery: { mailboxes: [] } }, { delivery: true }, ['delivery_mailboxes', 'delivery_why', 'findings']],
  ])('of %j are %j and no more', async (world, flags, operations: string[] = []) => {
    // What is made of any source is there as soon as there is one.
    // A deduplicator has no ids.
    const searched = 'deduplicator' in world ? [] : ['search']
    const extensions = { ...NONE.extensions, operations: [...operations, ...searched, 'sources'] }
    expect(await of({ inspectors: createFakeInspectors(world) })).toEqual({ ...NONE, ...flags, extensions })
  })

  it('carry the extensions of the host as they were at construction', async () => {
    const extensions = { region: 'eu', nested: { list: [1, null] } }
    const router = createSubject({ inspectors: {}, extensions, deployment: { id: 'd', mode: 'direct' } })
    extensions.nested.list.push(2)
    expect((await get(router, '/capabilities')).body.extensions).toEqual({
      region: 'eu',
      nested: { list: [1, null] },
      deployment_id: 'd',
      mode: 'direct',
    })
  })

  it('list the inspectors that exist, without calling one', async () => {
    const broken = () => expect.unreachable()
    expect(
      await of({
        inspectors: { delivery: { summary: broken, listNodes: broken, listTenants: broken, status: broken } },
      }),
    ).toEqual({
      ...NONE,
      delivery: true,
      extensions: { ...NONE.extensions, operations: ['delivery_why', 'findings', 'search', 'sources'] },
    })
  })
})

describe('construction', () => {
  const given: DiagnosticsRouterOptions = { inspectors: {}, auth: noopAuth() }
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  it.each<[what: string, options: object, error: RegExp]>([
    ['no inspectors', { inspectors: undefined }, /inspectors/],
    ['no authenticator', { auth: undefined }, /^Missing required option "auth" \(apiKeyAuth/],
    ['an invalid authenticator', { auth: {} }, /^Invalid option "auth": expected apiKeyAuth/],
    ['an invalid mode', { deployment: { id: null, mode: 'shared' } }, /deployment.mode/],
    ['a deployment without an id', { deployment: { mode: 'direct' } }, /deployment.id/],
    ['a deployment whose id is no text', { deployment: { id: 7, mode: 'direct' } }, /deployment.id/],
    ['an extension named deployment_id', { extensions: { deployment_id: 'x' } }, /deployment_id/],
    ['an extension named mode', { extensions: { mode: 'x' } }, /mode/],
    ['an extension named operations', { extensions: { operations: [] } }, /operations/],
    ['extensions that are a list', { extensions: ['x'] }, /extensions/],
    ['extensions that are null', { extensions: null }, /extensions/],
    ['a dashboard path that is no text', { dashboardPath: 5 }, /dashboardPath/],
    ['extensions that are no JSON', { extensions: cyclic }, /./],
    ['extensions with a BigInt', { extensions: { n: 1n } }, /./],
    ['a deadline of nothing', { deadlineMs: 0 }, /deadlineMs/],
    ['a deadline beyond any timer', { deadlineMs: 2 ** 31 }, /deadlineMs/],
    ['a deadline of half a millisecond', { deadlineMs: 0.5 }, /deadlineMs/],
    ['a page over the maximum', { limits: { pageMax: 501 } }, /pageMax/],
    ['a history over the maximum', { limits: { historyMax: 1_001 } }, /historyMax/],
    ['a sample over the maximum', { limits: { examined: 10_001 } }, /examined/],
    ['a default over the maximum', { limits: { pageDefault: 101 } }, /pageDefault/],
    ['a limit of zero', { limits: { pageMax: 0 } }, /pageMax/],
    ['an unknown limit', { limits: { pages: 1 } }, /pages/],
  ])('refuses %s', (_what, options, error) => {
    expect(() => createDiagnosticsRouter({ ...given, ...options } as DiagnosticsRouterOptions)).toThrow(error)
  })
})

describe('the router', () => {
  it('is its own fetch, needs no this, and answers one request as often as it is asked', async () => {
    const { fetch, ...router } = createSubject()
    expect(router.prefix).toBe(PREFIX)
    const request = Object.freeze(new Request(`${ORIGIN}${PREFIX}/connections`, { headers: { 'x-admin-key': KEY } }))
    const answers = await Promise.all([fetch(request), fetch(request), createSubject().fetch(request)])
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect([answers.map((answer) => answer.status), new Set(texts).size]).toEqual([[200, 200, 200], 1])
  })

  it('answers every route over the live objects of a process', async () => {
    const facilities = await createLivedFacilities()
    try {
      const router = createSubject({ ...memoryComposition(facilities, { deploymentId: 'dep' }) })
      for (const { path, route, url } of CASES) {
        const { status, body } = await get(router, url)
        expect([path, status]).toEqual([
          path,
          route.record && path !== '/users/{user_id}/summary' && !path.includes('dedup') ? 404 : 200,
        ])
        if (status === 200) expect(route.response.parse(body)).toEqual(body)
      }
      const { items, completeness } = (await get(router, '/users')).body
      const ids = items.map((user: { user_id: string }) => user.user_id)
      expect(ids).toHaveLength(10)
      expect(ids).toEqual(ids.toSorted((a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
      expect(completeness.complete).toBe(true)
    } finally {
      await facilities.close()
    }
  })
})
