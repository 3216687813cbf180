/** Tests the control server's socket: who may connect, how slow clients are handled, how it closes. */
import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import { openSocket, sendRaw, startControl, TOKEN } from './wire.js'

const AUTHORIZED = `Authorization: Bearer ${TOKEN}`

describe('starting', () => {
  const parts = {
    sites: { get: async () => null, put: () => Promise.reject(), delete: async () => false },
    publisher: { publish: () => Promise.reject() },
  }

  it.each([
    '0.0.0.0',
    '::',
    '',
    '192.168.0.1',
    'example.test',
    'localhost.evil.test',
  ])('refuses the host %j', async (host) => {
    await expect(startCooperativeSiteControlServer({ token: TOKEN, ...parts, host })).rejects.toThrow(TypeError)
  })

  it.each([
    '',
    'fifteen-letters',
    'has spaces in it and is long',
    'ein-langes-pässwort',
    'with\nline-break-in-it',
  ])('refuses the token %j', async (token) => {
    await expect(startCooperativeSiteControlServer({ token, ...parts })).rejects.toThrow(TypeError)
  })

  it('refuses an invalid owner', async () => {
    await expect(startCooperativeSiteControlServer({ token: TOKEN, ...parts, owner: 'a\nb' })).rejects.toThrow(
      TypeError,
    )
  })

  it('reports a port that is in use', async () => {
    const { server } = await startControl()
    const { port } = server
    const again = startCooperativeSiteControlServer({ token: TOKEN, ...parts, port })
    await expect(again).rejects.toThrow(`port ${port} on 127.0.0.1 is already in use`)
  })

  it('listens at the address it returns', async () => {
    const { server } = await startControl()
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`)
    const probe = createServer().listen(0, '::1')
    const hasIpv6 = await new Promise((resolve) => {
      probe.on('listening', () => resolve(true)).on('error', () => resolve(false))
    })
    probe.close()
    if (!hasIpv6) return
    const { server: sixth, ask } = await startControl({ host: '::1' })
    expect(sixth.url).toBe(`http://[::1]:${sixth.port}`)
    expect((await ask('DELETE', '/sites/x')).status).toBe(404)
  })
})

describe('the guard over the wire', () => {
  const line = 'DELETE /sites/notes HTTP/1.1'

  it('accepts an authenticated caller under each of its names', async () => {
    const { server } = await startControl()
    for (const name of ['localhost', '127.0.0.1', '[::1]']) {
      const answer = await sendRaw(server.port, [line, `Host: ${name}:${server.port}`, AUTHORIZED])
      expect(answer.status).toBe(404)
      expect(answer.text).toContain('"code":"not_found"')
    }
  })

  it.each([
    [
      'a forwarding header',
      (port: number) => [`Host: localhost:${port}`, 'X-Forwarded-For: 127.0.0.1'],
      'forwarded_request',
    ],
    ['a foreign Host', () => ['Host: evil.test'], 'bad_host'],
    ['another port', () => ['Host: localhost:1'], 'bad_host'],
    ['no Host', () => [], 'bad_host'],
    ['two Hosts', (port: number) => [`Host: localhost:${port}`, `Host: localhost:${port}`], 'bad_host'],
    ['an Origin', (port: number) => [`Host: localhost:${port}`, `Origin: http://localhost:${port}`], 'bad_origin'],
    ['a cross-site fetch', (port: number) => [`Host: localhost:${port}`, 'Sec-Fetch-Site: cross-site'], 'bad_origin'],
  ])('answers 403 to %s, with a valid token too', async (_what, headers, code) => {
    const { server } = await startControl()
    const answer = await sendRaw(server.port, [line, ...headers(server.port), AUTHORIZED])
    expect(answer.status).toBe(403)
    expect(answer.text).toContain(`"code":"${code}"`)
    expect(answer.text.toLowerCase()).not.toContain('access-control')
  })

  it('answers 401 with a challenge to no token, a wrong one, Basic, and one in the query', async () => {
    const { server } = await startControl()
    const host = `Host: localhost:${server.port}`
    const wrong = [
      [line, host],
      [line, host, 'Authorization: Bearer wrong'],
      [line, host, `Authorization: Basic ${btoa(`x:${TOKEN}`)}`],
      [`DELETE /sites/notes?access_token=${TOKEN} HTTP/1.1`, host],
      ['DELETE /nope HTTP/1.1', host],
      ['TRACE /sites/notes HTTP/1.1', host],
    ]
    for (const lines of wrong) {
      const answer = await sendRaw(server.port, lines)
      expect(answer.status).toBe(401)
      expect(answer.text.toLowerCase()).toContain('www-authenticate: bearer\r\n')
      expect(answer.text).not.toContain(TOKEN)
    }
  })

  it('interprets a target in only one way', async () => {
    const { server } = await startControl()
    const host = `Host: localhost:${server.port}`
    for (const target of ['http://evil.test/sites/notes', '//sites/notes', '/\\sites', '*']) {
      const answer = await sendRaw(server.port, [`DELETE ${target} HTTP/1.1`, host, AUTHORIZED])
      expect([400, 404]).toContain(answer.status)
      expect(answer.text).not.toContain('evil')
    }
    expect((await sendRaw(server.port, ['TRACE /sites/notes HTTP/1.1', host, AUTHORIZED])).status).toBe(405)
  })
})

describe('slow connections', () => {
  it('are closed when they are idle, and when they read nothing', async () => {
    const { server } = await startControl({ timeouts: { keepAliveMs: 50, stallMs: 1_000 } })
    const { socket, closed } = await openSocket(server.port)
    socket.write(`DELETE /sites/x HTTP/1.1\r\nHost: localhost:${server.port}\r\n\r\n`)
    expect(await closed).toContain('401')
  })

  // Far longer than a busy machine takes to serve a client that is not slow.
  const timeouts = { headersMs: 1_000, requestMs: 2_000 }

  it('are closed during headers, body or silence, while others are served', async () => {
    const { server, ask } = await startControl({ timeouts })
    const silent = await Promise.all(Array.from({ length: 500 }, () => openSocket(server.port)))
    const dripping = await openSocket(server.port)
    dripping.socket.write('DELETE /sites/x HTTP/1.1\r\n')
    let served = 0
    let open = true
    const drip = setInterval(() => dripping.socket.write('X-A: b\r\n'), 30)
    onTestFinished(() => clearInterval(drip))
    const stalled = await openSocket(server.port)
    const head = ['PUT /sites/x HTTP/1.1', `Host: localhost:${server.port}`, AUTHORIZED]
    stalled.socket.write(`${[...head, 'Content-Type: application/json', 'Content-Length: 9'].join('\r\n')}\r\n\r\n{`)
    const well = (async () => {
      while (open) {
        expect((await ask('DELETE', '/sites/x')).status).toBe(404)
        served++
      }
    })()
    await Promise.all([...silent, dripping, stalled].map(({ closed }) => closed))
    open = false
    await well
    expect(served).toBeGreaterThan(0)
  })
})

describe('under a flood', () => {
  it('silent connections are closed to make room, the oldest first', async () => {
    // None of them is to leave by itself, however long it takes to open them all.
    const { server, ask } = await startControl({ timeouts: { headersMs: 120_000, requestMs: 120_000 } })
    const oldest = await openSocket(server.port)
    // A few at a time: what overflows the backlog is accepted in no particular order.
    for (let opened = 0; opened < 512; opened += 64)
      await Promise.all(Array.from({ length: 64 }, () => openSocket(server.port)))
    expect(await oldest.closed).toBe('')
    expect((await ask('DELETE', '/sites/x')).status).toBe(404)
  })

  it('connections without a token that read no answers lock out no other client', async () => {
    const { server, ask } = await startControl()
    const flood = `GET / HTTP/1.1\r\nHost: localhost:${server.port}\r\n\r\n`.repeat(200)
    for (let opened = 0; opened < 640; opened += 64)
      await Promise.all(
        Array.from({ length: 64 }, async () => {
          const { socket } = await openSocket(server.port)
          socket.pause()
          socket.write(flood)
        }),
      )
    // Of those that say nothing yet the oldest makes room, which may be this one while others are still let in.
    await expect.poll(async () => (await ask('DELETE', '/sites/x').catch(() => null))?.status).toBe(404)
  })

  it('a wrong token is refused before any of the body is read', async () => {
    const { server } = await startControl()
    const { socket } = await openSocket(server.port)
    const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))))
    const head = ['PUT /sites/x HTTP/1.1', `Host: localhost:${server.port}`, 'Content-Type: application/json']
    // The body is announced and never sent: a server that waits for it does not answer.
    socket.write(
      [...head, 'Authorization: Bearer another-horse-battery', 'Content-Length: 250000', '', ''].join('\r\n'),
    )
    expect(await answer).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('many header lines cannot hide a forbidden one', async () => {
    const { server } = await startControl()
    const lines = Array.from({ length: 1_200 }, () => 'a:')
    const own = `Host: localhost:${server.port}`
    const hidden: [string, string][] = [
      ['X-Forwarded-For: 8.8.8.8', 'forwarded_request'],
      [own, 'bad_host'],
      ['Origin: http://evil.test', 'bad_origin'],
      ['Sec-Fetch-Site: cross-site', 'bad_origin'],
    ]
    for (const [header, code] of hidden) {
      const answer = await sendRaw(server.port, ['DELETE /sites/x HTTP/1.1', own, AUTHORIZED, ...lines, header])
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining(`"code":"${code}"`)])
    }
  })
})

describe('close', () => {
  it('closes idle sockets immediately, completes a response, and may be called twice', async () => {
    const answer = { accepted: true, duplicate: false, message_id: 'm', stream: 's', published: true }
    let asks = () => {}
    let publish = (_answer: never) => {}
    const isAsked = new Promise<void>((resolve) => {
      asks = resolve
    })
    const publisher = {
      publish: () =>
        new Promise<never>((resolve) => {
          publish = resolve
          asks()
        }),
    }
    const { server, ask, sites } = await startControl({ publisher })
    await sites.put({ mode: 'observe', site_id: 'notes', owner: 'local' })
    const silent = await openSocket(server.port)
    const used = await openSocket(server.port)
    used.socket.write(`DELETE /sites/x HTTP/1.1\r\nHost: localhost:${server.port}\r\n\r\n`)
    await new Promise((resolve) => used.socket.once('data', resolve))
    const asked = ask('POST', '/sites/notes/events', { name: 'x' })
    await isAsked
    const closing = server.close()
    expect(server.close()).toBe(closing)
    await Promise.all([silent.closed, used.closed])
    publish({ ...answer, not_published_reason: null } as never)
    expect((await asked).status).toBe(202)
    await closing
    await expect(fetch(server.url)).rejects.toThrow()
  })

  it('does not wait for a request that never ends', async () => {
    const { server } = await startControl()
    const stalled = await openSocket(server.port)
    const head = ['PUT /sites/x HTTP/1.1', `Host: localhost:${server.port}`, AUTHORIZED, 'Expect: 100-continue']
    stalled.socket.write(`${[...head, 'Content-Type: application/json', 'Content-Length: 9'].join('\r\n')}\r\n\r\n{`)
    await new Promise((resolve) => stalled.socket.once('data', resolve))
    expect(await server.close()).toEqual({ aborted: 1 })
    await stalled.closed
  })
})
