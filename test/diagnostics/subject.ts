/** The router under test, over instrumented inspectors, and the requests that the tests of the router send. */
import { expect, vi } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { DiagnosticsRouterOptions } from '../../src/internal/diagnostics/options.js'
import type { DiagnosticsRoute } from '../../src/internal/diagnostics/route.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { apiKeyAuth } from '../../src/internal/http/auth.js'
import { Problem } from '../../src/internal/http/problem.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createWorld, NOW } from './world.js'

export const KEY = 'correct-horse-battery'
export const PREFIX = '/ops/diagnostics'
export const SECRET = 'planted-s3cr3t'
export const ORIGIN = 'http://localhost'

/** What hangs. */
export const never = () => new Promise<never>(() => {})

/** One call of an inspector: its name as `family.method`, its arguments, and what it would have answered. */
export interface Call {
  name: string
  args: unknown[]
  proceed(): unknown
}

/** `inspectors` with every call handed to `answer`, which may proceed or answer in its place. */
function instrument(inspectors: Inspectors, answer: (call: Call) => unknown): Inspectors {
  return Object.fromEntries(
    Object.entries(inspectors).map(([family, inspector]) => [
      family,
      Object.fromEntries(
        Object.entries(inspector as Record<string, (...args: unknown[]) => unknown>).map(([method, original]) => [
          method,
          (...args: unknown[]) => answer({ name: `${family}.${method}`, args, proceed: () => original(...args) }),
        ]),
      ),
    ]),
  )
}

export type RouterOptions = Partial<DiagnosticsRouterOptions>

/** A router over the world with the test's key and prefix, and more time than a busy machine needs. */
export function createSubject(options: RouterOptions = {}) {
  return createDiagnosticsRouter({
    inspectors: createFakeInspectors(createWorld()),
    auth: apiKeyAuth(KEY),
    prefix: PREFIX,
    now: () => NOW,
    deadlineMs: 60_000,
    onError: null,
    ...options,
  })
}

/** A router over the world that counts what its inspectors are asked. */
export function createWatched(options: RouterOptions = {}, answer: (call: Call) => unknown = (call) => call.proceed()) {
  const calls: Call[] = []
  const inspectors = instrument(options.inspectors ?? createFakeInspectors(createWorld()), (call) => {
    calls.push(call)
    return answer(call)
  })
  return { router: createSubject({ ...options, inspectors }), calls }
}

export type Router = ReturnType<typeof createSubject>

/** Sends a request below the prefix with the key. */
export function send(router: Router, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  if (!headers.has('x-admin-key')) headers.set('x-admin-key', KEY)
  return router(new Request(`${ORIGIN}${router.prefix}${path}`, { ...init, headers }))
}

export interface Answered<Body> {
  status: number
  headers: Headers
  text: string
  body: Body
}

// biome-ignore lint/suspicious/noExplicitAny: a body is read by the assertions, field by field
type Loose = any

/** Sends a request and reads its JSON. */
export async function get<Body = Loose>(router: Router, path: string, init?: RequestInit): Promise<Answered<Body>> {
  const response = await send(router, path, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) }
}

/**
 * Sends a request to a router whose inspectors never answer and lets its deadline pass. The clock is a fake one: on a
 * slow machine a short real deadline could pass before any inspector is called.
 */
export async function getInVain(url: string, asked: (call: Call) => void = () => {}): Promise<Answered<Loose>> {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  try {
    let reach = () => {}
    const reached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const { router } = createWatched({ deadlineMs: 20 }, (call) => {
      asked(call)
      reach()
      return never()
    })
    const answer = get(router, url)
    await Promise.race([reached, answer])
    await vi.advanceTimersByTimeAsync(21)
    return await answer
  } finally {
    vi.useRealTimers()
  }
}

/** Holds an answer to the form of a problem: status, code, media type, size. Gives its body. */
export function expectProblem(answer: Answered<unknown>, status: number, code: string): Problem {
  expect([answer.status, (answer.body as Problem).code]).toEqual([status, code])
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  const problem = Problem.strict().parse(answer.body)
  expect(problem).toMatchObject({ status, type: `urn:relayscope:problem:${code.replaceAll('_', '-')}` })
  expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(2_048)
  return problem
}

const RECORDS = Object.values(createWorld()).flatMap((given: object) => (Array.isArray(given) ? given : []))

/** The value of a path parameter: that of the first record of the world that has one. */
const paramOf = (name: string): string => RECORDS.find((record) => typeof record[name] === 'string')[name]

/** The required queries of the routes that have some. */
const QUERIES: Record<string, string> = {
  '/history/messages': 'stream=users%2Falice%2Flog',
  '/rpc/instances/{instance_id}': 'user_id=alice&client_id=desk',
  '/search': 'q=alice',
  '/workers': 'user_id=alice',
  '/workers/count': 'user_id=alice',
  '/workers/available': 'user_id=alice',
  '/workers/tasks/{task_id}': 'user_id=alice',
  '/delivery/status': 'user_id=alice&client_id=desk&command_id=cmd-1',
  '/delivery/why': 'user_id=alice&client_id=desk&command_id=cmd-1',
}

export interface RouteCase {
  path: string
  route: DiagnosticsRoute
  /** A target below the prefix, without its query. */
  target: string
  /** The query that it needs, without `?`; empty where it needs none. */
  query: string
  /** `target?query`. */
  url: string
}

/** Every route with a request for it that the world can answer. */
export const CASES: RouteCase[] = ROUTES.map((route) => {
  const target = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => paramOf(name))
  const query = QUERIES[route.path] ?? ''
  return { path: route.path, route, target, query, url: query ? `${target}?${query}` : target }
})

/** The routes that ask an inspector. */
export const ASKING = CASES.filter(({ route }) => route.requires.length > 0)

/** `url` with one more query parameter. */
export const withQuery = (url: string, query: string) => `${url}${url.includes('?') ? '&' : '?'}${query}`
