/** What moves on a page: nothing while it loads; while nothing changes it asks, and draws nothing but the clock. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type { FakeWorld } from '../../src/testing/kits.js'
import { KEY } from '../diagnostics/subject.js'
import { connection, NOW } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewedOnce, type ViewedHost } from './host.js'
import { healthyWorld, settle, stillPictureOf, VIEWS, WATCH_SHIFTS } from './pictures.js'

/** Writes down what is drawn from now on, apart from times of day and ages. */
const WATCH_DRAWING = `(() => {
  globalThis.drawn = []
  globalThis.ticked = 0
  const isClock = (text) => /^\\d\\d:\\d\\d:\\d\\d$|^ ?(now|in .+|.+ ago)$|^(< )?[\\d.]+ (ms|s|min \\d+ s)$/.test(text)
  new MutationObserver((mutations) => {
    for (const { type, target, oldValue } of mutations)
      if (type === 'characterData' && isClock(oldValue) && isClock(target.data)) ticked++
      else if (type === 'attributes' && target.matches('time, .age')) ticked++
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

/** Ids that are long, and nodes that count whatever they can. */
function wordyWorld(): FakeWorld {
  const world = worldOfMany()
  const id = (i: number) => `synchronize-${i}-0e8e1908-3f12-4316-91a0-67b0f0b513c9`
  const [first] = world.delivery?.statuses ?? []
  const statuses = Array.from({ length: 30 }, (_, i) => ({
    ...first,
    command_id: id(i),
    action: 'synchronize_documents',
  }))
  const terminal = { state: 'failed', reason: 'attempts_exhausted', at: '2026-01-02T03:04:05.000Z' } as const
  const failed = { ...first, command_id: 'cmd-failed', acknowledgement: NOT_ACKNOWLEDGED, terminal }
  const other = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`counter_number_${i}`, 1_000 + i]))
  const nodes = (world.delivery?.nodes ?? []).map((node) => ({ ...node, counters: { ...node.counters, other } }))
  return {
    ...world,
    delivery: {
      ...world.delivery,
      nodes: nodes as never,
      statuses: [...(world.delivery?.statuses ?? []), failed, ...statuses] as never,
    },
  }
}

const NOT_ACKNOWLEDGED = { state: 'none', at: null, instance_id: null } as const
const FAILED = VIEWS.command.replace('cmd-1', 'cmd-failed')

interface Layout {
  shifts: number
  /** Of all that can be scrolled to. */
  width: number
  /** Where the first record ends; `null` without a table. */
  first: number | null
  tallest: number
  /** Between an id and what is next to it. */
  gap: number
}

const LAYOUT = `(() => {
  const rows = [...document.querySelectorAll('main table:not(.hidden *) tbody tr')]
  const boxOf = (element) => element.getBoundingClientRect()
  const gaps = rows.flatMap(({ cells: [id, next] }) => {
    const link = id.querySelector('a')
    return link && next ? [boxOf(next).left - boxOf(link).right] : []
  })
  return {
    shifts: globalThis.shifts,
    width: document.documentElement.scrollWidth,
    first: rows[0] ? boxOf(rows[0]).bottom : null,
    tallest: Math.max(0, ...rows.map((row) => boxOf(row).height)),
    gap: Math.min(100, ...gaps),
  }
})()`

/** Eleven pages, on a machine that has much else to do. */
const LONG_MS = 300_000

inChromium('a page that loads', (open) => {
  it.each([
    { width: 1_280, height: 800 },
    { width: 390, height: 844 },
  ])('moves by less than 0.02, and fits into a window of $width px', {
    timeout: LONG_MS,
  }, async (viewport) => {
    const host = await startViewedOnce(wordyWorld())
    // The answers come one after the other, in an order that none of the parts relies on.
    let answers = 0
    host.break(async () => {
      await new Promise((resolve) => setTimeout(resolve, 80 * (answers++ % 7)))
      return undefined
    })
    const page = await open(host.page, { key: KEY, viewport, refusals: true })
    await page.addInitScript(WATCH_SHIFTS)
    // What is shown after a second stays hidden until it is there: a busy machine takes longer.
    await page.route('**/*.css', async (route) => {
      const response = await route.fetch()
      const style = await response.text()
      expect(style).toContain('forwards show')
      await route.fulfill({ response, body: style.replace('forwards show', 'none') })
    })
    const seen: Record<string, Layout> = {}
    for (const [name, address] of Object.entries({ ...VIEWS, failed: FAILED })) {
      await page.goto(`${host.page}#${address}`)
      await page.reload()
      await settle(page)
      if (name === 'overview') await page.getByText('all sources answer').waitFor()
      await stillPictureOf(page, () => true)
      seen[name] = await page.evaluate<Layout>(LAYOUT)
    }
    const over = (isOver: (layout: Layout) => boolean) =>
      Object.keys(seen).filter((name) => isOver(seen[name] as Layout))
    expect([over(({ shifts }) => shifts >= 0.02), seen]).toEqual([[], seen])
    expect([over(({ width }) => width > viewport.width), seen]).toEqual([[], seen])
    // Of a list the first record is in sight, and a record is no taller than a few lines.
    const lists = ['users', 'connections', 'commands', 'nodes', 'sources']
    expect(lists.filter((name) => (seen[name]?.first ?? Infinity) > viewport.height)).toEqual([])
    expect([over(({ tallest }) => tallest > 120), seen]).toEqual([[], seen])
    // An id ends before the next column begins.
    expect([over(({ gap }) => gap < 8), seen]).toEqual([[], seen])
  })
})

/** Commands of which more are admitted, and which change where they stand. */
function busyWorld() {
  const { delivery, ...world } = wordyWorld()
  const statuses = [...(delivery?.statuses ?? [])]
  const shown = statuses.length
  const terminal = { state: 'failed', reason: 'attempts_exhausted', at: '2026-01-02T03:04:05.000Z' } as const
  const [first] = statuses
  return {
    world: { ...world, delivery: { ...delivery, statuses } } as FakeWorld,
    admit: (command_id: string) =>
      void statuses.push({
        ...first,
        command_id,
        admission: { ...first?.admission, at: new Date(NOW).toISOString() },
      } as never),
    /** The last of them, which the list shows in any order. */
    fail(i: number) {
      const at = shown - i
      statuses[at] = { ...statuses[at], acknowledgement: NOT_ACKNOWLEDGED, terminal } as never
    },
  }
}

inChromium('a list that changes', (open) => {
  it.each([
    { width: 1_280, height: 800 },
    { width: 390, height: 844 },
  ])('moves by less than 0.02 until its new rows are asked for, at $width px', async (viewport) => {
    const { world, admit, fail } = busyWorld()
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#${VIEWS.commands}`, { key: KEY, viewport })
    await page.addInitScript(WATCH_SHIFTS)
    await page.reload()
    await settle(page)
    await page.locator('tbody tr').first().waitFor()
    const heads = () =>
      page.locator('tbody th a').evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    const before = await heads()
    const isWith = (id: string) => page.locator(`tbody th a[title="${id}"]`)
    const shifts = () => page.evaluate<number>('globalThis.shifts')
    for (let i = 1; i <= 12; i++) {
      admit(`new-${i}`)
      fail(i)
      await page.getByRole('button', { name: `show ${i} new` }).waitFor()
      await expect.poll(() => page.locator('tbody tr', { hasText: 'attempts exhausted' }).count()).toBe(i + 1)
    }
    expect(await heads()).toEqual(before)
    expect(await shifts()).toBeLessThan(0.02)
    // The bar of a pause is answered to a key, and so is what moves by it.
    await page.keyboard.press('p')
    await page.getByText('nothing is fetched').waitFor()
    admit('new-13')
    await page.keyboard.press('p')
    await page.getByRole('button', { name: 'show 13 new' }).waitFor()
    expect(await heads()).toEqual(before)
    expect(await shifts()).toBeLessThan(0.02)
    await page.keyboard.press('n')
    await isWith('new-13').waitFor()
    expect((await heads()).slice(13)).toEqual(before)
    await expect.poll(() => page.locator('#news').count()).toBe(0)
    // Who wants to see it move says so.
    const follow = page.getByRole('button', { name: 'follow' })
    await follow.click()
    admit('new-14')
    await isWith('new-14').waitFor()
    await page.reload()
    await isWith('new-14').waitFor()
    expect(await follow.getAttribute('aria-pressed')).toBe('true')
    admit('new-15')
    await isWith('new-15').waitFor()
  })
})

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
    // What the filter offers comes with another answer than the rows.
    if (address === VIEWS.findings) await page.locator('select option').nth(1).waitFor({ state: 'attached' })
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
    await page
      .locator('tr', { has: page.locator(`a[title="${SHOWN}"]`) })
      .getByText('console')
      .waitFor()
    const drawn = await drawnOn(page)
    expect(drawn.filter((what) => !what.startsWith('wrote'))).toEqual(['characterData console'])
    // The state of one row.
    expect(drawn.filter((what) => what === 'wrote connected')).toHaveLength(1)
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

/** A world whose clients disconnect, each with a worker that has a task. */
function losingWorld() {
  const world = healthyWorld()
  const contexts = [...(world.contexts ?? [])]
  const working = contexts.find(({ context_id }) => context_id === 'ctx-4')
  return {
    world: { ...world, contexts },
    contexts,
    lose: (n: number) => void contexts.push({ ...working, context_id: `of-${n}`, client_id: `gone-${n}` } as never),
  }
}

inChromium('findings that come and go', (open) => {
  async function openFindings(world: FakeWorld, viewport: { width: number; height: number }): Promise<Page> {
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#${VIEWS.findings}`, { key: KEY, viewport })
    await page.addInitScript(WATCH_SHIFTS)
    await page.reload()
    return page
  }

  it.each([
    { width: 1_280, height: 800 },
    { width: 390, height: 844 },
  ])('keep their place until the reader asks for the new ones, at $width px', async (viewport) => {
    const { world, contexts, lose } = losingWorld()
    for (const n of [1, 2, 3]) lose(n)
    const page = await openFindings(world, viewport)
    await settle(page)
    const isShown = (text: string) => page.locator('.found', { hasText: text })
    await isShown('gone-3').waitFor()
    for (let n = 4; n <= 9; n++) lose(n)
    contexts.splice(
      contexts.findIndex(({ context_id }) => context_id === 'of-1'),
      1,
    )
    await page.getByRole('button', { name: 'show 6 new' }).waitFor()
    await isShown('gone-1').filter({ hasText: 'No longer so.' }).waitFor()
    expect(await page.locator('.found').count()).toBe(3)
    expect(await page.evaluate<number>('globalThis.shifts')).toBeLessThan(0.02)
    await page.keyboard.press('n')
    await isShown('gone-9').waitFor()
    expect(await page.locator('.found').count()).toBe(8)
    expect(await isShown('gone-1').count()).toBe(0)
  })

  it.each([
    { width: 1_280, height: 800 },
    { width: 390, height: 844 },
  ])('move nothing when the first of them come, at $width px', async (viewport) => {
    const { world, lose } = losingWorld()
    const page = await openFindings(world, viewport)
    await page.getByText('None, and every source was read').waitFor()
    for (const n of [1, 2, 3]) lose(n)
    await page.locator('.found', { hasText: 'gone-3' }).waitFor()
    expect(await page.evaluate<number>('globalThis.shifts')).toBeLessThan(0.02)
  })
})

/** A store that does not answer: of its sources, only sometimes in time. */
async function failWithin(host: ViewedHost): Promise<void> {
  const { items } = await host.ask<{ items: object[] }>('/sources')
  const sources = items.map((source) => ({ ...source, answered: false, code: 'inspector_timeout' }))
  let asked = 0
  host.break(async (path) => {
    if (path === '/' || path === '/capabilities') return undefined
    if (path !== '/sources') return Response.json({ status: 503, code: 'inspector_timeout' }, { status: 503 })
    // Every other answer comes too late to be believed.
    await new Promise((resolve) => setTimeout(resolve, asked++ % 2 ? 6_000 : 0))
    return Response.json({ items: sources, observed_at: new Date().toISOString() })
  })
}

inChromium('an overview whose store dies', (open) => {
  it.each([
    { width: 1_280, height: 800 },
    { width: 390, height: 844 },
  ])('keeps one alarm with its age in its place, at $width px', { timeout: LONG_MS }, async (viewport) => {
    const host = await startViewedOnce(healthyWorld())
    const page = await open(host.page, { key: KEY, viewport, refusals: true })
    await page.getByText('all sources answer').waitFor()
    const needs = page.locator('.attention')
    const heightOf = async () => (await needs.boundingBox())?.height
    const height = await heightOf()
    await failWithin(host)
    const alarm = needs.locator('li', { hasText: /No answer from \d+ sources/ })
    await alarm.waitFor()
    expect(await heightOf()).toBe(height)
    await page.locator('.attention li.settled').waitFor()
    const heights = new Set<number | undefined>()
    for (let i = 0; i < 40; i++) {
      heights.add(await heightOf())
      expect(await alarm.getAttribute('class')).toBe('settled')
      await page.waitForTimeout(250)
    }
    expect([...heights]).toEqual([height])
  })

  it.each([
    { width: 1_280, height: 800 },
    { width: 390, height: 844 },
  ])('moves each page by less than 0.02, at $width px', { timeout: LONG_MS }, async (viewport) => {
    const { world, lose } = losingWorld()
    for (const n of [1, 2, 3]) lose(n)
    const seen: Record<string, number> = {}
    // The table of sources is wider than a telephone: its columns move aside there.
    const wide = viewport.width > 760 ? (['sources'] as const) : []
    for (const name of ['overview', 'findings', 'user', 'connections', ...wide] as const) {
      const host = await startViewedOnce(world)
      const page = await open(`${host.page}#${VIEWS[name]}`, { key: KEY, viewport, refusals: true })
      await settle(page)
      await stillPictureOf(page, () => true)
      await page.evaluate(WATCH_SHIFTS)
      const before = await page.evaluate<number>('globalThis.shifts')
      await failWithin(host)
      await page.locator('.top .fresh.late').waitFor()
      await page.locator('.state.old').first().waitFor()
      await stillPictureOf(page, () => true)
      seen[name] = (await page.evaluate<number>('globalThis.shifts')) - before
    }
    expect([Object.keys(seen).filter((name) => (seen[name] as number) >= 0.02), seen]).toEqual([[], seen])
  })
})
