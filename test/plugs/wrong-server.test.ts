/** What the integrations do with a server of another kind. */
import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { Server } from 'socket.io'
import { describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { followBrowser } from '../../src/plugs/playwright/index.js'
import { followSocketIo } from '../../src/plugs/socket.io/index.js'
import { followWebSockets } from '../../src/plugs/ws/index.js'

const { connections, contexts, browserWindows } = createMemoryFacilities()
const options = { connections, identify: () => null }

const wrong: [name: string, server: unknown][] = [
  ['an HTTP server', createServer()],
  ['a TCP server', createTcpServer()],
  ['undefined', undefined],
  ['null', null],
  ['a port', 8080],
  ['an object', {}],
]

describe('followWebSockets', () => {
  it.each([
    ...wrong,
    ['a server of Socket.IO', new Server()],
    ['a socket', Object.assign(new EventEmitter(), { readyState: 1 })],
  ])('throws a TypeError that names the WebSocketServer for %s', (_, server) => {
    expect(() => followWebSockets(server as never, options as never)).toThrow(TypeError)
    expect(() => followWebSockets(server as never, options as never)).toThrow('WebSocketServer (on, off, clients)')
  })

  it('accepts a WebSocketServer', async () => {
    await followWebSockets(new WebSocketServer({ noServer: true }), options).close()
  })
})

describe('followSocketIo', () => {
  it.each([
    ...wrong,
    ['a WebSocketServer', new WebSocketServer({ noServer: true })],
    ['a namespace', new Server().of('/')],
  ])('throws a TypeError that names the Server of Socket.IO for %s', (_, server) => {
    expect(() => followSocketIo(server as never, options as never)).toThrow(TypeError)
    expect(() => followSocketIo(server as never, options as never)).toThrow('Server of Socket.IO (on, off, of')
  })

  it('accepts a server', async () => {
    await followSocketIo(new Server(), options).close()
  })
})

describe('followBrowser', () => {
  it.each([
    ...wrong,
    ['a browser context', Object.assign(new EventEmitter(), { pages: () => [] })],
  ])('throws a TypeError that names the Browser of Playwright for %s', (_, browser) => {
    const follow = () => followBrowser(browser as never, { contexts, browserWindows, identify: () => null })
    expect(follow).toThrow(TypeError)
    expect(follow).toThrow('Browser of Playwright (contexts, on, off)')
  })
})
