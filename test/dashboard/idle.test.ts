/** What an open page does while nothing changes: it asks, and draws nothing but the clock. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { connection } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewedOnce, type ViewedHost } from './host.js'
import { healthyWorld, settle, VIEWS } from './pictures.js'

/** Writes down what is drawn from now on, apart from times of day and ages. */
const WATCH_DRAWING = `(() => {
  globalThis.drawn = []
  globalThis.ticked = 0
  const isClock = (text) => /^\\d\\d:\\d\\d:\\d\\d$|^ ?(now|in .+|.+ ago)$/.test(text)
  new MutationObserver((mutations) => {
    for (const { type, target, oldValue } of mutations)
      if (type === 'characterData' && isClock(oldValue) && isClock(target.data)) ticked++
      else drawn.push(type + ' ' + (target.outerHTML ?? target.data).slice(0, 80))
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true, characterDataOldValue: true })
  // Every part of the page that has names of fields or states writes them so.
  const { replaceAll } = String.prototype
  String.prototype.replaceAll = function (...given) {
    drawn.push('wrote ' + this.slice(0, 80))
    return replaceAll.apply(this, given)
  }
})()`

const drawnOn = (page: Page) => page.evaluate<string[]>('globalThis.drawn')

/** Waits until the page was answered so many times more. */
async function answered(host: ViewedHost, times: number): Promise<void> {
  const pulses = () => host.asked.filter((path) => path === '/capabilities').length
  const before = pulses()
  await expect.poll(pulses).toBeGreaterThan(before + times)
}

/** More than a list shows on one page. */
const MANY = 300
/** One of the newest. */
const SHOWN = `many-${MANY - 1}`

const worldOfMany = () => {
  const world = healthyWorld()
  const more = Array.from({ length: MANY }, (_, i) =>
    connection({ connection_id: `many-${i}`, client_id: `many-${i}` }),
  )
  return { ...world, connections: [...(world.connections ?? []), ...more] }
}

inChromium('a page on which nothing changes', (open) => {
  it.each([
    VIEWS.overview,
    VIEWS.findings,
    VIEWS.connections,
    VIEWS.commands,
    VIEWS.nodes,
    VIEWS.sources,
  ])('draws nothing but times while its answers are the same: %s', async (address) => {
    const host = await startViewedOnce(worldOfMany())
    const page = await open(`${host.page}#${address}`, { key: KEY })
    await settle(page)
    await answered(host, 3)
    await page.evaluate(WATCH_DRAWING)
    await answered(host, 3)
    expect(await drawnOn(page)).toEqual([])
    // It was not asleep.
    expect(await page.evaluate('globalThis.ticked')).toBeGreaterThan(0)
  })

  it('draws a row that changes, and no other', async () => {
    const host = await startViewedOnce(worldOfMany())
    const page = await open(`${host.page}#${VIEWS.connections}`, { key: KEY })
    await settle(page)
    await answered(host, 3)
    await page.evaluate(WATCH_DRAWING)
    await page.route(/\/connections(\?|$)/, async (route) => {
      const { 'if-none-match': _, ...headers } = route.request().headers()
      const response = await route.fetch({ headers })
      const page = (await response.json()) as { items: Record<string, unknown>[] }
      const items = page.items.map((item) =>
        item.connection_id === SHOWN ? { ...item, client_type: 'console' } : item,
      )
      await route.fulfill({ json: { ...page, items } })
    })
    await page.locator('tr', { hasText: SHOWN }).getByText('console').waitFor()
    const drawn = await drawnOn(page)
    expect(drawn.filter((what) => !what.startsWith('wrote'))).toEqual(['characterData console'])
    // The choice of a filter, and the state of one row.
    expect(drawn.filter((what) => what === 'wrote connected')).toHaveLength(2)
  })

  it('draws nothing at all while its tab is hidden', async () => {
    const host = await startViewedOnce(worldOfMany())
    const page = await open(`${host.page}#${VIEWS.connections}`, { key: KEY, clock: true })
    await settle(page)
    await page.evaluate(`
      Object.defineProperty(document, 'hidden', { value: true, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    `)
    await page.evaluate(WATCH_DRAWING)
    await page.clock.runFor(120_000)
    expect(await page.evaluate('[drawn, ticked]')).toEqual([[], 0])
  })
})
