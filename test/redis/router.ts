/** The diagnostics router of a deployment in a real store, and requests to it. */
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { type RedisCompositionOptions, redisComposition } from '../../src/redis/composition/inspectors.js'

export type Router = ReturnType<typeof createDiagnosticsRouter>

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: a body is read by the assertions, field by field
  body: any
}

/**
 * Uses timeouts that no busy machine reaches, unless given: tests of timeouts set them.
 *
 * @param examined Scan limit of one source per request, if not the default.
 */
export function createObserver(options: RedisCompositionOptions, deadlineMs = 60_000, examined?: number): Router {
  return createDiagnosticsRouter({
    ...redisComposition({ commandTimeoutMs: 30_000, ...options }),
    auth: noopAuth(),
    deadlineMs,
    onError: null,
    ...(examined ? { limits: { examined } } : {}),
    ...(options.now ? { now: options.now } : {}),
  })
}

export async function get(router: Router, path: string): Promise<Answer> {
  const response = await router(new Request(`http://localhost${path}`))
  return { status: response.status, body: await response.json() }
}
