/** What every host must do with a handler that it carries, over a real socket. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnostics, KEY, routerRows } from './diagnostics.js'
import type { Running } from './process.js'
import { type Expectation, rows } from './requests.js'
import { CAPABILITIES, parameters, respelled, type Spelling, WITH_KEY, withDots, withTwoSlashes } from './spellings.js'
import { CHUNK_BYTES, CHUNKS, type Observed, PREFIX, SECRET } from './subject.js'
import { exchange, header, open, requestText } from './wire.js'

export interface Difference {
  because: string
  expect: Expectation
}

export interface Host {
  name: string
  /** Why it cannot run here. */
  missing?: string | undefined
  start(): Promise<Running>
  /** The host's own route next to the handler, and its own not-found response. */
  own?: { notFound: string }
  /** Why no code of the handler's runs once the client has left a request that waits. */
  tornDown?: string
  /** What it makes of a path in another spelling. */
  spelling: Spelling
  /** By the name of the row. */
  differs?: Record<string, Difference>
}

/** Clients that leave one after the other. */
const LEAVERS = 5

const ROUTER_HEADERS = ['content-type', 'cache-control', 'x-content-type-options', 'referrer-policy', 'allow', 'etag']

export function battery(host: Host): void {
  const title = host.missing ? `${host.name} (skipped: ${host.missing})` : host.name
  describe.skipIf(host.missing !== undefined)(title, () => {
    let running: Running
    beforeAll(async () => {
      running = await host.start()
    })
    afterAll(() => running?.close())

    const get = (path: string) => exchange(running.port, requestText(running.port, `GET ${path}`))
    const observed = async (name: string): Promise<Observed> => {
      const answer = await get(`${PREFIX}/observed?name=${name}`)
      return JSON.parse(answer?.body ?? '')
    }
    /** Asks until `seen` holds; the test's own timeout ends it otherwise. */
    const until = async (name: string, seen: (state: Observed) => boolean): Promise<Observed> => {
      for (;;) {
        const state = await observed(name)
        if (seen(state)) return state
      }
    }

    it.each(rows)('answers $name', async ({ name, line, headers, body, expect: usual }) => {
      const expected = host.differs?.[name]?.expect ?? usual
      const answer = await exchange(running.port, requestText(running.port, line, headers, body))
      expect(answer?.status ?? null).toBe(expected.status)
      if (expected.body !== null) expect(answer?.body).toBe(expected.body)
      for (const [wanted, value] of Object.entries(expected.headers ?? {}))
        expect(answer?.headers.flatMap(([given, text]) => (given === wanted ? [text] : [])).join('|')).toBe(value)
      expect(JSON.stringify(answer)).not.toContain(SECRET)
    })

    it.each(routerRows)('answers $line as the router does ($headers)', async ({ line, headers }) => {
      const [method = '', path = ''] = line.split(' ')
      const given = headers.map((text) => text.split(': ') as [string, string])
      // No script may make a request with TRACE, nor need it: the router treats all methods but two alike.
      const init = { method: method === 'TRACE' ? 'DELETE' : method, headers: given }
      const expected = await diagnostics(new Request(`http://127.0.0.1${path}`, init))
      const answer = await exchange(running.port, requestText(running.port, line, headers))
      expect(answer?.status).toBe(expected.status)
      expect(answer?.body).toBe(Buffer.from(await expected.arrayBuffer()).toString('latin1'))
      for (const name of ROUTER_HEADERS)
        expect(answer && header(answer, name)).toBe(expected.headers.get(name) ?? undefined)
      expect(answer?.headers.some(([name]) => name.startsWith('access-control-'))).toBe(false)
    })

    it.each(['localhost#', '[::1', 'x:99999', ''])('answers 400 or 404 to the Host "%s" of a route', async (given) => {
      const headers = [`X-Admin-Key: ${KEY}`, `Host: ${given}`]
      const answer = await exchange(running.port, requestText(running.port, 'GET /admin/capabilities', headers))
      expect([400, 404]).toContain(answer?.status)
    })

    async function expectRefused(path: string, status: 400 | 404) {
      const answer = await exchange(running.port, requestText(running.port, `GET ${path}`, WITH_KEY))
      expect(answer?.status).toBe(status)
      expect(answer?.body).not.toContain('context_registry')
      if (status === 400) expect(JSON.parse(answer?.body ?? '')).toMatchObject({ status, code: 'bad_request' })
    }

    it.each([...respelled])('does not let the router answer %s', (path) => expectRefused(path, host.spelling.refused))

    it.each([...withTwoSlashes])('does not let the router answer %s', (path) =>
      expectRefused(path, host.spelling.dots ?? host.spelling.refused))

    it.each([...withDots])('does not serve %s, unless the runtime resolves it for the host too', async (path) => {
      const { resolves, dots, refused } = host.spelling
      if (!resolves || path.includes('//')) return expectRefused(path, dots ?? refused)
      const ask = (line: string) => exchange(running.port, requestText(running.port, line, WITH_KEY))
      expect((await ask(`GET ${path}`))?.body).toBe((await ask(`GET ${CAPABILITIES}`))?.body)
    })

    it('decodes a parameter once, however it is encoded', async () => {
      for (const path of parameters) {
        const answer = await exchange(running.port, requestText(running.port, `GET ${path}`, WITH_KEY))
        expect([answer?.status, JSON.parse(answer?.body ?? '').user_id]).toEqual([200, 'alice'])
      }
    })

    it('gives HEAD the length of the GET', async () => {
      const expected = (await get(`${PREFIX}/cookies`)) as NonNullable<Awaited<ReturnType<typeof get>>>
      const answer = await exchange(running.port, requestText(running.port, `HEAD ${PREFIX}/cookies`))
      expect(answer && header(answer, 'content-length')).toBe(header(expected, 'content-length'))
    })

    it('aborts a stream that fails, without details', async () => {
      const failure = fetch(`http://127.0.0.1:${running.port}${PREFIX}/broken`).then((answer) => answer.text())
      const told = await failure.catch((error: Error) => error)
      expect(told).toBeInstanceOf(Error)
      expect(String(told)).not.toContain(SECRET)
      expect((await get(`${PREFIX}/echo`))?.status).toBe(200)
    })

    it('leaves other paths to the host', async () => {
      if (host.own) {
        expect(await get('/hosts-own')).toMatchObject({ status: 200, body: 'own' })
        const missing = await get('/elsewhere')
        expect(missing?.status).toBe(404)
        expect(missing?.body).toContain(host.own.notFound)
      } else {
        expect(await get('/elsewhere')).toMatchObject({ status: 404, body: '"not found"' })
      }
    })

    /** Has clients leave; resolves once the handler has noticed each of them. */
    async function leave(path: string, mark: keyof Observed): Promise<void> {
      for (let i = 0; i < LEAVERS; i++) {
        const name = `${path.slice(1)}-${i}`
        const socket = await open(running.port)
        socket.on('error', () => {})
        const first = new Promise((resolve) => socket.once('data', resolve))
        socket.write(requestText(running.port, `GET ${PREFIX}${path}?name=${name}`))
        if (path === '/late') await until(name, ({ pulled }) => pulled > 0)
        else await first
        socket.destroy()
        expect((await until(name, (now) => now[mark] !== null))[mark]).not.toBeNull()
      }
    }

    if (host.tornDown) {
      it(`keeps running when clients disconnect from pending requests: ${host.tornDown}`, async () => {
        const socket = await open(running.port)
        socket.write(requestText(running.port, `GET ${PREFIX}/late?name=torn`))
        await until('torn', (state) => state.pulled > 0)
        socket.destroy()
        expect(await observed('torn')).toMatchObject({ aborted_at: null })
      })
    } else {
      it('aborts request.signal when the client leaves before the answer', async () => {
        await leave('/late', 'aborted_at')
      })

      it('cancels a silent stream when the client leaves', async () => {
        await leave('/silence', 'cancelled_at')
      })
    }

    it('cancels a busy stream when the client leaves', async () => {
      await leave('/chunks', 'cancelled_at')
    })

    it('stops pulling when the reader stops, and loses nothing when it resumes', async () => {
      const socket = await open(running.port)
      socket.write(requestText(running.port, `GET ${PREFIX}/chunks?name=stalled`))
      await new Promise((resolve) => socket.once('readable', resolve))
      let pulled = -1
      // Steady over many round trips: nothing moves but what this test moves.
      for (let steady = 0; steady < 30; ) {
        const state = await observed('stalled')
        steady = state.pulled === pulled ? steady + 1 : 0
        pulled = state.pulled
      }
      expect(pulled).toBeGreaterThan(0)
      expect(pulled).toBeLessThan(CHUNKS)
      let received = 0
      for await (const chunk of socket) received += (chunk as Buffer).length
      expect(received).toBeGreaterThanOrEqual(CHUNKS * CHUNK_BYTES)
      expect(await observed('stalled')).toMatchObject({ pulled: CHUNKS, cancelled_at: null })
    })
  })
}
