/** A small host for the tests of the page: a router over given inspectors, the dashboard, and the means to break what lies between. */
import { onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { createDashboard, type DashboardOptions } from '../../src/dashboard/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import type { FakeWorld } from '../../src/testing/kits.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, KEY, PREFIX, type RouterOptions } from '../diagnostics/subject.js'
import { NOW } from '../diagnostics/world.js'

/** Answers instead of the router if it returns a response; the path is the one below the router. */
export type Instead = (path: string, request: Request) => Response | Promise<Response | undefined> | undefined

export interface ViewedHost {
  /** The page. */
  page: string
  /** What the router has been asked since the start, below its prefix. */
  asked: string[]
  /** From now on `instead` is asked first. */
  break(instead: Instead): void
  repair(): void
  /** What the router itself answers. */
  ask<Body>(path: string): Promise<Body>
  close(): Promise<void>
}

/** Starts it over `world`; it ends with the test, or with `close` where a test says so. */
export async function startViewed(
  world: FakeWorld,
  options: RouterOptions = {},
  shown: Partial<DashboardOptions> = {},
): Promise<ViewedHost> {
  const startedAt = performance.now()
  const router = createSubject({
    inspectors: createFakeInspectors(world),
    // The state is of one instant, and the clock continues from there.
    now: () => NOW + Math.round(performance.now() - startedAt),
    ...options,
  })
  const dashboard = createDashboard({ api: PREFIX, ...shown })
  const asked: string[] = []
  const none: Instead = () => undefined
  let instead = none
  const server = await startNodeServer(
    async (request) => {
      const { pathname, search } = new URL(request.url)
      if (!router.owns(pathname)) return dashboard(request)
      const path = pathname.slice(PREFIX.length) + search
      asked.push(path)
      return (await instead(path, request)) ?? router(request)
    },
    { port: 0, closeTimeoutMs: 1 },
  )
  return {
    page: `${server.url}/dashboard/`,
    asked,
    break(other) {
      instead = other
    },
    repair() {
      instead = none
    },
    async ask(path) {
      const response = await fetch(server.url + PREFIX + path, { headers: { 'x-admin-key': KEY } })
      if (!response.ok) throw new Error(`${path} answers ${response.status}`)
      return (await response.json()) as never
    },
    close: async () => void (await server.close()),
  }
}

/** As `startViewed`, for one test. */
export async function startViewedOnce(...given: Parameters<typeof startViewed>): Promise<ViewedHost> {
  const host = await startViewed(...given)
  onTestFinished(() => host.close())
  return host
}

/** `inspector`, which throws for as long as `isLost` says so. */
export const losable = <T extends object>(inspector: T, isLost: () => boolean): T =>
  new Proxy(inspector, {
    get: (target, name) => {
      const method = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => {
        if (isLost()) throw new Refusal('unavailable', 'planted-s3cr3t')
        return method.apply(target, args)
      }
    },
  })
