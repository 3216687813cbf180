/** The viewer by keys alone. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { connection, createWorld, NOW } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, startViewedOnce, type ViewedHost } from './host.js'

inChromium('the viewer by keys', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(createWorld())
  })
  afterAll(() => host.close())

  /** The record of a focused row, or the text of what has the focus. */
  const focused = (page: Page) =>
    page.evaluate(() => {
      const element = document.activeElement as HTMLElement | null
      return element?.matches('.who') ? element.title : element?.textContent
    })
  const press = async (page: Page, ...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const isAt = (page: Page, address: string) => expect.poll(() => page.url()).toBe(`${host.page}#${address}`)

  it('goes to every page of the navigation, as the list of keys says', async () => {
    const page = await open(host.page, { key: KEY })
    await page.locator('nav.views a').first().waitFor()
    await press(page, '?')
    const dialog = page.getByRole('dialog', { name: 'Keys' })
    await dialog.waitFor()
    // Its first line is in view, not its button.
    expect(await dialog.evaluate((element) => element.scrollTop)).toBe(0)
    const goals: { keys: string[]; title: string }[] = await dialog.locator('dl > div').evaluateAll((rows) =>
      rows.map((row) => ({
        keys: [...row.querySelectorAll('kbd')].map((key) => key.textContent ?? ''),
        title: row.querySelector('dd')?.textContent ?? '',
      })),
    )
    await press(page, 'Escape')
    await dialog.waitFor({ state: 'detached' })
    const going = goals.filter(({ keys }) => keys[0] === 'g')
    expect(going.map(({ title }) => title).sort()).toEqual((await page.locator('nav.views a').allTextContents()).sort())
    expect(new Set(going.map(({ keys }) => keys[1])).size).toBe(going.length)
    for (const { keys, title } of going) {
      await press(page, ...keys)
      await page.locator('nav.views [aria-current=page]', { hasText: title }).waitFor()
    }
  })

  it('opens the list of keys once, and closes it by its button too', async () => {
    const page = await open(host.page, { key: KEY })
    await page.locator('nav.views a').first().waitFor()
    await press(page, '?', '?')
    const dialog = page.getByRole('dialog', { name: 'Keys' })
    await dialog.waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'keys' }).click()
    await dialog.waitFor()
  })

  it('moves along the rows and opens one', async () => {
    const page = await open(`${host.page}#/connections?order=oldest`, { key: KEY })
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    await press(page, 'j')
    expect(await focused(page)).toBe('conn-1')
    await press(page, 'j', 'j', 'k')
    expect(await focused(page)).toBe('conn-2')
    await press(page, 'k', 'k')
    expect(await focused(page)).toBe('conn-1')
    await press(page, ...Array.from({ length: 9 }, () => 'j'))
    expect(await focused(page)).toBe('conn-6')
    await press(page, 'Enter')
    await isAt(page, '/connections/conn-6')
  })

  it('turns to the record before or after this one, in the order of the list that it was opened in', async () => {
    const page = await open(`${host.page}#/connections?order=oldest`, { key: KEY })
    await page.getByRole('link', { name: 'conn-5' }).click()
    await isAt(page, '/connections/conn-5')
    await press(page, ']')
    await isAt(page, '/connections/conn-6')
    // It is the last record.
    await press(page, ']', '[')
    await isAt(page, '/connections/conn-5')
    await page.locator('main h1', { hasText: /^Connection$/ }).waitFor()
    await page.goBack()
    await isAt(page, '/connections/conn-6')
  })

  it('goes to the first filter, where letters are letters, and out of it again', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    await press(page, 'e')
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('filter')
    const field = page.locator('main .filters input')
    await field.focus()
    await page.keyboard.type('gp?jalice')
    expect(await field.inputValue()).toBe('gp?jalice')
    await isAt(page, '/connections')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await field.fill('bob')
    await press(page, 'Escape')
    expect(await field.evaluate((element) => element === document.activeElement)).toBe(false)
    await press(page, 'g', 'n')
    await isAt(page, '/delivery/nodes')
  })

  it('searches for any id, and opens what the router finds', async () => {
    const page = await open(`${host.page}#/connections/conn-1`, { key: KEY })
    await page.locator('main h1', { hasText: 'Connection' }).waitFor()
    const field = page.getByLabel('Search for any id')
    for (const key of ['/', 'Control+k']) {
      await press(page, key)
      await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true)
      await press(page, 'Escape')
      await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(false)
    }
    await press(page, '/')
    // What the tab has opened is there before anything is typed.
    await page.locator('.hits').getByText('conn-1').waitFor()
    // What the router finds: an id of any family, and users by how they begin.
    await page.keyboard.type('bo')
    const hits = page.locator('.hits a')
    await hits.filter({ hasText: /^user bob$/ }).waitFor()
    await field.fill('conn-5')
    await hits.filter({ hasText: 'connection' }).waitFor()
    await press(page, 'ArrowDown')
    expect(await focused(page)).toBe(await hits.first().textContent())
    await hits.filter({ hasText: /^connection / }).click()
    await isAt(page, '/connections/conn-5')
    await field.fill('no-such-id')
    await page.locator('.hits').getByText('Nothing has this id.').waitFor()
    await field.fill('over-2')
    // Before the answer has come: the first hit of it is opened.
    await press(page, 'Enter')
    await isAt(page, '/rpc/ended/over-2')
    await press(page, '/')
    await page.keyboard.type('comma')
    await press(page, 'Enter')
    await isAt(page, '/delivery/commands')
  })

  it('does not take the focus from a search that began before the page was there', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await page.locator('main h1', { hasText: 'Connections' }).waitFor()
    // The address changes at once, and the page after the event of that.
    await page.evaluate(() => {
      location.hash = '#/users'
      document.querySelector<HTMLElement>('#search')?.focus()
    })
    await page.locator('main h1', { hasText: 'Users' }).waitFor()
    await page.keyboard.type('comma')
    expect(await page.getByLabel('Search for any id').inputValue()).toBe('comma')
  })

  it('finds its place again on the way back, and begins at the heading on the way there', async () => {
    const page = await open(`${host.page}#/connections?order=oldest`, {
      key: KEY,
      viewport: { width: 900, height: 320 },
    })
    await page.getByRole('link', { name: 'conn-6' }).waitFor()
    await press(page, ...Array.from({ length: 6 }, () => 'j'))
    expect(await focused(page)).toBe('conn-6')
    const placeOf = () => page.evaluate(() => [scrollY, document.querySelector('main .tall')?.scrollTop ?? 0])
    await expect.poll(async () => (await placeOf()).some((y) => y > 0)).toBe(true)
    const place = await placeOf()
    await press(page, 'Enter')
    await page.locator('main h1', { hasText: /^Connection$/ }).waitFor()
    await expect.poll(() => focused(page)).toBe('Connection')
    expect(await page.evaluate(() => scrollY)).toBe(0)
    await page.goBack()
    await expect.poll(() => focused(page)).toBe('conn-6')
    await expect.poll(placeOf).toEqual(place)
  })

  it('finds a row where it was in the window, though others have come above it since', async () => {
    const world = createWorld()
    const add = (name: string, ms: number) =>
      world.connections.push(connection({ connection_id: name, connected_at: new Date(NOW + ms).toISOString() }))
    for (let i = 0; i < 60; i++) add(`many-${i}`, i * 1_000 - 600_000)
    const own = await startViewedOnce(world)
    const page = await open(`${own.page}#/connections`, { key: KEY, viewport: { width: 1_280, height: 600 } })
    const row = page.getByRole('link', { name: 'many-20' })
    await row.scrollIntoViewIfNeeded()
    await row.focus()
    const topOf = async () => Math.round((await row.boundingBox())?.y ?? -1)
    const top = await topOf()
    await press(page, 'Enter')
    await page.locator('main h1', { hasText: /^Connection$/ }).waitFor()
    for (let i = 0; i < 20; i++) add(`new-${i}`, i)
    await page.goBack()
    await expect.poll(() => focused(page)).toBe('many-20')
    await expect.poll(async () => Math.abs((await topOf()) - top)).toBeLessThan(2)
  })

  it('skips to the content', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    await press(page, 'Tab')
    expect(await focused(page)).toBe('Skip to content')
    await press(page, 'Enter')
    expect(await focused(page)).toBe('Connections')
  })

  it('copies the id of a row and a link to it', async () => {
    const page = await open(`${host.page}#/connections?order=oldest`, {
      key: KEY,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    const copied = () => page.evaluate(() => navigator.clipboard.readText())
    await press(page, 'j', 'c')
    await expect.poll(copied).toBe('conn-1')
    await press(page, 'y')
    await expect.poll(copied).toBe(`${host.page}#/connections/conn-1`)
    await page.locator('.tools summary').click()
    await page.getByRole('button', { name: 'copy curl' }).click()
    await expect.poll(copied).toContain('/connections')
    await page.getByRole('button', { name: 'copy capture command' }).click()
    await expect
      .poll(copied)
      .toMatch(/^SERVICE_ADMIN_KEY="\$KEY" npx relayscope capture 'http\S+\/' -o incident.json --redact$/)
    await page.getByRole('button', { name: 'copy JSON' }).click()
    await expect.poll(async () => JSON.parse(await copied()).items.length).toBe(6)
    await page.getByRole('button', { name: 'copy CSV' }).click()
    await expect.poll(async () => (await copied()).split('\n').length).toBe(7)
    expect((await copied()).split(',')[0]).toBe('connection_id')
  })

  it('pauses and continues', async () => {
    const page = await open(host.page, { key: KEY })
    const button = page.locator('.top button[aria-pressed]')
    await button.waitFor()
    await press(page, 'p')
    await expect.poll(() => button.getAttribute('aria-pressed')).toBe('true')
    await press(page, 'p')
    await expect.poll(() => button.getAttribute('aria-pressed')).toBe('false')
  })

  it('leaves alone what belongs to the browser', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    await press(page, 'Control+p', 'g', 'Control+n', 'z')
    await isAt(page, '/connections')
    expect(await page.locator('.top button[aria-pressed]').getAttribute('aria-pressed')).toBe('false')
  })

  it('reaches everything by Tab, and shows where it is', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    const seen = new Set<string>()
    for (let i = 0; i < 60; i++) {
      await press(page, 'Tab')
      const { name, outline }: { name: string; outline: string } = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement
        return {
          name: `${element.tagName} ${(element.title || element.textContent)?.slice(0, 30)}`,
          outline: getComputedStyle(element).outlineStyle,
        }
      })
      if (name.startsWith('BODY')) break
      expect([name, outline]).toEqual([name, expect.not.stringMatching(/^none$/)])
      seen.add(name)
    }
    for (const name of ['BUTTON pause', 'A Overview', 'A conn-6']) expect([...seen]).toContain(name)
  })
})
