/** Opens the control server: a loopback socket that any local program can speak to, bounded in every direction. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '../adapters/node.js'
import { guardHook } from '../contract/hook.js'
import { checkId } from '../contract/ids.js'
import type { SiteRegistry } from '../contract/sites.js'
import { Deadline } from '../http/deadline.js'
import { isLoopbackHost } from '../http/loopback.js'
import { PROBLEMS, type ProblemCode } from '../http/problem.js'
import { problemReply, type Reply, toResponse } from '../http/respond.js'
import type { CooperativeSitePublisher } from '../publisher/publisher.js'
import { createClosing } from './closing.js'
import { createDoor } from './door.js'
import { toProblemError } from './problem.js'
import { answer, type ControlTargets } from './routes.js'

const TOKEN_LENGTH = 16
// More than any local program needs, and enough to serve others beside hundreds of sockets that say nothing.
const CONNECTIONS = 1_024
// Between two requests of one program.
const KEEP_ALIVE_MS = 5_000
// How often sockets are looked at that take too long.
const CHECK_MS = 1_000

export interface ControlServerTimeouts {
  /** From the connection to the last header. @default 5000 */
  headersMs?: number | undefined
  /** From the connection to the last byte of the body. @default 10000 */
  requestMs?: number | undefined
  /** For the registry and the publisher. @default 12000, more than a publisher takes to give up */
  answerMs?: number | undefined
}

export interface CooperativeSiteControlServerOptions {
  /** What a caller must present as bearer token: at least 16 printable ASCII characters without spaces. */
  token: string
  /** Where sites are declared: a registry of this process, or `createRemoteSiteRegistry` for the relay's. */
  sites: SiteRegistry
  publisher: CooperativeSitePublisher
  /** @default 0, a free port */
  port?: number | undefined
  /** Must be loopback. @default '127.0.0.1' */
  host?: string | undefined
  /** The owner of the sites in a local registry; at a relay it is whom the relay authenticates. @default 'local' */
  owner?: string | undefined
  timeouts?: ControlServerTimeouts | undefined
  /** What a registry or the publisher threw behind a 5xx; a caller never reads it. A hook that throws or rejects changes nothing. */
  onError?: ((error: unknown) => void) | undefined
}

export interface CooperativeSiteControlServer {
  url: string
  port: number
  /** Ends idle sockets at once and the rest within 2 s. Calling it twice is fine. */
  close(): Promise<void>
}

/** Resolves once `server` listens; names the port that somebody else has. */
function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE'
      reject(taken ? new Error(`port ${port} on ${host} is already in use`, { cause }) : cause)
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      // A connection that could not be accepted is its caller's loss, not the end of the process.
      server.on('error', () => {})
      resolve()
    })
  })
}

function refuse(response: ServerResponse, code: ProblemCode): void {
  const challenge: Record<string, string> = code === 'unauthenticated' ? { 'www-authenticate': 'Bearer' } : {}
  const { status, headers, body } = problemReply(code, { headers: challenge })
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

interface Serving extends ControlTargets {
  answerMs: number
  onError: (error: unknown) => void
}

async function serve(target: string, request: Request, { answerMs, onError, ...targets }: Serving): Promise<Reply> {
  const deadline = new Deadline(answerMs, request)
  try {
    return await deadline.settle(answer({ target, request, signal: deadline.signal }, targets))
  } catch (error) {
    const { code, extra, cause } = toProblemError(error)
    if (PROBLEMS[code][0] >= 500) onError(cause)
    return problemReply(code, extra)
  } finally {
    deadline.clear()
  }
}

/**
 * Starts the control server (contract, part 6): local programs in any language declare sites and publish events
 * through the one runtime that is connected. See docs/control-server.md for whom it keeps out.
 *
 * @throws TypeError for a host that is not loopback and for an unusable token or owner; Error naming the port that is
 * in use.
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
  const { token, sites, publisher, port = 0, host = '127.0.0.1', owner = 'local', timeouts = {} } = options
  const { headersMs = 5_000, requestMs = 10_000, answerMs = 12_000 } = timeouts
  if (!isLoopbackHost(host)) throw new TypeError('the control server binds loopback only')
  if (typeof token !== 'string' || token.length < TOKEN_LENGTH || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError(`the token must be at least ${TOKEN_LENGTH} printable ASCII characters without spaces`)
  if (checkId(owner) !== undefined) throw new TypeError(`the owner ${checkId(owner)}`)
  const serving = { sites, publisher, owner, answerMs, onError: guardHook(options.onError) }
  const door = createDoor(token)

  const server = createServer(
    {
      headersTimeout: Math.min(headersMs, requestMs),
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The door refuses a missing Host by its own answer.
      requireHostHeader: false,
    },
    (request, response) => {
      const { socket, rawHeaders, url = '' } = request
      const refused = door({ remoteAddress: socket.remoteAddress, rawHeaders }, bound.port)
      if (refused) refuse(response, refused)
      else toNodeHandler(async (asked) => toResponse(await serve(url, asked, serving)))(request, response)
    },
  )
  server.maxConnections = CONNECTIONS
  const close = createClosing(server)
  await listen(server, port, host.replace(/^\[(.*)\]$/, '$1'))
  const bound = server.address() as AddressInfo
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  return { url: `http://${name}:${bound.port}`, port: bound.port, close }
}
