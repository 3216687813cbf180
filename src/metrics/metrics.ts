/** The handler of metrics: who may scrape, one reading for all who scrape at once, and the format that each asked for. */
import * as z from 'zod'
import { Deadline } from '../async/deadline.js'
import { guardErrorHook } from '../async/hook.js'
import { toTimestamp } from '../contract/ids.js'
import { type AdminPrincipal, type RequestSource, withBearerAsKey } from '../http/auth.js'
import { createEngine, type Mountable, type Route, toHandler } from '../http/engine.js'
import { remoteAddressOf } from '../http/loopback.js'
import { ProblemError } from '../http/problem.js'
import { parseQuery } from '../http/query.js'
import type { HttpReply } from '../http/respond.js'
import { VERSION } from '../version.js'
import type { MetricDescription, MetricFamily, MetricSample } from './family.js'
import { type MetricsOptions, resolveMetricsOptions } from './options.js'
import { beginReading, type Reading } from './reading.js'
import { METRICS, OWN } from './table.js'
import { formatFor, textOf } from './text.js'

/** The families as they were read at one time. */
export interface CollectedMetrics {
  /** Every family, those without a sample too, in the order of `families`. */
  families: MetricFamily[]
  /** When this was read, in ISO 8601. */
  observed_at: string
}

/** The metrics: a fetch-style handler that never rejects, what a mount needs to know of it, and the same as data. */
export interface Metrics extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Every family that there can be. */
  readonly families: readonly MetricDescription[]
  /** Whether a request with this path is to be answered here; an adapter passes on what is not. */
  owns(pathname: string): boolean
  /** The same families as data, for a meter of the host's own. Asks nobody for a key; within the same bound; never rejects. */
  collect(): Promise<CollectedMetrics>
}

const NO_QUERY = z.object({})

/** What is kept of one request. */
interface Visit extends RequestSource {
  readonly request: Request
  readonly deadline: Deadline
}

/**
 * Builds the handler that answers a scrape, in OpenMetrics 1.0 or the text format of Prometheus, as `Accept` has it.
 *
 * @throws TypeError or RangeError that names an unusable option; nothing is asked at construction.
 * @example
 * const metrics = createMetrics({ ...memoryComposition({ connections }), auth: apiKeyAuth(key) })
 * await metrics(new Request('http://localhost/metrics', { headers: { authorization: `Bearer ${key}` } }))
 */
export function createMetrics(options: MetricsOptions): Metrics {
  const { inspectors, auth, deployment, prefix, scopes, deadlineMs, examined, now } = resolveMetricsOptions(options)
  const tell = guardErrorHook(options.onError)
  const { id, mode } = deployment
  const identity = { ...(id === null ? {} : { deployment_id: id }), mode, version: VERSION }

  let current: Reading | undefined

  /** What is under way, or a reading that begins now. */
  function share(): Reading {
    if (current) return current
    const onError = (error: unknown, source: string) => tell(error, { source })
    const reading = beginReading({ inspectors, scopes, examined, ms: deadlineMs, now, onError })
    current = reading
    void reading.done.then(() => {
      current = undefined
    })
    return reading
  }

  /** What is known up to now. */
  function familiesOf({ sources, samples }: Reading): MetricFamily[] {
    const bySource = (value: (source: (typeof sources)[number]) => number | boolean | null) =>
      sources.flatMap((state): MetricSample[] => {
        const known = value(state)
        return known === null ? [] : [{ labels: { source: state.source }, value: Number(known) }]
      })
    const own = new Map<string, readonly MetricSample[]>([
      [OWN.deployment.name, [{ labels: identity, value: 1 }]],
      [OWN.up.name, bySource(({ up }) => up)],
      [OWN.complete.name, bySource(({ complete }) => complete)],
      [OWN.duration.name, bySource(({ seconds }) => seconds)],
    ])
    return METRICS.map((family) => ({ ...family, samples: own.get(family.name) ?? samples.get(family.name) ?? [] }))
  }

  async function authenticate(visit: Visit): Promise<AdminPrincipal> {
    try {
      for (const request of [visit.request, withBearerAsKey(visit.request)]) {
        const principal = request && (await visit.deadline.race(auth.authenticate(request, visit)))
        if (typeof principal?.name === 'string') return principal
      }
    } catch (error) {
      if (error instanceof ProblemError) throw error
      tell(error, {})
    }
    throw new ProblemError('forbidden')
  }

  async function scrape(request: Request, search: string, deadline: Deadline): Promise<HttpReply> {
    parseQuery(NO_QUERY, search)
    const reading = share()
    // Who has waited for as long as it may is answered with what there is by then.
    await Promise.resolve(deadline.race(reading.done)).catch(() => {})
    const format = formatFor(request.headers.get('accept'))
    const headers = {
      'content-type': format.type,
      'cache-control': 'no-store',
      vary: 'accept',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    }
    return { status: 200, headers, body: textOf(familiesOf(reading), format) }
  }

  const engine = createEngine<Route<typeof scrape>, Visit, AdminPrincipal, HttpReply>({
    prefix,
    routes: [{ path: '/', methods: { GET: scrape } }],
    authenticate,
    checkParam: () => undefined,
    answer: (handle, { search }, { request, deadline }) => handle(request, search, deadline),
    refuse(error) {
      if (error instanceof ProblemError) return error
      tell(error, {})
      return new ProblemError('internal')
    },
  })

  async function reply(request: Request, info: unknown): Promise<HttpReply> {
    const deadline = new Deadline(deadlineMs, request)
    const given = await engine.reply({ request, deadline, remoteAddress: remoteAddressOf(info, request) })
    deadline.clear()
    return given
  }

  const handler = toHandler(reply, (error) => tell(error, {}))
  return Object.assign(handler, {
    prefix: engine.prefix,
    owns: engine.owns,
    families: METRICS,
    async collect() {
      const reading = share()
      await reading.done
      return { families: familiesOf(reading), observed_at: toTimestamp(now()) }
    },
  })
}
