/**
 * The host's `authorize` function: when it is called, how each return value is interpreted, and what is reported to it.
 */
import { describe, expect, it } from 'vitest'
import type { AccessQuestion, Authorize } from '../../src/internal/diagnostics/authorization.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { CASES, createSubject, createWatched, expectProblem, get, never, ORIGIN, PREFIX, SECRET } from './subject.js'
import { createWorld } from './world.js'

const unauthenticated = async () => {
  const response = await createSubject()(new Request(`${ORIGIN}${PREFIX}/connections`))
  return [response.status, Object.fromEntries(response.headers), await response.text()]
}

describe('authorize', () => {
  it.each(CASES)('is asked about $path before any inspector, and no is the 403 of a wrong key', async ({
    path,
    url,
  }) => {
    const asked: AccessQuestion[] = []
    const errors: unknown[] = []
    const authorize = (question: AccessQuestion) => {
      asked.push(question)
      return false
    }
    const { router, calls } = createWatched({ authorize, onError: (error) => errors.push(error) })
    const { status, headers, text } = await get(router, url)
    expect([status, Object.fromEntries(headers), text]).toEqual(await unauthenticated())
    expect(asked.map(({ route, principal }) => [route, principal])).toEqual([[path, { name: 'admin' }]])
    expect([calls, errors]).toEqual([[], []])
  })

  it('receives the principal, route and filters, and its changes to them have no effect', async () => {
    const records: unknown[] = []
    const asked: unknown[] = []
    const router = createSubject({
      onAccess: ({ principal, route, params, filters, status }) =>
        records.push({ principal, route, params, filters, status }),
      authorize({ params, filters, request, ...rest }) {
        asked.push({ ...rest, params: { ...params }, filters: { ...filters }, url: request.url })
        Object.assign(params, { connection_id: 'conn-5' })
        Object.assign(filters, { user_id: 'bob' })
        return true
      },
    })
    const [one, list] = [
      await get(router, '/connections/conn-1'),
      await get(router, '/connections?user_id=alice&client_type=browser&limit=2'),
    ]
    expect(one.body.connection_id).toBe('conn-1')
    expect(list.body.items.map(({ user_id }: { user_id: string }) => user_id)).toEqual(['alice', 'alice'])
    const filters = { user_id: 'alice', client_type: 'browser' }
    expect(asked).toEqual([
      {
        principal: { name: 'admin' },
        route: '/connections/{connection_id}',
        params: { connection_id: 'conn-1' },
        filters: {},
        url: `${ORIGIN}${PREFIX}/connections/conn-1`,
      },
      {
        principal: { name: 'admin' },
        route: '/connections',
        params: {},
        filters,
        url: `${ORIGIN}${PREFIX}/connections?user_id=alice&client_type=browser&limit=2`,
      },
    ])
    expect(records).toMatchObject([
      { route: '/connections/{connection_id}', params: { connection_id: 'conn-1' }, status: 200 },
      { route: '/connections', params: {}, filters, status: 200 },
    ])
  })

  it('is not called for requests that are rejected earlier, nor for unauthenticated callers', async () => {
    const authorize = () => expect.unreachable()
    const router = createSubject({ authorize, inspectors: {} })
    expectProblem(await get(router, '/nope'), 404, 'route_not_found')
    expectProblem(await get(router, '/contexts', { method: 'POST' }), 405, 'method_not_allowed')
    expectProblem(await get(router, '/contexts'), 501, 'inspector_absent')
    const whole = createSubject({ authorize })
    const headers = { 'x-expected-deployment-id': 'x' }
    expectProblem(await get(whole, '/contexts', { headers }), 412, 'deployment_mismatch')
    expectProblem(await get(whole, '/contexts?nope=1'), 422, 'invalid_query')
    expectProblem(await get(whole, '/contexts/%01'), 422, 'invalid_path')
    expectProblem(await get(whole, '/contexts', { headers: { 'x-admin-key': 'wrong' } }), 403, 'forbidden')
  })

  const wrong: [what: string, authorize: () => unknown][] = [
    ['throws', () => raise(new Error(SECRET))],
    ['rejects', () => Promise.reject(new Error(SECRET))],
    ['never settles', never],
    ['answers nothing', () => undefined],
    ['answers null', async () => null],
    ['answers 1', () => 1],
    ['answers a text', () => 'true'],
    ['answers an object', () => ({})],
    ['answers users that are no list', () => ({ user_ids: 'alice' })],
    ['answers users that are no ids', () => ({ user_ids: ['alice', undefined] })],
    ['answers users that can be none', () => ({ user_ids: ['\ud800'] })],
    ['answers too many users', () => ({ user_ids: Array.from({ length: 501 }, (_, i) => `u${i}`) })],
  ]
  it.each(wrong)('counts as a refusal and is reported when it %s', async (_what, authorize) => {
    const errors: unknown[] = []
    const records: unknown[] = []
    const { router, calls } = createWatched({
      authorize: authorize as Authorize,
      // Of one that answers, what comes before it must have its time on a busy machine.
      deadlineMs: authorize === never ? 500 : 10_000,
      onError: (error, place) => errors.push([error, place]),
      onAccess: ({ principal, status, filters }) => records.push([principal, status, filters]),
    })
    const { status, headers, text } = await get(router, '/connections?user_id=alice')
    expect([status, Object.fromEntries(headers), text]).toEqual(await unauthenticated())
    expect(errors).toEqual([[expect.any(Error), { route: '/connections' }]])
    expect(records).toEqual([['admin', 403, { user_id: 'alice' }]])
    expect(calls).toEqual([])
  })

  it('receives the whole principal, of which the audit trail receives the name', async () => {
    const names: unknown[] = []
    const router = createDiagnosticsRouter({
      inspectors: createFakeInspectors(createWorld()),
      auth: { authenticate: () => ({ name: 'olga', teams: ['alice'] }) },
      authorize: ({ principal }) => ({ user_ids: principal.teams }),
      onAccess: ({ principal }) => names.push(principal),
    })
    const response = await router(new Request(`${ORIGIN}/users`))
    const { items } = (await response.json()) as { items: { user_id: string }[] }
    expect(items.map(({ user_id }) => user_id)).toEqual(['alice'])
    expect(names).toEqual(['olga'])
  })

  it('must be a function', () => {
    expect(() => createDiagnosticsRouter({ inspectors: {}, auth: noopAuth(), authorize: true as never })).toThrow(
      TypeError,
    )
  })
})

describe('a caller limited to some users', () => {
  const scoped = (path: string, user_ids = ['alice']) => get(createSubject({ authorize: () => ({ user_ids }) }), path)

  it('sees in the index which routes are available', async () => {
    const { body } = await scoped('/')
    const closed = body.routes.filter((route: { available: boolean }) => !route.available)
    expect(closed.map(({ path }: { path: string }) => path)).toEqual([
      '/sources',
      '/findings',
      '/findings/summary',
      '/connections/churn',
      '/rpc/summary',
      '/deduplicator/summary',
      '/delivery/summary',
      '/delivery/nodes',
      '/delivery/tenants',
      '/delivery/churn',
    ])
    const capabilities = await scoped('/capabilities')
    const whole = (await get(createSubject(), '/capabilities')).body
    const operations = whole.extensions.operations.filter((name: string) => !['findings', 'sources'].includes(name))
    expect(capabilities.body).toEqual({ ...whole, extensions: { ...whole.extensions, operations } })
  })

  it('gets 501 for an absent inspector, and 403 for totals over all users', async () => {
    const authorize = () => ({ user_ids: ['alice'] })
    const router = createSubject({ authorize, inspectors: createFakeInspectors({ delivery: {} }) })
    expectProblem(await get(router, '/deduplicator/summary'), 501, 'inspector_absent')
    const problem = expectProblem(await get(router, '/delivery/summary'), 403, 'not_narrowable')
    expect(problem.title).toContain('all users')
  })

  it('gets the same 404 for what is not in sight and for what is not there', async () => {
    for (const path of [
      '/connections/conn-5',
      '/connections/conn-6/history',
      '/contexts/ctx-7',
      '/rpc/pending/call-4',
    ]) {
      const hidden = await scoped(path)
      const absent = await scoped(path.replace(/-\d/, '-99'))
      expectProblem(hidden, 404, 'not_found')
      expect(hidden.text).toBe(absent.text)
    }
  })
})

function raise(error: unknown): never {
  throw error
}
