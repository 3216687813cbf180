/** Holds the server of our own on Node to its bounds against what is sent ahead: requests and bodies by the thousand in one piece. */
import { Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type FetchHandler, type NodeServerOptions, startNodeServer } from '../../src/adapters/node.js'
import { openSocket } from '../control-server/wire.js'
import { exchange, requestText } from './wire.js'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const many = (count: number, text: (i: number) => string) => Array.from({ length: count }, (_, i) => text(i)).join('')
// Looks like the ends of a thousand heads.
const BLANK = '\r\n'.repeat(2_000)

async function start(handler: FetchHandler, options: NodeServerOptions = {}) {
  const server = await startNodeServer(handler, options)
  onTestFinished(async () => void (await server.close()))
  return server
}

/** A handler that answers with what it was asked, its place among all, and how long its body was. */
function counting() {
  const asked: string[] = []
  const handler: FetchHandler = async (request) => {
    const path = new URL(request.url).pathname
    asked.push(path)
    return new Response(`[${path} ${(await request.text()).length}]`)
  }
  return { asked, handler }
}
const answersOf = (text: string) => [...text.matchAll(/\[(.*?)\]/g)].map(([, answer]) => answer)

it('answers a single request before the pipelined requests of other connections', async () => {
  const { asked, handler } = counting()
  const { port } = await start(handler)
  const one = await openSocket(port)
  const ahead = await Promise.all(Array.from({ length: 4 }, () => openSocket(port)))
  for (const { socket } of [one, ...ahead]) {
    socket.write(get('/accepted'))
    await new Promise((resolve) => socket.once('data', resolve))
  }
  asked.length = 0
  // In one go, so that all of it is there when the server comes to look.
  for (const { socket } of ahead) socket.write(many(16, () => get('/ahead')))
  one.socket.write(get('/one'))
  await Promise.all(ahead.map(({ closed }) => closed))
  expect(asked).toHaveLength(4 * 16 + 1)
  expect(asked.indexOf('/one')).toBeLessThan(2 * 16)
})

it('answers pipelined requests in order, and keeps serving a connection that reads the answers', async () => {
  const { asked, handler } = counting()
  const { port } = await start(handler)
  const { socket, closed } = await openSocket(port)
  const paths = Array.from({ length: 15 }, (_, i) => `/${i}${'x'.repeat(i * 100)}`)
  const read = new Promise<void>((resolve) => {
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      if (answersOf(text).length === paths.length) resolve()
    })
  })
  socket.write(paths.map(get).join(''))
  await read
  socket.write(requestText(port, 'GET /more'))
  expect(answersOf(await closed)).toEqual([...paths, '/more'].map((path) => `${path} 0`))
  expect(asked).toHaveLength(16)
})

it('loses no body between requests, whatever its content and however slowly it is read', async () => {
  const { handler } = counting()
  const { port } = await start(handler)
  const { socket, closed } = await openSocket(port)
  const bodies = ['', 'x', BLANK, 'x'.repeat(300_000), BLANK.repeat(50), `${get('/in-a-body')}${BLANK}x`]
  socket.write(bodies.map((body, i) => post(`/${i}`, body)).join('') + requestText(port, 'GET /end'))
  expect(answersOf(await closed)).toEqual([...bodies.map((body, i) => `/${i} ${body.length}`), '/end 0'])
})

it('continues with pipelined requests once a large answer has been read', async () => {
  const large = 'x'.repeat(4_194_304)
  const { port } = await start(({ url }) => new Response(url.endsWith('/large') ? large : '[in]'))
  const { socket, closed } = await openSocket(port)
  socket.pause()
  socket.write(get('/large'))
  await new Promise((resolve) => socket.once('readable', resolve))
  socket.write(many(8, () => get(`/${'x'.repeat(300)}`)) + requestText(port, 'GET /end'))
  socket.resume()
  expect(answersOf(await closed)).toHaveLength(9)
})

it('parses nothing after an invalid request', async () => {
  const { asked, handler } = counting()
  const { port } = await start(handler)
  for (const broken of ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', `GET / HTTP/1.1\r\nA${'a'.repeat(300)}\r\n\r\n`]) {
    const { socket, closed } = await openSocket(port)
    socket.write(broken + many(100, () => get('/behind')))
    await closed
  }
  expect((await exchange(port, requestText(port, 'GET /next')))?.body).toBe('[/next 0]')
  expect(asked).toEqual(['/next'])
})

it('closes a pipelining connection first at the connection limit', async () => {
  const asked: string[] = []
  const { port } = await start(
    ({ url }) => {
      asked.push(new URL(url).pathname)
      return url.endsWith('/never') ? new Promise<Response>(() => {}) : new Response('in')
    },
    { connections: 2, closeTimeoutMs: 50 },
  )
  const once = await openSocket(port)
  once.socket.write(get('/never'))
  await expect.poll(() => asked).toHaveLength(1)
  const ahead = await openSocket(port)
  ahead.socket.write(many(3, () => get('/never')))
  await expect.poll(() => asked).toHaveLength(2)
  expect((await exchange(port, requestText(port, 'GET /')))?.body).toBe('in')
  expect(await ahead.closed).toBe('')
  expect(once.socket.destroyed).toBe(false)
})

it('reads a socket as Node does, and removes no listener of the parser', async () => {
  const listeners: string[] = []
  const { port } = await start(() => new Response('in'))
  const off = vi.spyOn(Socket.prototype, 'off')
  onTestFinished(() => off.mockRestore())
  expect((await exchange(port, requestText(port, 'GET /')))?.body).toBe('in')
  // Sockets of other tests may end meanwhile in the same process.
  const isOurs = (socket: unknown) => (socket as Socket).localPort === port
  listeners.push(...off.mock.calls.flatMap(([name], i) => (isOurs(off.mock.contexts[i]) ? [String(name)] : [])))
  expect(listeners).not.toContain('data')
})
