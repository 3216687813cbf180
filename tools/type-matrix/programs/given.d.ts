/** What the snippets of the documents take for given: names that their example, or the text around them, introduces. */

// What the text has just made, or told to import.
declare const diagnostics: import('relayscope').DiagnosticsRouter
declare const facilities: import('relayscope/memory').MemoryFacilities
declare const connections: import('relayscope/memory').MemoryFacilities['connections']
declare const contexts: import('relayscope/memory').MemoryFacilities['contexts']
declare const browserWindows: import('relayscope/memory').MemoryFacilities['browserWindows']
declare const createBullmqInspectors: typeof import('relayscope/bullmq').createBullmqInspectors
declare const emails: import('relayscope/bullmq').BullmqQueue
declare const whose: import('relayscope/bullmq').Identify
declare const deduplicator: import('relayscope').DeduplicatorInspector
declare const metrics: import('relayscope/metrics').Metrics
declare const mcp: import('relayscope/mcp').Mcp
// A function of the host's own tracing.
declare const startSpan: (name: string, options: { trace: string | null }) => void
// Of `@opentelemetry/api`, which a host brings.
interface Instrument {
  addCallback(callback: unknown): void
}
interface Meter {
  createObservableGauge(name: string, options: { description: string; unit?: string }): Instrument
  createObservableCounter(name: string, options: { description: string; unit?: string }): Instrument
  addBatchObservableCallback(
    callback: (result: {
      observe(instrument: Instrument, value: number, attributes: Record<string, string>): void
    }) => Promise<void>,
    instruments: Instrument[],
  ): void
}
declare const meter: Meter
declare const createDiagnosticsRouter: typeof import('relayscope').createDiagnosticsRouter
declare const inspectors: import('relayscope').Inspectors
declare const apiKeyAuth: typeof import('relayscope').apiKeyAuth
declare const scopeInspectors: typeof import('relayscope').scopeInspectors
declare const resolveAdminAuth: typeof import('relayscope').resolveAdminAuth
declare const memoryComposition: typeof import('relayscope/memory').memoryComposition
declare const startCooperativeSiteControlServer: typeof import('relayscope/control-server').startCooperativeSiteControlServer
declare const createRemoteSiteRegistry: typeof import('relayscope/publisher').createRemoteSiteRegistry
declare const createCooperativeSitePublisher: typeof import('relayscope/publisher').createCooperativeSitePublisher
declare const ActionFailure: typeof import('relayscope/cooperative-site').ActionFailure
declare const z: typeof import('zod')
declare const express: typeof import('express')
declare const Fastify: typeof import('fastify').fastify
declare const Hono: typeof import('hono').Hono
declare const Koa: typeof import('koa')
declare const app: import('fastify').FastifyInstance
declare const NestFactory: {
  create(module: unknown): Promise<{
    use(middleware: import('relayscope/express').ExpressMiddleware): void
    listen(port: number, hostname: string): Promise<unknown>
  }>
}
declare const AppModule: unknown

// The WebSocket server of docs/feeding.md, and what is made of it.
declare const createServer: typeof import('node:http').createServer
declare const toNodeHandler: typeof import('relayscope/node').toNodeHandler
declare const WebSocketServer: new (options: { server: import('node:http').Server }) => unknown
declare const feed: (server: unknown, facilities: object, options: object) => () => Promise<void>
declare const closeAll: () => Promise<void>
declare const server: import('node:http').Server
declare const userOf: (request: unknown) => string | null
declare const heartbeatMs: number
declare const key: string
declare const left: AbortController
declare const draw: (view: string, items: readonly unknown[], about: object) => void

// A program's settings.
declare const port: number
declare const url: string
declare const deploymentId: string
declare const onListen: () => void

// Other runtimes, as far as they are shown.
declare const Deno: { serve(options: object, handler: import('relayscope/deno').DenoHandler): unknown }
declare const Bun: {
  serve(options: {
    port: number
    hostname: string
    routes: Record<string, (request: Request) => Promise<Response>>
    fetch(request: Request): Response | Promise<Response>
  }): unknown
}
declare let accepted: number

// The application of the cooperative documents, its relay and its page.
declare const CONTROL_TOKEN: string
declare const baseUrls: [string, ...string[]]
declare const relay:
  | (import('relayscope').Instance & { baseUrl: string; token: string; signal: AbortSignal })
  | undefined
declare const sites: import('relayscope').SiteRegistry
declare const sessions: import('relayscope').SessionRegistry
declare const publisher: import('relayscope/publisher').CooperativeSitePublisher
declare const actions: import('relayscope/cooperative-site').ActionHandlers
declare const notes: { get(id: number): { keep?: boolean } | undefined; archive(id: number): Promise<{ id: number }> }
declare const changed: (id: number) => void
declare const exportPage: (page: number, options: { signal: AbortSignal }) => Promise<void>
declare const live: {
  facilities: Pick<import('relayscope/memory').MemoryFacilities, 'ingest'>
  sites: import('relayscope').SiteRegistry
  sessions: import('relayscope').SessionRegistry
  bus: import('relayscope').SiteEventBus
}
declare const site_id: string
declare const session_id: string
declare const user_id: string
declare const client_id: string
declare const dispatcher: import('relayscope/memory').MemoryFacilities['dispatcher']
declare const client: import('relayscope').Instance
declare const site: import('relayscope/browser').CooperativeSiteClient
declare const at: (id: string) => { textContent: string | null }
declare const log: (name: string, value: unknown) => void
declare const refetch: () => void

// What plugs follow, as far as the documents show it.
type GivenSocket = import('relayscope/ws').FollowedWebSocket & {
  readonly OPEN: 1
  on(event: 'message', listener: (data: never) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'close', listener: (code: number) => void): unknown
  send(text: string, sent: (error?: Error | null) => void): void
  close(code: number, reason?: string): void
  terminate(): void
}
declare const sockets: import('relayscope/ws').FollowedWebSocketServer<
  GivenSocket,
  import('node:http').IncomingMessage
> & { readonly clients: Set<GivenSocket> }
declare const follower: import('relayscope/ws').Follower
declare const followWebSockets: typeof import('relayscope/ws').followWebSockets
declare const whoIs: (peer: unknown) => import('relayscope/ws').Identity
declare const io: import('relayscope/socket.io').FollowedSocketIoServer<import('relayscope/socket.io').FollowedSocket>
declare const followSocketIo: typeof import('relayscope/socket.io').followSocketIo
declare const browser: import('relayscope/playwright').FollowedBrowser<
  object,
  import('relayscope/playwright').FollowedPage
>
declare const followBrowser: typeof import('relayscope/playwright').followBrowser
declare const crawler: import('relayscope/playwright').BrowserIdentity
declare const tasks: Map<unknown, string>
