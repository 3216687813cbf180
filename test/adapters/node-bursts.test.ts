/** Holds the server of our own on Node to its bounds against what is sent ahead: requests and bodies by the thousand in one piece. */
import { createServer, type RequestListener } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { type FetchHandler, type NodeServerOptions, startNodeServer } from '../../src/adapters/node.js'
import { boundConnections } from '../../src/adapters/node-bounds.js'
import { openSocket } from '../control-server/wire.js'
import { serve } from './server.js'
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

it('parses of a burst in one piece no more than its connection may ask, and a slice', async () => {
  const server = createServer()
  const answered: RequestListener = (_req, res) => res.end('in')
  const { listener } = boundConnections(server, answered, { connections: 2, pipelined: 4, stallMs: 10_000 })
  let parsed = 0
  server.on('request', () => parsed++)
  server.on('request', listener)
  const { socket, closed } = await openSocket(await serve(server))
  socket.write(many(1_000, () => 'GET / HTTP/1.1\r\nHost:\r\n\r\n'))
  expect((await closed).match(/HTTP\/1\.1 200/g)).toHaveLength(4)
  expect(parsed).toBeGreaterThanOrEqual(4)
  expect(parsed).toBeLessThan(4 + 14)
})

it('answers whoever asks one thing before all that others have sent ahead', async () => {
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
  expect(asked.indexOf('/one')).toBeLessThanOrEqual(4)
})

it('reads of a body in a thousand pieces a few KiB, and then whoever asks one thing', async () => {
  const server = createServer()
  const seen: string[] = []
  const read: RequestListener = (req, res) => {
    seen.push(req.url ?? '')
    req.on('data', () => seen.push('piece'))
    req.on('end', () => res.end('in'))
  }
  const { listener } = boundConnections(server, read, { connections: 3, pipelined: 4, stallMs: 10_000 })
  server.on('request', listener)
  const port = await serve(server)
  const [pieces, one] = [await openSocket(port), await openSocket(port)]
  for (const { socket } of [pieces, one]) {
    socket.write(get('/accepted'))
    await new Promise((resolve) => socket.once('data', resolve))
  }
  seen.length = 0
  const head = 'POST /pieces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'
  pieces.socket.write(`${head}${'1\r\nx\r\n'.repeat(8_000)}0\r\n\r\n`)
  one.socket.write(get('/one'))
  await pieces.closed
  expect(seen.filter((each) => each === 'piece')).toHaveLength(8_000)
  expect(seen.indexOf('/one')).toBeLessThan(2_000)
})

it('answers in their order, and goes on with, a connection that reads what it has asked ahead', async () => {
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

it('loses nothing of bodies between requests, whatever they look like and however slowly they are read', async () => {
  const { handler } = counting()
  const { port } = await start(handler)
  const { socket, closed } = await openSocket(port)
  const bodies = ['', 'x', BLANK, 'x'.repeat(300_000), BLANK.repeat(50), `${get('/in-a-body')}${BLANK}x`]
  socket.write(bodies.map((body, i) => post(`/${i}`, body)).join('') + requestText(port, 'GET /end'))
  expect(answersOf(await closed)).toEqual([...bodies.map((body, i) => `/${i} ${body.length}`), '/end 0'])
})

it('reads the last request that may wait to the end of its body, and nothing behind it', async () => {
  const { asked, handler } = counting()
  const { port } = await start(handler, { pipelined: 2 })
  const { socket, closed } = await openSocket(port)
  socket.write(get('/first') + post('/last', BLANK.repeat(50)) + many(1_000, () => get('/behind')))
  expect(answersOf(await closed)).toEqual(['/first 0', `/last ${BLANK.length * 50}`])
  expect(asked).toEqual(['/first', '/last'])
})

it('parses no more while an answer is not taken, and all of it once it is', async () => {
  const large = 'x'.repeat(4_194_304)
  const { port } = await start(({ url }) => new Response(url.endsWith('/large') ? large : '[in]'))
  const { socket, closed } = await openSocket(port)
  socket.pause()
  socket.write(get('/large'))
  await new Promise((resolve) => socket.once('readable', resolve))
  // Each is a slice of its own; the first of them is when Node, too, takes no more.
  socket.write(many(8, () => get(`/${'x'.repeat(300)}`)) + requestText(port, 'GET /end'))
  socket.resume()
  expect(answersOf(await closed)).toHaveLength(9)
})

it('parses nothing behind what it cannot read', async () => {
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

it('makes room at the bound of connections by one that has sent requests ahead, and by none that asked once', async () => {
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
