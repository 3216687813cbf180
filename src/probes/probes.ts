/** Liveness and readiness of a process, without a key and without anything about its deployment in the answer. */
import { raceAbort } from '../internal/async/abort.js'
import { limitTime } from '../internal/async/deadline.js'
import { guardErrorHook } from '../internal/async/hook.js'
import type { DeliveryNodeInput } from '../internal/contract/delivery.js'
import { FAMILIES, familyEntries, INSPECTORS, PROBES } from '../internal/contract/families.js'
import { defineOptions, hook, type Input, readOptions, text, timer } from '../internal/contract/options.js'
import type { InspectionContext, Page, Pingable } from '../internal/contract/page.js'
import { createEngine, type Mountable, type Route, toHandler } from '../internal/http/engine.js'
import { ProblemError } from '../internal/http/problem.js'
import type { HttpReply } from '../internal/http/respond.js'

/** Where an error came from that the answer does not tell. */
export interface ProbesErrorPlace {
  /** Capability of the inspector that failed. */
  source: string
}

/** Options of `createProbes`. */
export const ProbesOptions = defineOptions({
  /** Inspectors whose sources must answer; a composition returns them. */
  inspectors: INSPECTORS,
  /** Id of this process's node: its loop must run, and it must not be silent. @default none is looked at */
  nodeId: text().optional(),
  /** Public path above the two probes, as this process sees it. @default '/' */
  prefix: text().default('/'),
  /** How long the sources may take in ms. Keep it below the timeout of the orchestrator. @default 800 */
  deadlineMs: timer(800),
  /** How long a result is used again in ms, because any caller may ask. @default 1000 */
  keepMs: timer(1_000),
  /**
   * Called with errors of sources, which the answer does not tell. Errors that it throws change nothing. `null` disables it.
   * @default console.error, with the place and the stack
   */
  onError: hook<(error: unknown, place: ProbesErrorPlace) => void>(),
})
export interface ProbesOptions extends Input<typeof ProbesOptions> {}

/** A fetch-style handler that never rejects, with the properties that a mount needs. */
export interface Probes extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether this handler serves the path; adapters pass on others. */
  owns(pathname: string): boolean
  /** Makes `/readyz` fail from now on, so that no new clients are sent here. Call it before a shutdown. */
  drain(): void
}

/** What must be well for a process to be ready. */
type Checks = Record<'sources' | 'loop' | 'serving', boolean>

/** Nodes that are looked through for this one. */
const NODES_MAX = 1_000
const NODES_A_PAGE = 100

function healthReply(isWell: boolean, checks: Partial<Checks> = {}): HttpReply {
  const status = (well: boolean) => (well ? 'pass' : 'fail')
  const parts = Object.entries(checks).map(([name, well]) => [name, [{ status: status(well) }]])
  return {
    status: isWell ? 200 : 503,
    headers: {
      'content-type': 'application/health+json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
    body: JSON.stringify({ status: status(isWell), ...(parts.length > 0 && { checks: Object.fromEntries(parts) }) }),
  }
}

/**
 * Creates `/livez` and `/readyz`, which need no key and name no id and no count. `/livez` is 200 as long as the process
 * answers. `/readyz` is 200 if every source answers in time, the loop of `nodeId` runs, and `drain` was not called; else
 * 503, and `checks` says which of the three fails. Requests at the same moment share one look at the sources.
 *
 * @throws TypeError or RangeError that names an invalid option; no inspector is called at construction.
 * @example
 * const probes = createProbes({ ...redisComposition({ client, deploymentId }), nodeId })
 * process.once('SIGTERM', () => probes.drain())
 */
export function createProbes(options: ProbesOptions): Probes {
  const { inspectors, nodeId, prefix, deadlineMs, keepMs, onError } = readOptions(ProbesOptions, options)
  if (nodeId !== undefined && !inspectors.delivery)
    throw new TypeError('Invalid option "nodeId": without inspectors.delivery the loop of a node is not known')
  const tell = guardErrorHook(onError)
  let isDraining = false

  /** One question for each source, and one for all that share their `ping`, such as those of one store. */
  function questions() {
    const asked = new Map<unknown, { source: string; ask: (ctx: InspectionContext) => unknown }>()
    for (const [name] of familyEntries()) {
      const inspector = inspectors[name] as (Pingable & object) | undefined
      if (!inspector) continue
      const { ping } = inspector
      const probe = PROBES[name] as (inspector: unknown, ctx: InspectionContext) => unknown
      const ask = (ctx: InspectionContext) => (ping ? ping.call(inspector, ctx) : probe(inspector, ctx))
      const key = ping ?? name
      if (!asked.has(key)) asked.set(key, { source: FAMILIES[name].capability, ask })
    }
    return [...asked.values()]
  }

  async function isLoopRunning(ctx: InspectionContext): Promise<boolean> {
    const { delivery } = inspectors
    let cursor: string | null = null
    for (let looked = 0; delivery && looked < NODES_MAX; looked += NODES_A_PAGE) {
      const page: Page<DeliveryNodeInput> = await delivery.listNodes({ limit: NODES_A_PAGE, cursor }, ctx)
      const own = page.items.find(({ node_id }) => node_id === nodeId)
      if (own) return own.stale !== true && own.reconciliation_loop_alive !== false
      cursor = page.next_cursor
      if (cursor === null) return false
    }
    return false
  }

  async function look(): Promise<Omit<Checks, 'serving'>> {
    const { signal, clear } = limitTime({ ms: deadlineMs, late: () => new ProblemError('inspector_timeout') })
    const ctx: InspectionContext = { signal, limits: { examined: NODES_MAX } }
    const isWell = async (source: string, ask: () => unknown) => {
      try {
        return (await raceAbort((async () => ask())(), signal)) !== false
      } catch (error) {
        tell(error, { source })
        return false
      }
    }
    const sources = questions().map(({ source, ask }) => isWell(source, async () => void (await ask(ctx))))
    const loop = nodeId === undefined ? true : isWell('delivery', () => isLoopRunning(ctx))
    const [answered, isRunning] = await Promise.all([Promise.all(sources), loop])
    clear()
    return { sources: answered.every(Boolean), loop: isRunning }
  }

  let known: Promise<Omit<Checks, 'serving'>> | undefined
  let knownUntil = 0
  function readiness() {
    if (!known || performance.now() >= knownUntil) {
      knownUntil = Number.POSITIVE_INFINITY
      known = look().finally(() => {
        knownUntil = performance.now() + keepMs
      })
    }
    return known
  }

  async function ready(): Promise<HttpReply> {
    if (isDraining) return healthReply(false, { serving: false })
    const { sources, loop } = await readiness()
    return healthReply(sources && loop, { sources, ...(nodeId === undefined ? {} : { loop }), serving: true })
  }

  const engine = createEngine<Route<() => HttpReply | Promise<HttpReply>>, { request: Request }, null, HttpReply>({
    prefix,
    routes: [
      { path: '/livez', methods: { GET: () => healthReply(true) } },
      { path: '/readyz', methods: { GET: ready } },
    ],
    authenticate: () => null,
    checkParam: () => undefined,
    answer: (handle) => handle(),
    refuse: (error) => (error instanceof ProblemError ? error : new ProblemError('internal')),
  })
  const handler = toHandler((request) => engine.reply({ request }))
  return Object.assign(handler, {
    prefix: engine.prefix,
    // Not every path below: its prefix may be the root.
    owns: (pathname: string) => engine.owns(pathname) && /\/(?:livez|readyz)$/.test(pathname),
    drain() {
      isDraining = true
    },
  })
}
