/** The administrator's key in the hands of the page: where it comes from, where it never stays, and what becomes of one that is refused. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { addressOf, pathWithQuery, urlBelow } from '../../src/dashboard/page/address.js'
import { createRandom } from '../campaign/fuzz-random.js'
import { KEY, PREFIX } from '../diagnostics/subject.js'
import { createWorld } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, type ViewedHost } from './host.js'

const FORBIDDEN = { type: 'urn:relayscope:problem:forbidden', title: 'Forbidden', status: 403, code: 'forbidden' }
const forbidden = () =>
  new Response(JSON.stringify(FORBIDDEN), { status: 403, headers: { 'content-type': 'application/problem+json' } })

/** Everything that the browser would show or keep of where the tab has been. */
const keptOf = (page: Page) =>
  page.evaluate(() => ({
    href: location.href,
    entries: history.length,
    tab: { ...sessionStorage },
    browser: { ...localStorage },
    cookie: document.cookie,
    text: document.documentElement.outerHTML,
  }))

/** Pieces of fragments that a page and a URL may read differently. */
const PIECES = [
  ...String.raw`/ // \ .. . %2e %2E. %5c %2f @ : :8443 # ? & = % %00 [ | é`.split(' '),
  ...'connections users ada summary evil.test http: ops cursor'.split(' '),
  ...[' ', '\t', '\n', '\u202e'],
]
/** Fragments that once led the key elsewhere, or that look as if they could. */
const HOSTILE = [
  ...String.raw`@evil.test/ @evil.test/connections/x .evil.test/ :8443/ \\evil.test/ x/../../secret`.split(' '),
  ...String.raw`/connections/..\..\..\secret /connections/\..\..\..\secret /connections/a\..`.split(' '),
  ...String.raw`/users/%2e%2e\..\../summary /../../secret /connections/.. /connections/%2E%2e`.split(' '),
]

it('is sent to no URL but those of the router, whatever the fragment says', () => {
  const random = createRandom(20_260_102, 0)
  const fragments = Array.from({ length: 10_000 }, (_, i) => {
    const pieces = Array.from({ length: 1 + random.below(9) }, () => random.pick(PIECES))
    return `${i % 2 ? '/' : ''}${i % 3 ? '' : 'connections/'}${pieces.join('')}`
  })
  let accepted = 0
  // As the text of the fragment, and as the browser spells it.
  for (const api of ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/ops/diagnostics', 'https://relay.example/o%20ps'])
    for (const fragment of [...fragments, ...HOSTILE])
      for (const hash of [fragment, new URL(`#${fragment}`, api).hash.slice(1)]) {
        const { path, query } = addressOf(hash)
        const url = urlBelow(api, pathWithQuery(path, query))
        if (url === null) continue
        accepted++
        const { origin, pathname, username, password, hash: rest } = new URL(url)
        const prefix = new URL(`${api}/`).pathname
        expect([hash, origin, pathname.startsWith(prefix)]).toEqual([hash, new URL(api).origin, true])
        expect([hash, username, password, rest]).toEqual([hash, '', '', ''])
        // What the page takes for one segment is one.
        expect([hash, pathname.split('/').length]).toEqual([hash, (prefix + path.slice(1)).split('/').length])
      }
  expect(accepted).toBeGreaterThan(1_000)
  for (const fragment of HOSTILE)
    expect([fragment, urlBelow('http://127.0.0.1:8080', fragment)]).toEqual([fragment, null])
  expect(urlBelow('http://h/ops', '/connections/a%2Fb?status=connected')).toBe(
    'http://h/ops/connections/a%2Fb?status=connected',
  )
})

inChromium('the key of the viewer', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(createWorld())
  })
  beforeEach(() => host.repair())
  afterAll(() => host.close())

  const shown = (page: Page) => page.getByText('all sources answer').waitFor()
  const form = (page: Page, title: string) => page.getByRole('heading', { name: title }).waitFor()

  async function enter(page: Page, key: string, remember = false): Promise<void> {
    await page.getByLabel('Administrator').fill(key)
    if (remember) await page.getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Open' }).click()
  }

  it('is taken out of the address bar and the history, and kept nowhere', async () => {
    const page = await open('about:blank', { home: host.page, refusals: true })
    await page.goto(`${host.page}#key=${KEY}`)
    await shown(page)
    const { href, entries, tab, browser, cookie, text } = await keptOf(page)
    expect(href).toBe(`${host.page}#/`)
    expect([tab, browser, cookie]).toEqual([{}, {}, ''])
    expect(text).not.toContain(KEY)
    // The blank page and this one: there is no entry that still has it.
    expect(entries).toBe(2)
    await page.goBack()
    await page.goForward()
    await page.waitForURL(`${host.page}#/`)
    expect(page.url()).not.toContain(KEY)
  })

  it('is taken from a link that is followed where the page is open already', async () => {
    const page = await open(host.page, { refusals: true })
    await form(page, 'A key is needed')
    await page.evaluate((hash) => {
      location.hash = hash
    }, `#key=${KEY}`)
    await shown(page)
    expect(page.url()).toBe(`${host.page}#/`)
    await page.goBack()
    await expect.poll(() => page.url()).not.toContain(KEY)
  })

  it.each([
    ['as base64 has it', 'q+8Zb/1s+w==', 'q+8Zb/1s+w=='],
    ['with what else begins a parameter', 'a&b=c', 'a&b=c'],
    ['encoded', encodeURIComponent('50% + "all"'), '50% + "all"'],
    ['that is no encoding', '50%', '50%'],
  ])('is taken from a link without decoding errors: %s', async (_, given, key) => {
    const page = await open('about:blank', { home: host.page, refusals: true })
    const sent = page.waitForRequest((request) => request.headers()['x-admin-key'] !== undefined)
    await page.goto(`${host.page}#key=${given}`)
    expect((await sent).headers()['x-admin-key']).toBe(key)
  })

  it('is requested if missing, and the page continues at its address', async () => {
    const page = await open(`${host.page}#/sites/notes-1`, { refusals: true })
    await form(page, 'A key is needed')
    const field = page.getByLabel('Administrator')
    expect(await field.getAttribute('type')).toBe('password')
    expect(await field.evaluate((element) => element === document.activeElement)).toBe(true)
    // Typing and pressing Enter is enough; letters that are shortcuts elsewhere are part of the key.
    expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).type)).toBe('password')
    await page.keyboard.press('Tab')
    await page.keyboard.press('?')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await enter(page, KEY)
    await page.getByText('archive_note').waitFor()
    expect(page.url()).toBe(`${host.page}#/sites/notes-1`)
    const { tab, browser, text } = await keptOf(page)
    expect([tab, browser]).toEqual([{}, {}])
    expect(text).not.toContain(KEY)
    await page.reload()
    await form(page, 'A key is needed')
  })

  it('is refused where it is the wrong one, which says so and keeps nothing of it', async () => {
    const page = await open(host.page, { refusals: true })
    await form(page, 'A key is needed')
    await enter(page, 'horse', true)
    await form(page, 'The router refused')
    expect((await keptOf(page)).tab).toEqual({})
    expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).type)).toBe('password')
    await enter(page, KEY)
    await shown(page)
  })

  it('is kept until the tab is closed where that was asked for, and by no other tab', async () => {
    const page = await open(host.page, { refusals: true })
    await form(page, 'A key is needed')
    await enter(page, KEY, true)
    await shown(page)
    const { tab, browser } = await keptOf(page)
    expect([tab, browser]).toEqual([{ 'relayscope.key': KEY }, {}])
    await page.reload()
    await shown(page)
    const other = await page.context().newPage()
    await other.goto(host.page)
    await form(other, 'A key is needed')
  })

  it('is asked for again when the router refuses it later, and nothing is asked meanwhile', async () => {
    const page = await open(host.page, { key: KEY, clock: true, refusals: true })
    await shown(page)
    host.break(forbidden)
    await form(page, 'The router refused')
    expect(await page.getByText('all sources answer').count()).toBe(0)
    expect((await keptOf(page)).tab).toEqual({})
    const before = host.asked.length
    await page.clock.runFor(10_000)
    expect(host.asked.length).toBe(before)
    host.repair()
    await enter(page, KEY)
    await shown(page)
  })

  it('forgets the records that were opened with the previous key', async () => {
    const page = await open(`${host.page}#/connections/conn-1`, { key: KEY, refusals: true })
    await page.locator('main dl').first().waitFor()
    await page.goto(`${host.page}#/connections`)
    await page.locator('main tbody tr').first().waitFor()
    await page.keyboard.press('/')
    await page.locator('.hits a', { hasText: 'conn-1' }).waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${host.page}#key=${KEY}`)
    await shown(page)
    await page.keyboard.press('/')
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('search')
    expect(await page.locator('.hits a').count()).toBe(0)
  })

  it('goes nowhere but to the router from a link to anything else', async () => {
    const page = await open(host.page, { key: KEY, clock: true, refusals: true })
    await shown(page)
    const base = `${new URL(host.page).origin}${PREFIX}/`
    const sent: string[] = []
    // In a menu that is closed.
    const copyCurl = page.locator('.tools button', { hasText: 'copy curl' })
    page.on('request', (request) => {
      if (request.headers()['x-admin-key'] !== undefined) sent.push(request.url())
    })
    for (const fragment of HOSTILE) {
      await page.evaluate((hash) => {
        location.hash = hash
      }, fragment)
      await page.locator('main h1', { hasText: 'No page shows this' }).waitFor()
      expect([fragment, await copyCurl.count()]).toEqual([fragment, 0])
      await page.clock.runFor(1_000)
      await page.goto(`${host.page}#/users`)
      await copyCurl.waitFor({ state: 'attached' })
    }
    await expect.poll(() => sent.length).toBeGreaterThan(0)
    expect(sent.filter((url) => !url.startsWith(base) || /secret|evil/.test(url))).toEqual([])
  })
})
