/** Holds the server of our own on Node to its bounds, over raw sockets: the slow, the silent, the many, and the end. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type FetchHandler, type NodeServerOptions, startNodeServer } from '../../src/adapters/node.js'
import { openSocket } from '../control-server/wire.js'
import { exchange, requestText } from './wire.js'

const LARGE = 'x'.repeat(4_194_304)
/** Larger than what any system keeps for a reader that takes nothing (Linux: up to tens of MiB): it ends when told. */
const endless = (isOver = () => false) => {
  const part = new Uint8Array(65_536)
  const pull = (body: ReadableStreamDefaultController) => (isOver() ? body.close() : body.enqueue(part))
  return new Response(new ReadableStream({ pull }))
}

async function start(handler: FetchHandler, options: NodeServerOptions = {}) {
  const server = await startNodeServer(handler, options)
  onTestFinished(async () => void (await server.close()))
  return server
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
/** Opens a socket that reads nothing. */
async function openDeaf(port: number) {
  const opened = await openSocket(port)
  opened.socket.pause()
  return opened
}

describe('a connection', () => {
  it('that reads nothing until the stall timeout is closed, and one that reads something is not', async () => {
    let asked = 0
    const ended: Promise<unknown>[] = []
    const { port } = await start(
      (request) => {
        asked++
        ended.push(new Promise((resolve) => request.signal.addEventListener('abort', resolve)))
        return request.url.endsWith('/endless') ? endless() : new Response(LARGE)
      },
      { stallMs: 3_000 },
    )
    const { socket } = await openDeaf(port)
    socket.write(get('/endless'))
    await expect.poll(() => asked).toBe(1)
    await ended[0]
    expect((await exchange(port, requestText(port, 'GET /')))?.body.length).toBe(LARGE.length)
  })

  it('that waits for a response does not count as stalled', async () => {
    let answer = (_: Response) => {}
    let heard = () => {}
    const cutOff = new Map<string, () => void>()
    const begin = new Map<string, (_: true) => void>()
    const { port } = await start(
      ({ url, signal }) => {
        if (url.endsWith('/late')) {
          heard()
          return new Promise<Response>((resolve) => (answer = resolve))
        }
        const { pathname } = new URL(url)
        begin.get(pathname)?.(true)
        // On a busy machine the bound passes before the request is handed on, too.
        if (signal.aborted) cutOff.get(pathname)?.()
        signal.addEventListener('abort', () => cutOff.get(pathname)?.())
        return endless()
      },
      { stallMs: 50 },
    )
    /** On a busy machine the bound passes before the request has come: then it is sent again. */
    async function askLate(): Promise<{ reply: ReturnType<typeof exchange> }> {
      const isHeard = new Promise<boolean>((resolve) => (heard = () => resolve(true)))
      const reply = exchange(port, requestText(port, 'GET /late'))
      const isCut = reply.then(
        () => false,
        () => false,
      )
      return (await Promise.race([isHeard, isCut])) ? { reply } : askLate()
    }
    const late = await askLate()
    // Each of them is a witness that the bound has passed once more.
    for (let [passed, tried] = [0, 0]; passed < 3; tried++) {
      // A late request must not count for the next attempt.
      const path = `/${tried}`
      const isCutOff = new Promise<void>((resolve) => void cutOff.set(path, resolve))
      const begun = new Promise<true>((resolve) => void begin.set(path, resolve))
      const { socket, closed } = await openSocket(port)
      socket.write(get(path))
      // On a busy machine the bound passes before the request has come.
      if ((await Promise.race([begun, closed])) !== true) continue
      socket.pause()
      await isCutOff
      passed++
    }
    answer(new Response('late'))
    expect((await late.reply)?.body).toBe('late')
  })

  it('has its requests answered one after the other, with at most one unread response', async () => {
    let [asked, isOver] = [0, false]
    const { port } = await start(({ url }) => {
      if (!url.endsWith('/endless')) return new Response('other request')
      asked++
      return endless(() => isOver)
    })
    const { socket } = await openDeaf(port)
    socket.write(get('/endless').repeat(8))
    await expect.poll(() => asked).toBe(1)
    expect((await exchange(port, requestText(port, 'GET /')))?.body).toBe('other request')
    expect(asked).toBe(1)
    isOver = true
    socket.resume()
    await expect.poll(() => asked).toBe(8)
  })

  it('is closed when it pipelines too many requests', async () => {
    let asked = 0
    const { port } = await start(
      () => {
        asked++
        return new Response('in')
      },
      { pipelined: 4 },
    )
    const { socket, closed } = await openSocket(port)
    socket.write(Array.from({ length: 100 }, (_, i) => get(`/${i}`)).join(''))
    await closed
    expect(asked).toBeLessThanOrEqual(4)
    expect((await exchange(port, requestText(port, 'GET /')))?.body).toBe('in')
  })

  it('closes after its maximum number of requests, and announces it', async () => {
    const { port } = await start(({ url }) => new Response(`[${new URL(url).pathname}]`), { requests: 3 })
    const { socket, closed } = await openSocket(port)
    for (const path of ['/1', '/2', '/3']) {
      socket.write(get(path))
      await new Promise((resolve) => socket.once('data', resolve))
    }
    const text = await closed
    expect([...text.matchAll(/\[\/\d\]/g)].join('')).toBe('[/1][/2][/3]')
    expect(text.match(/connection: close/gi)).toHaveLength(1)
  })

  it('that is idle between two requests is closed', async () => {
    const { port } = await start(() => new Response('one'), { keepAliveMs: 50 })
    const { socket, closed } = await openSocket(port)
    socket.write(get())
    expect(await closed).toContain('one')
  })

  it('that does not end its headers or its body is closed', async () => {
    const { port } = await start(async (request) => new Response(await request.text()), {
      headersMs: 50,
      requestMs: 100,
    })
    const headers = await openSocket(port)
    headers.socket.write('GET / HTTP/1.1\r\n')
    const body = await openSocket(port)
    body.socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx')
    expect(await headers.closed).toContain(' 408 ')
    await body.closed
  })
})

describe('connections at their bound', () => {
  it('make room by closing the one that is idle the longest', async () => {
    const { port } = await start(() => new Response('in'), { connections: 3 })
    const [first, second, third] = [await openSocket(port), await openSocket(port), await openSocket(port)]
    // Younger as idle ones go, since it has asked something.
    first.socket.write(get())
    await new Promise((resolve) => first.socket.once('data', resolve))
    expect((await exchange(port, requestText(port, 'GET /')))?.body).toBe('in')
    expect(await second.closed).toBe('')
    expect([first.socket.destroyed, third.socket.destroyed]).toEqual([false, false])
  })

  it('make room when none of them reads its responses', async () => {
    const { port } = await start(() => new Response(LARGE), { connections: 3 })
    const deaf = await Promise.all([openDeaf(port), openDeaf(port), openDeaf(port)])
    for (const { socket } of deaf) {
      socket.write(get().repeat(20))
      await new Promise((resolve) => socket.once('readable', resolve))
    }
    expect((await exchange(port, requestText(port, 'GET /')))?.status).toBe(200)
  })
})

describe('its end', () => {
  it('completes within its timeout, and returns how many connections it aborted', async () => {
    const server = await startNodeServer(async (request) => new Response(await request.text()), { closeTimeoutMs: 50 })
    const idle = await openSocket(server.port)
    const stalled = await openSocket(server.port)
    stalled.socket.write('POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\nx')
    await new Promise((resolve) => stalled.socket.once('data', resolve))
    const closing = server.close()
    expect(server.close()).toBe(closing)
    expect(await closing).toEqual({ aborted: 1 })
    await Promise.all([idle.closed, stalled.closed])
    await expect(fetch(server.url)).rejects.toThrow()
  })

  it('aborts no connection that is answered in time', async () => {
    const server = await startNodeServer(() => new Response('in'))
    expect((await exchange(server.port, requestText(server.port, 'GET /')))?.body).toBe('in')
    expect(await server.close()).toEqual({ aborted: 0 })
  })

  it('names the port that is in use, and rejects invalid options', async () => {
    const { port } = await start(() => new Response())
    await expect(startNodeServer(() => new Response(), { port })).rejects.toThrow(`port ${port} on 127.0.0.1`)
    await expect(startNodeServer(() => new Response(), { ports: 1 } as never)).rejects.toThrow(TypeError)
    await expect(startNodeServer(() => new Response(), { stallMs: 0 })).rejects.toThrow(RangeError)
  })
})
