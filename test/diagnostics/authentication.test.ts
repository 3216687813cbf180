import { describe, expect, it } from 'vitest'
import type { AdminAuth } from '../../src/internal/http/auth.js'
import { CASES, createSubject, createWatched, KEY, ORIGIN, PREFIX, type Router, SECRET } from './subject.js'

const ask = (router: Router, path: string, init?: RequestInit) => router(new Request(`${ORIGIN}${PREFIX}${path}`, init))

const bytesOf = async (response: Response) =>
  JSON.stringify([response.status, Object.fromEntries(response.headers), await response.text()])

const refused = async () => bytesOf(await ask(createSubject(), '/capabilities'))

const key = (value: string): RequestInit => ({ headers: { 'x-admin-key': value } })
const keys = (...values: string[]): RequestInit => ({ headers: values.map((value) => ['x-admin-key', value]) as never })

describe('authentication', () => {
  it.each<[what: string, init: RequestInit, query?: string]>([
    ['wrong by its last character', key(`${KEY.slice(0, -1)}X`)],
    ['wrong by its first character', key(`X${KEY.slice(1)}`)],
    ['one character shorter', key(KEY.slice(0, -1))],
    ['one character longer', key(`${KEY}y`)],
    ['doubled', key(KEY + KEY)],
    ['in other case', key(KEY.toUpperCase())],
    ['empty', key('')],
    ['64 KiB long', key('k'.repeat(65_536))],
    ['64 KiB long and beginning right', key(KEY + 'k'.repeat(65_536))],
    ['right and then wrong', keys(KEY, 'wrong')],
    ['wrong and then right', keys('wrong', KEY)],
    ['right twice', keys(KEY, KEY)],
    ['a bearer token', { headers: { authorization: `Bearer ${KEY}` } }],
    ['a basic password', { headers: { authorization: `Basic ${btoa(`admin:${KEY}`)}` } }],
    ['a raw authorization', { headers: { authorization: KEY } }],
    ['a cookie', { headers: { cookie: `X-Admin-Key=${KEY}; x-admin-key=${KEY}` } }],
    ['under a similar name', { headers: { 'x-admin-keys': KEY, 'admin-key': KEY, x_admin_key: KEY } }],
    ['in the query', {}, `?x-admin-key=${KEY}&X-Admin-Key=${KEY}&key=${KEY}`],
  ])('refuses a key that is %s with the same 403', async (_what, init, query = '') => {
    const { router, calls } = createWatched()
    expect(await bytesOf(await ask(router, `/connections${query}`, init))).toBe(await refused())
    expect(calls).toEqual([])
  })

  it('answers the same 403 whatever is asked: route, method, deployment, query', async () => {
    const { router, calls } = createWatched()
    const expected = await refused()
    for (const path of [
      '/nope',
      '/',
      '',
      '/users/%ff/summary',
      '/users//',
      '/connections?limit=x',
      ...CASES.map((r) => r.url),
    ])
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE'])
        expect(await bytesOf(await ask(router, path, { method, headers: { 'x-expected-deployment-id': 'x' } }))).toBe(
          expected,
        )
    const head = await ask(router, '/users', { method: 'HEAD' })
    expect([head.status, Object.fromEntries(head.headers), await head.text()]).toEqual([
      ...JSON.parse(expected).slice(0, 2),
      '',
    ])
    expect(calls).toEqual([])
  })

  const wrong: [what: string, authenticate: () => unknown][] = [
    ['throws', () => raise(new Error(SECRET))],
    ['rejects', () => Promise.reject(new Error(SECRET))],
    ['throws nothing', () => raise(undefined)],
    ['answers undefined', () => undefined],
    ['answers null by promise', async () => null],
    ['answers true', () => true],
    ['answers a principal without a name', () => ({})],
    ['answers a principal whose name is no text', () => ({ name: 7 })],
    [
      'answers a principal whose name throws',
      () => ({
        get name() {
          return raise(new Error(SECRET))
        },
      }),
    ],
    ['never settles', () => new Promise(() => {})],
    // biome-ignore lint/suspicious/noThenProperty: a thenable that never settles is what is tested
    ['answers a thenable that never settles', () => ({ then() {} })],
    // biome-ignore lint/suspicious/noThenProperty: a thenable that throws is what is tested
    ['answers a thenable that throws', () => ({ then: () => raise(new Error(SECRET)) })],
  ]
  it.each(wrong)('answers 403 when the authenticator %s', async (_what, authenticate) => {
    const auth = { authenticate } as AdminAuth
    const { router, calls } = createWatched({ auth, deadlineMs: 20 })
    expect(await bytesOf(await ask(router, '/connections', key(KEY)))).toBe(await refused())
    expect(calls).toEqual([])
  })

  it('hands the authenticator the request and shows its principal to the hook alone', async () => {
    const principals: unknown[] = []
    const auth: AdminAuth = {
      authenticate: async (request) => ({ name: request.headers.get('x-operator') ?? 'missing' }),
    }
    const router = createSubject({ auth, onAccess: ({ principal }) => principals.push(principal) })
    const response = await ask(router, '/capabilities', { headers: { 'x-operator': 'olga' } })
    expect(principals).toEqual(['olga'])
    expect(await bytesOf(response)).not.toContain('olga')
  })
})

function raise(error: unknown): never {
  throw error
}
