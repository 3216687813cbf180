/** What of the Node adapter only HTTP/2 can show: pseudo headers, two names of one host, streams of one connection. */
import { connect, constants, createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type NodeHandler, toNodeHandler } from '../../src/adapters/node.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { apiKeyAuth } from '../../src/internal/http/auth.js'
import { toProblem } from '../../src/internal/http/problem.js'
import { PREFIX, subject } from './subject.js'

/** Serves `handler` over HTTP/2 until the test ends, and returns a session of a client. */
async function open(handler: NodeHandler) {
  const server = createServer((req, res) => handler(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    session.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const ask = (path: string, headers: OutgoingHttpHeaders = {}, body?: string) =>
    new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
      const stream = session.request({ ':path': path, ...headers }, { endStream: body === undefined })
      let answered: IncomingHttpHeaders & { ':status'?: number } = {}
      let text = ''
      stream.on('response', (given) => {
        answered = given
      })
      stream.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      stream.on('end', () => resolve({ status: answered[':status'] ?? 0, headers: answered, text }))
      stream.on('error', reject)
      if (body !== undefined) stream.end(body)
    })
  return { session, ask }
}

const echoed = (search = '', key: string | null = null) => JSON.stringify({ method: 'GET', path: '/echo', search, key })

describe('toNodeHandler on HTTP/2', () => {
  it('serves a router with its key, whether the host is in :authority or in Host', async () => {
    const addresses: unknown[] = []
    const router = createDiagnosticsRouter({
      inspectors: {},
      auth: apiKeyAuth('planted'),
      onAccess: ({ remote_address }) => addresses.push(remote_address),
    })
    const { ask } = await open(toNodeHandler(router))
    for (const host of [{}, { host: 'localhost' }, { ':authority': 'localhost', host: 'localhost' }])
      expect((await ask('/capabilities', { 'x-admin-key': 'planted', ...host })).status).toBe(200)
    expect((await ask('/capabilities')).status).toBe(403)
    expect(addresses).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.1'])
  })

  it('passes headers, query, bodies and cookies', async () => {
    const { ask } = await open(toNodeHandler(subject, { onError: null }))
    expect((await ask(`${PREFIX}/echo?a=1`, { 'x-admin-key': 'k' })).text).toBe(echoed('?a=1', 'k'))
    expect((await ask(`${PREFIX}/read`, { ':method': 'POST' }, '{"some":"id"}')).text).toBe('13')
    expect((await ask(`${PREFIX}/cookies`)).headers['set-cookie']).toEqual(['a=1; Path=/', 'b=2; Path=/'])
    expect(await ask(`${PREFIX}/echo`, { ':method': 'HEAD' })).toMatchObject({ status: 200, text: '' })
    expect(await ask(`${PREFIX}/empty`)).toMatchObject({ status: 204, text: '' })
    expect((await ask(`${PREFIX}/throw`)).status).toBe(500)
  })

  it.each([
    ['an :authority and another Host', { ':authority': 'localhost', host: 'evil.test' }],
    ['a malformed :authority', { ':authority': 'user@localhost' }],
  ])('answers 400 to %s', async (_, host) => {
    const { ask } = await open(toNodeHandler(subject))
    const { status, text } = await ask(`${PREFIX}/echo`, host)
    expect([status, JSON.parse(text)]).toEqual([400, toProblem('bad_request')])
  })

  it('checks :authority against allowedHosts', async () => {
    const { ask } = await open(toNodeHandler(subject, { allowedHosts: ['ops.example.org'] }))
    expect((await ask(`${PREFIX}/echo`)).status).toBe(403)
    expect((await ask(`${PREFIX}/echo`, { ':authority': 'ops.example.org' })).text).toBe(echoed())
  })

  it('aborts request.signal and cancels a stream when the client closes one stream of a connection', async () => {
    const { session, ask } = await open(toNodeHandler(subject))
    for (const [path, mark] of [
      ['late', 'aborted_at'],
      ['chunks', 'cancelled_at'],
      ['silence', 'cancelled_at'],
    ] as const) {
      const observed = async () => JSON.parse((await ask(`${PREFIX}/observed?name=${path}`)).text)
      const stream = session.request({ ':path': `${PREFIX}/${path}?name=${path}` })
      if (path === 'late') while ((await observed()).pulled === 0);
      else await new Promise((resolve) => stream.once('data', resolve))
      stream.on('error', () => {}).close(constants.NGHTTP2_CANCEL)
      while ((await observed())[mark] === null);
    }
  })

  it('sends a large stream whole, and pulls only what the client reads', async () => {
    const { session, ask } = await open(toNodeHandler(subject))
    const stream = session.request({ ':path': `${PREFIX}/chunks?name=h2` })
    await new Promise((resolve) => stream.once('response', resolve))
    let received = 0
    for await (const chunk of stream) received += (chunk as Buffer).length
    expect(received).toBe(64 * 1024 * 1024)
    expect(JSON.parse((await ask(`${PREFIX}/observed?name=h2`)).text)).toMatchObject({ pulled: 1024 })
  })
})
