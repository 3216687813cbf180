/** Asks a diagnostics router on behalf of captures and recorders: its answers, and what it says of itself. */
import { raceAbort } from '../internal/async/abort.js'
import { limitTime } from '../internal/async/deadline.js'
import type { DeploymentMode } from '../internal/contract/delivery.js'
import { toTimestamp } from '../internal/contract/ids.js'
import type { JsonObject } from '../internal/contract/json.js'
import { type ProblemCode, problemText } from '../internal/http/problem.js'
import { ANSWER_BYTES, isObject, isText, readObject } from '../internal/relay-client/wire.js'
import { VERSION } from '../internal/version.js'
import {
  boundedMissing,
  CaptureFailed,
  INCIDENT_FORMAT,
  INCIDENT_VERSION,
  type Incident,
  type Missing,
  type MissingReason,
  missingOf,
} from './format.js'
import { KNOWN_ROUTES, PARTS, type Part } from './parts.js'

/** What is captured: a diagnostics router of this process, or one reached through `fetch`. */
export interface CapturedRouter {
  /** Where its routes begin. For a router of another process the whole URL. */
  readonly prefix: string
  /** Sends a request to the router. */
  fetch(request: Request): Promise<Response>
}

/** Longer than a router takes to give up. */
const REQUEST_MS = 10_000
/** Why a request has no answer. */
export interface Refused {
  /** HTTP status; 304 where the answer is still the one of the given tag, 0 where there was no response. */
  readonly status: number
  /** Whether the caller may see some users only. */
  readonly isNarrowed: boolean
  readonly reason: MissingReason
  readonly detail: string
}
type Reply =
  | { readonly value: Record<string, unknown>; readonly etag: string | null; readonly refused?: never }
  | { readonly refused: Refused; readonly value?: never }

/** The answer is still the one of the given tag. */
export const UNCHANGED: Refused = { status: 304, isNarrowed: false, reason: 'unreachable', detail: '' }

/** The refusal that a response of that status and body stands for. */
export function refusedOf(status: number, body: object | null): Refused {
  const reason = status === 403 ? 'forbidden' : status === 501 ? 'not_deployed' : 'unreachable'
  const isNarrowed = body !== null && 'code' in body && body.code === ('not_narrowable' satisfies ProblemCode)
  return { status, isNarrowed, reason, detail: problemText(status, body) }
}

/** Fetches a path of the router; with `tag`, only if its answer has another entity tag. Rejects only if cancelled. */
export type FetchReply = (path: string, tag?: string | null) => Promise<Reply>

/** Returns a function that fetches paths of `router`, until `outer` aborts. `onBytes` receives the size of each chunk. */
export function fetcherOf(
  router: CapturedRouter,
  headers: Readonly<Record<string, string>>,
  outer: AbortSignal | undefined,
  onBytes?: (bytes: number) => void,
): FetchReply {
  const base = /^https?:/.test(router.prefix) ? router.prefix : `http://localhost${router.prefix}`
  return async (path, tag = null) => {
    outer?.throwIfAborted()
    const sent = tag === null ? headers : { ...headers, 'if-none-match': tag }
    const { signal, clear } = limitTime({ ms: REQUEST_MS, late: () => new Error('late'), signal: outer })
    const unreachable = (detail: string): Reply => ({
      refused: { status: 0, isNarrowed: false, reason: 'unreachable', detail },
    })
    try {
      const response = await raceAbort(
        router.fetch(new Request(base + path, { headers: sent, redirect: 'manual', signal })),
        signal,
      )
      const value = await raceAbort(readObject(response, ANSWER_BYTES, onBytes), signal)
      if (response.status !== 200) return { refused: refusedOf(response.status, value ?? null) }
      const etag = response.headers.get('etag')
      return value ? { value, etag } : unreachable(`the answer is not a JSON object of at most ${ANSWER_BYTES} bytes`)
    } catch {
      outer?.throwIfAborted()
      return unreachable(signal.aborted ? `no answer within ${REQUEST_MS / 1_000} s` : 'no answer')
    } finally {
      clear()
    }
  }
}

/** The instant of the node's clock; `null` where it does not tell. */
export async function nodeTime(fetchReply: FetchReply): Promise<string | null> {
  const { value } = await fetchReply('/sources')
  return isText(value?.observed_at) && !Number.isNaN(Date.parse(value.observed_at)) ? value.observed_at : null
}

/** What the router says of itself. @throws CaptureFailed */
export async function describe(fetchReply: FetchReply) {
  const { value: index, refused } = await fetchReply('/')
  if (refused) throw new CaptureFailed(`nothing was captured: ${refused.detail}`)
  if (index?.service !== 'relayscope' || !Array.isArray(index.routes))
    throw new CaptureFailed('nothing was captured: this is not a diagnostics router of relayscope')
  const { value: capabilities } = await fetchReply('/capabilities')
  const { extensions: given, ...booleans } = capabilities ?? {}
  const { operations, deployment_id: _, mode: __, incident: ___, ...extensions } = isObject(given) ? given : {}
  const offered = Object.entries(booleans).flatMap(([name, is]) => (is === true ? [name] : []))
  const listed = Array.isArray(operations) ? operations.filter(isText) : []
  const routes = index.routes.flatMap((route: unknown) =>
    isObject(route) && isText(route.path) ? [{ path: route.path, available: route.available === true }] : [],
  )
  return {
    index,
    routes,
    capabilities: [...offered, ...listed].filter((name) => /^[a-z][a-z0-9_]{0,63}$/.test(name)).slice(0, 1_000),
    extensions: extensions as JsonObject,
  }
}

type Described = Awaited<ReturnType<typeof describe>>

/** The parts that the router can answer. */
export function offeredParts({ capabilities, routes }: Described): Part[] {
  const offered = new Set(capabilities)
  const known = new Set(routes.map(({ path }) => path))
  return PARTS.filter(({ capability, path }) => offered.has(capability) && known.has(path))
}

/** The parts that the router has no source for, and its routes that this version cannot read. */
export function absentParts({ routes }: Described, present: ReadonlySet<Part>): Missing[] {
  const absent = PARTS.filter((part) => part.route === part.path && !present.has(part)).map(({ route }) =>
    missingOf(route, 'not_deployed', 'the deployment has no such source'),
  )
  const foreign = routes
    .filter(({ path, available }) => available && !KNOWN_ROUTES.has(path))
    .map(({ path }) => missingOf(path.slice(0, 500), 'unknown_route', 'this version of relayscope cannot read it'))
  return [...absent, ...foreign]
}

/** An incident of all users without rows: what the router says of itself. */
export function headerOf(
  { index, capabilities, extensions }: Described,
  clocks: Incident['clocks'],
): Omit<Incident, 'missing' | 'parts'> {
  return {
    format: INCIDENT_FORMAT,
    version: INCIDENT_VERSION,
    writer: { name: 'relayscope', version: VERSION },
    router_version: isText(index.version) ? index.version.slice(0, 100) : null,
    deployment: {
      id: isText(index.deployment_id) ? index.deployment_id : null,
      mode: (index.mode === 'shared_store' ? 'shared_store' : 'direct') satisfies DeploymentMode,
    },
    clocks,
    user: null,
    since: null,
    limited: false,
    redaction: null,
    consistent: true,
    capabilities,
    extensions,
    recording: null,
  }
}

/** What a recording of a router says of it, without rows. `node` is the time of its clock, if it tells. */
export function recordedHeader(described: Described, node: string | null, observer: number): Omit<Incident, 'parts'> {
  const parts = offeredParts(described)
  const by = (at: string) => ({ from: at, to: at })
  return {
    ...headerOf(described, { node: node === null ? null : by(node), observer: by(toTimestamp(observer)) }),
    missing: boundedMissing([
      ...absentParts(described, new Set(parts)),
      ...parts
        .filter(({ keys }) => keys.length > 0)
        .map(({ route }) => missingOf(route, 'not_followed', 'a recording has only lists and sums')),
    ]),
  }
}
