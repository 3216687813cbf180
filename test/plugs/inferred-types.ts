/**
 * What TypeScript infers for each plug and adapter, and what it refuses. Nothing here runs: `tsc` checks this file against `src`,
 * and `tools/type-matrix.mjs` checks it against the packed declarations with every compiler.
 */
import { createServer } from 'node:http'
import { Queue } from 'bullmq'
import { Queue as FormerQueue } from 'bullmq-5'
import express from 'express'
import { Hono } from 'hono'
import { chromium } from 'playwright-core'
import { Namespace, Server, type Socket } from 'socket.io'
import { WebSocket, WebSocketServer } from 'ws'
import { toDenoHandler } from '../../src/adapters/deno.js'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { startNodeServer, toNodeHandler } from '../../src/adapters/node.js'
import { createBullmqInspectors } from '../../src/bullmq/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { followBrowser } from '../../src/plugs/playwright/index.js'
import { followSocketIo } from '../../src/plugs/socket.io/index.js'
import { followWebSockets } from '../../src/plugs/ws/index.js'

const { connections, contexts, browserWindows } = createMemoryFacilities()
const identity = { user_id: 'ada', client_id: 'laptop', instance_id: 'run-1', client_type: 'web' } as const
const router = createDiagnosticsRouter({ inspectors: {}, auth: noopAuth() })

export function ofWs() {
  followWebSockets(new WebSocketServer({ noServer: true }), {
    connections,
    identify(socket, request) {
      socket.on('message', (data, isBinary) => [data.toString('utf8'), isBinary === true])
      // @ts-expect-error a WebSocket has no such method
      socket.nonsense()
      // @ts-expect-error the request is undefined for a socket that was connected before
      request.url
      // @ts-expect-error an IncomingMessage has no such property
      request?.nonsense
      return request?.url === '/' ? identity : null
    },
    onConnected(socket, connection) {
      socket.send(connection.connection_id)
      // @ts-expect-error a WebSocket has no such method
      socket.nonsense()
      // @ts-expect-error a connection has no such field
      connection.nonsense
    },
    // @ts-expect-error a WebSocket has no such method
    onSuperseded: (socket) => socket.nonsense(),
  })

  class NamedSocket extends WebSocket {
    readonly client = 'laptop'
  }
  followWebSockets(new WebSocketServer({ noServer: true, WebSocket: NamedSocket }), {
    connections,
    identify: ({ client }) => ({ ...identity, client_id: client }),
    // @ts-expect-error a NamedSocket has no such method
    onConnected: (socket) => socket.nonsense(),
  })

  const server = new WebSocketServer({ noServer: true })
  // @ts-expect-error `identify` is required
  followWebSockets(server, { connections })
  // @ts-expect-error an identity needs a client type
  followWebSockets(server, { connections, identify: () => ({ user_id: 'a', client_id: 'b', instance_id: 'c' }) })
  // @ts-expect-error no such option
  followWebSockets(server, { connections, identify: () => null, heartbeat: 1 })
  // @ts-expect-error an HTTP server's `connection` event has no WebSockets
  followWebSockets({ clients: [{}], on() {}, off() {} }, { connections, identify: () => null })
}

/** A server that is neither of `ws` nor has its clients: the annotations say what its sockets are. */
export function ofAnotherServer() {
  interface Peer {
    readonly token: string
    ping(): void
    on(event: string, listener: (code: number) => void): unknown
    off(event: string, listener: (code: number) => void): unknown
  }
  interface PeerServer {
    on(event: 'connection', listener: (peer: Peer, request: { path: string }) => void): unknown
    off(event: 'connection', listener: (peer: Peer, request: { path: string }) => void): unknown
  }
  followWebSockets({} as PeerServer, {
    connections,
    identify: (peer: Peer, request: { path: string } | undefined) =>
      request?.path === '/' ? { ...identity, client_id: peer.token } : null,
    // @ts-expect-error a Peer has no such property
    onSuperseded: (peer) => peer.nonsense,
  })
}

interface Said {
  say(text: string): void
}

export function ofSocketIo() {
  followSocketIo(new Server(createServer()), {
    connections,
    identify(socket) {
      socket.on('anything', (...data) => data.length)
      // @ts-expect-error a Socket has no such method
      socket.nonsense()
      // @ts-expect-error a handshake has no such property
      socket.handshake.nonsense
      return identity
    },
    // @ts-expect-error a Socket has no such method
    onConnected: (socket) => socket.nonsense(),
    // @ts-expect-error a Socket has no such method
    onSuperseded: (socket) => socket.nonsense(),
    // @ts-expect-error actions are names
    actionsOf: () => [1],
  })

  const io = new Server<Said, Said, Record<string, never>, { client: string }>(createServer())
  followSocketIo(io, {
    connections,
    identify(socket) {
      const own: Socket<Said, Said, Record<string, never>, { client: string }> = socket
      socket.on('say', (text) => text.toUpperCase())
      socket.emit('say', 'hello')
      // @ts-expect-error no such event
      socket.on('shout', () => {})
      // @ts-expect-error the text is a string
      socket.emit('say', 1)
      // @ts-expect-error the data has no such property
      socket.data.nonsense
      return { ...identity, client_id: own.data.client }
    },
  })
  // @ts-expect-error `identify` is required
  followSocketIo(io, { connections })
  // @ts-expect-error one namespace is no server
  followSocketIo(new Namespace(io, '/'), { connections, identify: () => null })
}

export async function ofPlaywright() {
  const browser = await chromium.launch()
  const follower = followBrowser(browser, {
    contexts,
    browserWindows,
    identify(context, page) {
      page?.on('dialog', (dialog) => dialog.message())
      // @ts-expect-error a BrowserContext has no such method
      context.nonsense()
      // @ts-expect-error the page is null when the browser context itself is asked for
      page.url()
      // @ts-expect-error a Page has no such method
      page?.nonsense()
      return { user_id: 'ada', client_id: 'crawler', incognito: context.pages().length > 0 }
    },
  })
  // @ts-expect-error neither a browser context nor a page
  await follower.identifyAgain('page')
  // @ts-expect-error a browser context is no browser
  followBrowser(await browser.newContext(), { contexts, browserWindows, identify: () => null })
  // @ts-expect-error an identity needs a client
  followBrowser(browser, { contexts, browserWindows, identify: () => ({ user_id: 'ada' }) })
}

export function ofBullmq() {
  const queues = [new Queue('emails'), new FormerQueue('reports')]
  createBullmqInspectors({
    queues,
    identify(job) {
      // @ts-expect-error a job has no such property
      job.nonsense
      // Only you know your payloads.
      return { user_id: job.data.user }
    },
  })
  const whose = ({ data }: { data: { user: string } }) => ({ user_id: data.user })
  createBullmqInspectors({ queues, identify: whose })
  // @ts-expect-error a user id is a string
  createBullmqInspectors({ queues, identify: () => ({ user_id: 1 }) })
  // @ts-expect-error the names of queues are no queues
  createBullmqInspectors({ queues: ['emails'] })
}

export function ofAdapters() {
  createServer(toNodeHandler(router))
  toNodeHandler(router)(
    // @ts-expect-error a Request of fetch is no request of Node
    new Request('http://relay/'),
    {},
  )
  // @ts-expect-error a handler answers a Response
  toNodeHandler(() => 'hello')
  // @ts-expect-error an object with a method `fetch` is no handler
  toNodeHandler({ fetch: router })
  // @ts-expect-error the remote address may be unknown
  toNodeHandler((_request, { remoteAddress }) => new Response(remoteAddress.trim()))
  // @ts-expect-error hosts are a list
  startNodeServer(router, { allowedHosts: 'localhost' })

  express().use(toExpressMiddleware(router))
  // @ts-expect-error a handler of fetch is no middleware
  express().use({ middleware: toExpressMiddleware(router) })
  // @ts-expect-error no such option
  toExpressMiddleware(router, { prefix: '/ops' })

  new Hono().use(toHonoHandler(router)).all('/ops/*', toHonoHandler(router))
  // @ts-expect-error a Request is no context of Hono
  toHonoHandler(router)(new Request('http://relay/'))
  // @ts-expect-error an error handler takes no number
  toHonoHandler(router, { onError: (error: number) => void error })

  toDenoHandler(router)(new Request('http://relay/'), { remoteAddr: { hostname: '::1' } })
  // @ts-expect-error an address is an object
  toDenoHandler(router)(new Request('http://relay/'), { remoteAddr: '::1' })

  // `Bun.serve` and `export default` take a router as it is.
  const routes: Record<string, (request: Request) => Promise<Response>> = { '/ops/*': router }
  // @ts-expect-error a router takes a Request
  routes['/ops/*'] = (url: string) => router(url)
}
