/** The administrator's key in the hands of the page: where it comes from, where it never stays, and what becomes of one that is refused. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
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

inChromium('the key of the viewer', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(createWorld())
  })
  beforeEach(() => host.mend())
  afterAll(() => host.close())

  const shown = (page: Page) => page.getByText('all sources answer').waitFor()
  const form = (page: Page, title: string) => page.getByRole('heading', { name: title }).waitFor()

  async function enter(page: Page, key: string, remember = false): Promise<void> {
    await page.getByLabel('Administrator', { exact: false }).first().fill(key)
    if (remember) await page.getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Look' }).click()
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
  ])('is taken from a link as it stands there: %s', async (_, given, key) => {
    const page = await open('about:blank', { home: host.page, refusals: true })
    const sent = page.waitForRequest((request) => request.headers()['x-admin-key'] !== undefined)
    await page.goto(`${host.page}#key=${given}`)
    expect((await sent).headers()['x-admin-key']).toBe(key)
  })

  it('is asked for where there is none, and the page goes on where its address was', async () => {
    const page = await open(`${host.page}#/sites/notes-1`, { refusals: true })
    await form(page, 'A key is needed')
    expect(await page.getByLabel('Administrator').first().getAttribute('type')).toBe('password')
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
    host.mend()
    await enter(page, KEY)
    await shown(page)
  })
})
