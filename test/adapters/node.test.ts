/** What of the Node adapter only Node can show: kept-alive connections, bodies that others have read, replies. */
import { Agent, createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { toProblem } from '../../src/internal/http/problem.js'
import { serve } from './server.js'
import { exchange, open, requestText } from './wire.js'

const neverCalled: FetchHandler = () => {
  throw new Error('not to be called')
}

describe('toNodeHandler', () => {
  it('passes the address of the socket to the handler, never that of a forwarding header', async () => {
    const port = await serve(toNodeHandler((_, { remoteAddress }) => new Response(remoteAddress ?? 'unknown')))
    const answer = await exchange(port, requestText(port, 'GET /', ['X-Forwarded-For: 10.0.0.1']))
    expect(answer?.body).toBe('127.0.0.1')
  })

  it('passes the same address to the access hook of the diagnostics router', async () => {
    const addresses: unknown[] = []
    const router = createDiagnosticsRouter({
      inspectors: {},
      auth: noopAuth(),
      onAccess: ({ remote_address }) => addresses.push(remote_address),
    })
    const port = await serve(toNodeHandler(router))
    await exchange(port, requestText(port, 'GET /capabilities', ['X-Forwarded-For: 10.0.0.1']))
    expect(addresses).toEqual(['127.0.0.1'])
  })

  it('refuses an HTTP/1.1 request without a Host, even if the server accepts it', async () => {
    const handle = toNodeHandler(() => new Response('called'))
    const port = await serve(createServer({ requireHostHeader: false }, (req, res) => void handle(req, res)))
    const refused = await exchange(port, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')
    expect([refused?.status, JSON.parse(refused?.body ?? '')]).toEqual([400, toProblem('bad_request')])
    expect((await exchange(port, 'GET / HTTP/1.0\r\n\r\n'))?.body).toBe('called')
  })

  it('passes on paths the handler does not own, and calls a handler without owns', async () => {
    const passing = toNodeHandler(Object.assign(neverCalled.bind(null), { owns: () => false }))
    const port = await serve((req, res) => passing(req, res, () => res.end('next')))
    expect((await exchange(port, requestText(port, 'GET /x')))?.body).toBe('next')

    const asked = toNodeHandler(() => new Response('called'))
    const other = await serve((req, res) => asked(req, res, () => res.end('next')))
    expect((await exchange(other, requestText(other, 'GET /x')))?.body).toBe('called')
  })

  it('calls the handler for paths it does not own when there is no next handler', async () => {
    const port = await serve(toNodeHandler(Object.assign(() => new Response('mine'), { owns: () => false })))
    expect((await exchange(port, requestText(port, 'GET /x')))?.body).toBe('mine')
  })

  it('calls owns with the path as it was sent', async () => {
    const asked: string[] = []
    const owns = (pathname: string) => asked.push(pathname) > 0
    const port = await serve(
      toNodeHandler(Object.assign((request: Request) => new Response(new URL(request.url).pathname), { owns })),
    )
    const next = await serve((req, res) =>
      toNodeHandler(Object.assign((request: Request) => new Response(request.url), { owns }))(req, res, () => {}),
    )
    expect((await exchange(port, requestText(port, 'GET /a/b%2Fc?d')))?.body).toBe('/a/b%2Fc')
    expect((await exchange(next, requestText(next, 'GET /%61/b%2Fc?d')))?.body).toContain('/%61/b%2Fc?d')
    expect(asked).toEqual(['/a/b%2Fc', '/%61/b%2Fc'])
  })

  it.each([
    '//evil.test/x',
    '//',
    '/a/..//evil.test/x',
    '/a/../b',
    '/a/%2E%2e',
    '/.',
  ])("passes %s to no handler: answers 400, or calls the host's next handler", async (path) => {
    let carried = 0
    const handle = toNodeHandler(Object.assign(() => new Response(String(++carried)), { owns: () => true }))
    const alone = await serve(handle)
    const mounted = await serve((req, res) => handle(req, res, () => res.end('the host')))
    const refused = await exchange(alone, requestText(alone, `GET ${path}`))
    expect([refused?.status, JSON.parse(refused?.body ?? '')]).toEqual([400, toProblem('bad_request')])
    expect((await exchange(mounted, requestText(mounted, `GET ${path}`)))?.body).toBe('the host')
    expect(carried).toBe(0)
  })

  it('answers HTTP/1.0 without a Host', async () => {
    const port = await serve(toNodeHandler((request) => new Response(request.url)))
    expect((await exchange(port, 'GET /x HTTP/1.0\r\n\r\n'))?.body).toBe('http://localhost/x')
  })

  it('keeps a connection usable when the request body was not read', async () => {
    const port = await serve(
      toNodeHandler(async (request) => {
        const path = new URL(request.url).pathname
        if (path === '/begun') await request.body?.getReader().read()
        return new Response(path)
      }),
    )
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const sockets = new Set<unknown>()
    const post = (path: string) =>
      new Promise<string>((resolve, reject) => {
        const outgoing = httpRequest(
          { port, path, method: 'POST', agent, host: '127.0.0.1' },
          (res: IncomingMessage) => {
            sockets.add(res.socket)
            let text = ''
            res.on('data', (chunk) => (text += chunk)).on('end', () => resolve(text))
          },
        )
        outgoing.on('error', reject).end(Buffer.alloc(3_000_000))
      })
    expect([await post('/unread'), await post('/begun'), await post('/unread')]).toEqual([
      '/unread',
      '/begun',
      '/unread',
    ])
    expect(sockets.size).toBe(1)
  })

  it('reads no more of a body than the handler requests', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const handle = toNodeHandler(async (request) => {
      if (request.method === 'GET') return new Response('other')
      const reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
      let received = (await reader.read()).value?.byteLength ?? 0
      await released
      for (let part = await reader.read(); !part.done; part = await reader.read()) received += part.value.byteLength
      return new Response(String(received))
    })
    let taken = () => 0
    const port = await serve((req, res) => {
      if (req.method === 'POST') taken = () => req.socket.bytesRead
      handle(req, res)
    })
    const total = 16 * 1024 * 1024
    const socket = await open(port)
    const answered = new Promise<string>((resolve) => {
      let text = ''
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk
      })
      socket.on('close', () => resolve(text))
    })
    socket.write(requestText(port, 'POST /', [`Content-Length: ${total}`]))
    socket.write(Buffer.alloc(total))
    // Time for it to take what it wants to.
    for (let i = 0; i < 50; i++) await exchange(port, requestText(port, 'GET /'))
    expect(taken()).toBeGreaterThan(0)
    expect(taken()).toBeLessThan(1024 * 1024)
    release()
    expect(await answered).toContain(String(total))
  })

  it('rejects a read of a body that is cut short', async () => {
    let failure: unknown
    const failed = new Promise<void>((resolve) => {
      const handler: FetchHandler = async (request) => {
        failure = await request.text().catch((error: unknown) => error)
        resolve()
        return new Response()
      }
      serve(toNodeHandler(handler)).then(async (port) => {
        const socket = await open(port)
        socket.write(requestText(port, 'POST /', ['Content-Length: 10'], '12345'), () => socket.destroy())
      })
    })
    await failed
    expect(failure).toBeInstanceOf(TypeError)
  })

  it('rejects a read of a body whose request the host has destroyed', async () => {
    let fail: (error: unknown) => void = () => {}
    const failed = new Promise((resolve) => {
      fail = resolve
    })
    let destroy = () => {}
    const handle = toNodeHandler(async (request) => {
      const reader = request.body?.getReader()
      await reader?.read()
      destroy()
      await reader?.read().catch(fail)
      return new Response()
    })
    const port = await serve((req, res) => {
      // Destroyed without an error: only its close is observable.
      destroy = () => req.on('error', () => {}).destroy()
      handle(req, res)
    })
    const socket = await open(port)
    socket.on('error', () => {})
    socket.write(requestText(port, 'POST /', ['Content-Length: 10'], '12345'))
    expect(await failed).toBeInstanceOf(TypeError)
  })
})

/** A stream that tells when it is cancelled. */
function cancellable(first?: string): { stream: ReadableStream<Uint8Array>; cancelled: Promise<void> } {
  let cancel = () => {}
  const cancelled = new Promise<void>((resolve) => {
    cancel = resolve
  })
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      if (first !== undefined) controller.enqueue(new TextEncoder().encode(first))
    },
    cancel,
  })
  return { stream, cancelled }
}

describe('a stream on Node', () => {
  it('sends its head before its first chunk', async () => {
    const port = await serve(toNodeHandler(() => new Response(cancellable().stream, { status: 203 })))
    const left = new AbortController()
    expect((await fetch(`http://127.0.0.1:${port}/`, { signal: left.signal })).status).toBe(203)
    left.abort()
  })

  it('is cancelled when it answers HEAD', async () => {
    const { stream, cancelled } = cancellable('unsent')
    const port = await serve(toNodeHandler(() => new Response(stream)))
    expect(await exchange(port, requestText(port, 'HEAD /'))).toMatchObject({ status: 200, body: '' })
    await cancelled
  })

  it('is cancelled when the client disconnects before the response', async () => {
    const { stream, cancelled } = cancellable('unsent')
    const port = await serve(
      toNodeHandler(async (request) => {
        await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
        return new Response(stream)
      }),
    )
    const socket = await open(port)
    socket.write(requestText(port, 'GET /'), () => setImmediate(() => socket.destroy()))
    await cancelled
  })

  it('may still enqueue after the client has disconnected', async () => {
    let leave = () => {}
    const left = new Promise<void>((resolve) => {
      leave = resolve
    })
    const port = await serve(
      toNodeHandler(({ signal }) => {
        const stream = new ReadableStream<Uint8Array>({
          start(controller) {
            signal.addEventListener('abort', () => controller.enqueue(new TextEncoder().encode('goodbye')))
          },
          cancel: leave,
        })
        return new Response(stream)
      }),
    )
    const socket = await open(port)
    socket.once('data', () => socket.destroy())
    socket.write(requestText(port, 'GET /'))
    await left
    expect((await exchange(port, requestText(port, 'HEAD /')))?.status).toBe(200)
  })

  it('ends after its Content-Length', async () => {
    const port = await serve(
      toNodeHandler(() => new Response(cancellable('hello').stream, { headers: { 'content-length': '5' } })),
    )
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const ask = () =>
      new Promise<number>((resolve, reject) => {
        const outgoing = httpRequest({ port, agent, host: '127.0.0.1' }, (res) => {
          res.resume().on('end', () => resolve(res.statusCode ?? 0))
        })
        outgoing.on('error', reject).end()
      })
    expect([await ask(), await ask()]).toEqual([200, 200])
  })
})
