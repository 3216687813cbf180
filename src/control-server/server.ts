/** Opens the control server: a loopback socket that any local program can speak to, bounded in every direction. */

import { createHash, timingSafeEqual } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import * as z from 'zod'
import { sendResponse } from '../adapters/node-answer.js'
import { listen } from '../adapters/node-listen.js'
import { readTarget } from '../adapters/node-request.js'
import { Deadline, DeadlinePassed } from '../internal/async/deadline.js'
import { guardErrorHook } from '../internal/async/hook.js'
import { checkId, checkSegmentId } from '../internal/contract/ids.js'
import {
  custom,
  defineOptions,
  hook,
  type Input,
  madeBy,
  readOptions,
  secret,
  timer,
  whole,
  withMethods,
} from '../internal/contract/options.js'
import type { SiteRegistry } from '../internal/contract/sites.js'
import { createEngine, toHandler } from '../internal/http/engine.js'
import {
  createHostGuard,
  isForwarded,
  isLoopbackAddress,
  isLoopbackHost,
  LOOPBACK_NAMES,
  valuesOf,
} from '../internal/http/guard.js'
import { PROBLEMS, type ProblemCode, ProblemError, toProblemError } from '../internal/http/problem.js'
import { parseQuery } from '../internal/http/query.js'
import { problemReply } from '../internal/http/respond.js'
import { splitTarget } from '../internal/http/target.js'
import { type CooperativeSitePublisher, RelayError } from '../publisher/publisher.js'
import { CONTROL_ROUTES, type ControlTargets } from './routes.js'

// Who may enter the control server at all: this machine's own programs that know the token, and no web page.

/** The checked parts of a request: the socket, and the raw headers. */
interface Caller {
  remoteAddress: string | undefined
  /** Names and values in turn; `headers` would hide that there are two. */
  rawHeaders: readonly string[]
}

// `same-site` is another port of this machine: another program's page.
const OWN_FETCH_SITES = new Set(['none', 'same-origin'])

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * Creates a check that runs before anything of a request is read. Returns the first failure, so that callers who cannot
 * use the token learn nothing about it: `not_loopback`, `forwarded_request`, `bad_host`, `bad_origin`,
 * `unauthenticated`; or `undefined` if allowed.
 */
export function createRequestGuard(token: string): (caller: Caller, port: number) => ProblemCode | undefined {
  const wanted = digest(token)
  const guard = createHostGuard([LOOPBACK_NAMES])

  // Constant work: missing, repeated, malformed and wrong tokens each cost one digest and one comparison. Digests have
  // equal length, so neither time nor errors reveal anything about the token.
  function isToken(authorization: readonly string[]): boolean {
    const given =
      authorization.length === 1 ? /^Bearer ([\x21-\x7e]+)$/i.exec(authorization[0] as string)?.[1] : undefined
    const isEqual = timingSafeEqual(digest(given ?? ''), wanted)
    return isEqual && given !== undefined
  }

  return ({ remoteAddress, rawHeaders }, port) => {
    if (!isLoopbackAddress(remoteAddress ?? '')) return 'not_loopback'
    if (isForwarded(rawHeaders.filter((_, i) => i % 2 === 0))) return 'forwarded_request'
    const given = (name: string) => valuesOf(rawHeaders, name)
    // No web page may call it, not even one from this address, so any Origin is refused.
    if (guard({ hosts: given('host'), origins: [], port }) !== undefined) return 'bad_host'
    if (given('origin').length > 0 || !given('sec-fetch-site').every((site) => OWN_FETCH_SITES.has(site)))
      return 'bad_origin'
    return isToken(given('authorization')) ? undefined : 'unauthenticated'
  }
}

// Converts errors behind the guard to problems for the caller.

// Relay errors caused by the caller are forwarded; all others concern this process and the relay.
const FORWARDED: ReadonlySet<string> = new Set<ProblemCode>(['owner_mismatch', 'generic_action_name', 'share_exceeded'])

function relayProblem({ code, status }: RelayError): ProblemCode {
  if (status === null) return 'relay_timeout'
  const isForwarded = FORWARDED.has(code) && PROBLEMS[code as ProblemCode][0] === status
  return isForwarded ? (code as ProblemCode) : 'relay_refused'
}

/** The problem that an error is. Its message goes nowhere. */
function toControlProblem(error: unknown): ProblemError {
  if (error instanceof DeadlinePassed) return new ProblemError('relay_timeout', {}, { cause: error })
  if (error instanceof RelayError) return new ProblemError(relayProblem(error), {}, { cause: error })
  return toProblemError(error, 'facility')
}

const TOKEN_LENGTH = 16
const NoQuery = z.object({})

/** Timeouts of the control server, in ms. */
export const ControlServerTimeouts = defineOptions({
  /** Timeout in ms from the connection to the last header. @default 5000 */
  headersMs: timer(5_000),
  /** Timeout in ms from the connection to the last byte of the body. @default 10000 */
  requestMs: timer(10_000),
  /** Timeout of the registry and the publisher in ms. @default 12000, more than the publisher's own timeout */
  answerMs: timer(12_000),
  /** Timeout in ms between two requests of a connection. @default 5000 */
  keepAliveMs: timer(5_000),
  /** Time in ms after which a connection that reads nothing of its response is closed. @default 5000 */
  stallMs: timer(5_000),
})
export interface ControlServerTimeouts extends Input<typeof ControlServerTimeouts> {}

const isToken = (value: unknown) =>
  typeof value === 'string' && value.length >= TOKEN_LENGTH && /^[\x21-\x7e]+$/.test(value)

const isText = (value: unknown, test: (text: string) => boolean) => typeof value === 'string' && test(value)

/** Options of `startCooperativeSiteControlServer`. */
export const CooperativeSiteControlServerOptions = defineOptions({
  /** Bearer token that callers must send: at least 16 printable ASCII characters without spaces. */
  token: secret(`at least ${TOKEN_LENGTH} printable ASCII characters without spaces`, isToken),
  /** Registry of the sites: a registry of this process, or `createRemoteSiteRegistry` for the relay's. */
  sites: withMethods<SiteRegistry>('get', 'put', 'delete'),
  /** The application's publisher, which publishes for the callers. */
  publisher: madeBy<CooperativeSitePublisher>('createCooperativeSitePublisher()', 'publish'),
  /** TCP port to listen on. @default 0, a free port */
  port: whole(65_535, 0).default(0),
  /** Address to listen on; must be loopback. @default '127.0.0.1' */
  host: custom<string>('a loopback address or localhost', (value) => isText(value, isLoopbackHost)).default(
    '127.0.0.1',
  ),
  /** Owner of the sites in a local registry; at a relay the owner is who the relay authenticates. @default 'local' */
  owner: custom<string>('a valid id', (value) => isText(value, (text) => checkId(text) === undefined)).default('local'),
  /** Timeouts of connections and requests. */
  timeouts: ControlServerTimeouts.prefault({}),
  /** Time in ms that pending requests get when the server closes. @default 2000 */
  closeTimeoutMs: timer(2_000),
  /**
   * Called with the error of the registry or the publisher behind each 5xx response, and its route. Callers never see it. Errors
   * that it throws change nothing. `null` disables it. @default console.error
   */
  onError: hook<(error: unknown, place: { route: string | null }) => void>(),
})
export interface CooperativeSiteControlServerOptions extends Input<typeof CooperativeSiteControlServerOptions> {}

/** A running control server. */
export interface CooperativeSiteControlServer {
  /** Base URL of the server. */
  url: string
  /** Port of the server. */
  port: number
  /**
   * Closes idle sockets immediately and the others within `closeTimeoutMs`. May be called twice. Resolves to how many
   * connections were destroyed.
   */
  close(): Promise<{ aborted: number }>
}

function refuse(response: ServerResponse, code: ProblemCode): void {
  const challenge: Record<string, string> = code === 'unauthenticated' ? { 'www-authenticate': 'Bearer' } : {}
  const { status, headers, body } = problemReply(code, { headers: challenge })
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

/** The state of one request. */
interface Visit {
  request: Request
  deadline: Deadline
  /** The route's path. */
  route: string | null
}

/** The engine behind the guard. It is shown targets as they were sent: a URL would have resolved `/sites/..` to another route. */
function createControlEngine(
  targets: ControlTargets,
  onError: (error: unknown, place: { route: string | null }) => void,
) {
  return createEngine({
    prefix: '',
    routes: CONTROL_ROUTES,
    // The guard has let them in.
    authenticate(visit: Visit, route) {
      visit.route = route?.path ?? null
    },
    checkParam: checkSegmentId,
    answer({ handle }, { params, search }, { request, deadline }) {
      parseQuery(NoQuery, search)
      return deadline.race(handle({ targets, request, params, signal: deadline.signal }))
    },
    refuse(error, { route }) {
      const problem = toControlProblem(error)
      if (PROBLEMS[problem.code][0] >= 500) onError(problem.cause, { route })
      return problem
    },
  })
}

/**
 * Starts the control server: local programs in any language declare sites and publish events through the one connected
 * runtime. docs/control-server.md lists the callers it refuses.
 *
 * @throws TypeError for a host that is not loopback and for an invalid token or owner; Error naming a port that is in
 * use.
 *
 * @example
 * ```ts
 * import { createSiteRegistry } from 'relayscope/cooperative-site'
 * import { startCooperativeSiteControlServer } from 'relayscope/control-server'
 * import type { CooperativeSitePublisher } from 'relayscope/publisher'
 *
 * declare const publisher: CooperativeSitePublisher
 * const token = crypto.randomUUID()
 * const server = await startCooperativeSiteControlServer({ token, sites: createSiteRegistry(), publisher })
 * console.log(server.url)
 * await server.close()
 * ```
 */
export async function startCooperativeSiteControlServer(
  options: CooperativeSiteControlServerOptions,
): Promise<CooperativeSiteControlServer> {
  const read = readOptions(CooperativeSiteControlServerOptions, options)
  const { token, sites, publisher, port, host, owner, closeTimeoutMs } = read
  const { answerMs, ...timeouts } = read.timeouts
  const onError = guardErrorHook(read.onError)
  const engine = createControlEngine({ sites, publisher, owner }, onError)
  const guard = createRequestGuard(token)

  return listen(
    (request, response) => {
      const { socket, rawHeaders, url = '' } = request
      const refused = guard({ remoteAddress: socket.remoteAddress, rawHeaders }, socket.localPort as number)
      if (refused) return refuse(response, refused)
      const target = readTarget(request)
      if (target === undefined) return refuse(response, 'bad_request')
      const serve = async (asked: Request) => {
        const deadline = new Deadline(answerMs, asked)
        try {
          return await engine.reply({ request: asked, deadline, route: null }, splitTarget(url))
        } finally {
          deadline.clear()
        }
      }
      sendResponse(toHandler(serve), { req: request, res: response }, target.url, (error) =>
        onError(error, { route: null }),
      )
    },
    { host, port, ...timeouts, closeTimeoutMs },
  )
}
