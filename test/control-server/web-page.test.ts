/** Holds the control server against web pages in a real browser, whose reader knows nothing of it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { isChromiumMissing, launchChromium } from '../chromium.js'
import { startControl, TOKEN } from './wire.js'

// A name whose DNS an attacker controls.
const REBOUND = '--host-resolver-rules=MAP rebound.test 127.0.0.1'

describe.skipIf(isChromiumMissing)('a web page (needs chromium)', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium(REBOUND)
  })
  afterAll(() => browser?.close())

  /** A page of another local program, and a control server with a site. */
  async function open() {
    const { server, sites, published, ask } = await startControl()
    await ask('PUT', '/sites/notes', { mode: 'observe' })
    const page = await browser.newPage()
    onTestFinished(() => page.close())
    const elsewhere = createServer((_request, response) => response.end('<title>elsewhere</title>')).listen(
      0,
      '127.0.0.1',
    )
    await new Promise((resolve) => elsewhere.on('listening', resolve))
    onTestFinished(() => {
      elsewhere.close()
      elsewhere.closeAllConnections()
    })
    return {
      server,
      sites,
      published,
      page,
      elsewhere: `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`,
    }
  }

  it.each([
    ['a simple form of JSON', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' } }],
    ['a request that needs a preflight', { method: 'PUT', headers: { 'content-type': 'application/json' } }],
    [
      'the token itself',
      { method: 'POST', headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' } },
    ],
  ])('of another program can neither read nor change anything, with %s', async (_what, init) => {
    const { server, sites, published, page, elsewhere } = await open()
    await page.goto(elsewhere)
    const seen = await page.evaluate(
      ([url, options]) =>
        fetch(url as string, { ...(options as RequestInit), body: '{"name":"note_changed","mode":"cooperative"}' })
          .then(({ type, status }) => `${type} ${status}`)
          .catch(() => 'refused'),
      [`${server.url}/sites/notes${init.method === 'POST' ? '/events' : ''}`, init] as const,
    )
    expect(['refused', 'opaque 0']).toContain(seen)
    expect(published).toEqual([])
    expect(await sites.get('notes')).toMatchObject({ mode: 'observe' })
  })

  it('is not served under a foreign name that resolves to this machine', async () => {
    const { server, page } = await open()
    const answer = await page.goto(`http://rebound.test:${server.port}/sites/notes`)
    expect(answer?.status()).toBe(403)
    expect(await answer?.json()).toMatchObject({ code: 'bad_host' })
  })

  it('opened from the address bar still needs the token', async () => {
    const { server, page } = await open()
    expect((await page.goto(`${server.url}/sites/notes`))?.status()).toBe(401)
  })
})
