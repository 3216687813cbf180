/** The routers over an incident or a recording: one for the instant that was asked for, and one for each other instant. */
import { createDiagnosticsRouter, type DiagnosticsRouter } from '../diagnostics/router.js'
import { noopAuth } from '../http/auth.js'
import { type Mountable, toHandler } from '../http/engine.js'
import { type HttpReply, problemReply } from '../http/respond.js'
import type { Incident } from './format.js'
import { incidentComposition } from './inspectors.js'
import { IncidentRefused } from './read.js'

/** What is replayed. */
export interface ReplaySource {
  /**
   * The incident at `instant` (epoch ms); `null` for the instant that is shown first.
   *
   * @throws IncidentRefused where the file is damaged: requests for that instant then answer 503.
   */
  at(instant: number | null): Incident
}

/** A router that serves files. It requires no key: it is meant for the loopback interface or a browser tab. */
export interface Replay extends Mountable {
  /** Path below which it answers. */
  readonly prefix: string
  /** Whether a path is below the prefix. */
  owns(pathname: string): boolean
}

/** Instants whose routers are kept: more than a slider passes in one movement. */
const KEPT = 8
const INSTANT = /^\/at\/(\d{1,15})(?:\/|$)/

/**
 * Builds the router over `source`. Below `/at/{epoch ms}` it answers as of that instant.
 *
 * @throws what `source` throws for the instant that is shown first.
 * @example
 * const replay = createReplay({ at: () => incident })
 * const server = await startNodeServer(replay, { host: '127.0.0.1' })
 */
export function createReplay(source: ReplaySource): Replay {
  const routers = new Map<number | null, DiagnosticsRouter>()

  function routerAt(instant: number | null): DiagnosticsRouter {
    const known = routers.get(instant)
    if (known) return known
    const prefix = instant === null ? '' : `/at/${instant}`
    const router = createDiagnosticsRouter({
      ...incidentComposition(source.at(instant)),
      auth: noopAuth(),
      prefix,
      onError: null,
    })
    const [oldest] = [...routers.keys()].filter((kept) => kept !== null)
    if (routers.size > KEPT && oldest !== undefined) routers.delete(oldest)
    routers.set(instant, router)
    return router
  }

  const first = routerAt(null)
  const handler = toHandler<HttpReply>(async (request, info) => {
    const [, instant] = INSTANT.exec(new URL(request.url).pathname) ?? []
    try {
      return await (instant === undefined ? first : routerAt(Number(instant))).reply(request, info)
    } catch (error) {
      if (error instanceof IncidentRefused) return problemReply('inspector_unavailable')
      throw error
    }
  })
  return Object.assign(handler, { prefix: '', owns: () => true })
}
