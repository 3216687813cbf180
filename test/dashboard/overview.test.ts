/** The parts of the overview: what needs attention, its charts and numbers, and what has just happened. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { emptyAction } from '../../src/internal/contract/call-counts.js'
import type { ConnectionChurn } from '../../src/internal/contract/connections.js'
import { LATENCY_BOUNDS_MS } from '../../src/internal/contract/latency.js'
import type { FindingSummary } from '../../src/internal/views/findings/finding.js'
import { KEY } from '../diagnostics/subject.js'
import { call, connection, createWorld, NOW, node } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewedOnce } from './host.js'

const at = (ms: number) => new Date(NOW + ms).toISOString()
const MINUTE_MS = 60_000

/** A minute in which one was admitted is lost next to one of thousands, unless the scale is of roots. */
function busyWorld(admitted: readonly number[]) {
  const world = createWorld()
  const start = Math.floor(NOW / MINUTE_MS) * MINUTE_MS
  const churn = admitted.map((count, i) => ({
    minute: new Date(start - (admitted.length - 1 - i) * MINUTE_MS).toISOString(),
    node_id: 'node-1',
    admitted: count,
    ended: { resulted: count },
    open: { waiting: 1, attempted: 0, acknowledged: 2 },
  }))
  return { ...world, delivery: { ...world.delivery, churn } }
}

inChromium('the charts of commands', (open) => {
  const chartOf = (page: Page, title: string) => {
    const section = page.locator('.command-chart > div', { has: page.getByRole('heading', { name: title }) })
    return { section, said: section.locator('figcaption [role=status]') }
  }

  it('read one minute after the other by arrow keys, and have all of them as a table', async () => {
    const host = await startViewedOnce(busyWorld([5, 7, 9]))
    const page = await open(host.page, { key: KEY })
    const { section, said } = chartOf(page, 'Ended per minute, by end')
    // The highest minute is labelled where it is.
    await expect.poll(() => section.locator('.peak').innerText()).toBe('9')
    await page.getByLabel('Commands ended per minute, by end; arrow keys read one minute').focus()
    const readings: string[] = []
    for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) {
      await page.keyboard.press(key)
      readings.push((await said.innerText()).replace(/^.*\d\d:\d\d:\d\d: /, ''))
    }
    const minute = (count: number) => `${count} resulted`
    expect(readings).toEqual([...[9, 7, 9, 9, 7, 5].map(minute), 'not observed'])
    await page.keyboard.press('Escape')
    expect(await said.innerText()).toBe('')
    expect(await section.locator('table td').allTextContents()).toEqual([5, 7, 9].map(minute))
    const openChart = chartOf(page, 'Open now, by state').section
    expect(await openChart.locator('table td').allTextContents()).toEqual(
      [5, 7, 9].map(() => '1 waiting, 0 attempted, 2 acknowledged'),
    )
  })

  it('begin with the data, five minutes ago at the latest', async () => {
    const minutes = async (count: number) => {
      const host = await startViewedOnce(busyWorld(Array.from({ length: count }, () => 1)))
      const page = await open(host.page, { key: KEY })
      const box = page.locator('.command-chart svg').first()
      await box.waitFor()
      return Number((await box.getAttribute('viewBox'))?.split(' ')[2]) / 10
    }
    expect([await minutes(2), await minutes(9)]).toEqual([5, 9])
  })

  it('draw roots where one minute dwarfs the others, and say so', async () => {
    const host = await startViewedOnce(busyWorld([1, 1, 1, 1, 10_000]))
    const page = await open(host.page, { key: KEY })
    const { section } = chartOf(page, 'Ended per minute, by end')
    await section.getByText('square-root scale').waitFor()
    const heights = await section
      .locator('rect.resulted')
      .evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('height'))))
    expect(heights).toHaveLength(5)
    // One in ten thousand has a hundredth of the height.
    expect((heights[4] as number) / (heights[0] as number)).toBeCloseTo(100, 0)
  })
})

/** Of two clients one has disconnected. */
function leftWorld() {
  const ended = { status: 'disconnected', disconnected_at: at(-1_000), ended_reason: 'heartbeat_lost' } as const
  const connections = [connection(), connection({ connection_id: 'conn-2', client_id: 'tablet', ...ended })]
  return { ...createWorld(), connections }
}

inChromium('the chart of connections', (open) => {
  it('reads one minute after the other by arrow keys, and has all of them as a table', async () => {
    const host = await startViewedOnce(leftWorld())
    const { items } = await host.ask<ConnectionChurn>('/connections/churn')
    const page = await open(host.page, { key: KEY })
    const chart = page.getByLabel('Connects and disconnects per minute; arrow keys read one minute')
    const card = page.locator('.card', { has: chart })
    const said = card.locator('figcaption [role=status]')
    await expect.poll(() => card.locator('.peak').innerText()).toBe('2')
    await chart.focus()
    for (const _ of items) await page.keyboard.press('ArrowLeft')
    expect(await said.innerText()).toMatch(/: 2 opened; ended: 1 client closed$/)
    await page.keyboard.press('ArrowLeft')
    expect(await said.innerText()).toMatch(/: not observed$/)
    await page.keyboard.press('Escape')
    expect(await said.innerText()).toBe('')
    expect(await card.locator('table tr').count()).toBe(items.length)
  })
})

inChromium('the numbers of the overview', (open) => {
  it('explain themselves on focus', async () => {
    const host = await startViewedOnce(leftWorld())
    const page = await open(host.page, { key: KEY })
    await page.getByText('all sources answer').waitFor()
    const hints = page.locator('main [data-hint]')
    await page.locator('[data-hint]', { hasText: 'ended in 3 min' }).waitFor()
    const explained: string[] = []
    for (const hint of await hints.all()) {
      await hint.focus()
      const [name, shown, description] = await hint.evaluate((element) => [
        (element as HTMLElement).innerText
          .split('\n')[0]
          // How long a node has been silent depends on the machine.
          ?.replace(/^(?:< )?\d+ (?:s|min \d+ s)$/, 'a time')
          .replace(/^[?\d]+ | [?\d]+$/g, ''),
        getComputedStyle(element, '::after').content,
        element.getAttribute('aria-description'),
      ])
      expect([name, shown]).toEqual([name, `"${description}"`])
      explained.push(name as string)
    }
    expect(explained).toEqual([
      'in 3 min',
      ...['waiting', 'attempted', 'acknowledged', 'resulted', 'failed', 'expired', 'cancelled', 'rejected'],
      ...['open', 'due', 'ended in 3 min', 'open', 'late', 'foreign'],
      ...[1, 2, 3].flatMap(() => ['a time', 'waiting']),
    ])
  })

  it('explain the heads of tables too, whatever the script is made of', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/delivery/nodes`, { key: KEY })
    await page.locator('tbody tr').first().waitFor()
    expect(await page.locator('thead [data-hint]').allInnerTexts()).toEqual([
      ...['listener', 'loop', 'silent for', 'connection waiters', 'active drainers'],
    ])
  })
})

inChromium('the silence of a node', (open) => {
  it('grows while the router answers that nothing has changed', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(host.page, { key: KEY, clock: true })
    const silence = page.locator('.nodes li .more').first()
    await expect.poll(() => silence.innerText()).toBe('< 10 s')
    await page.clock.runFor(70_000)
    await expect.poll(() => silence.innerText()).toMatch(/^1 min/)
  })
})

inChromium('what needs attention', (open) => {
  it('is grey for ten seconds, in the navigation too, and red then', async () => {
    const host = await startViewedOnce(createWorld())
    // A router whose only finding begins when the test says so.
    let since = 0
    host.break(async (path) => {
      if (path !== '/findings/summary') return undefined
      const oldest_since = new Date(since).toISOString()
      const kind = { kind: 'call_overdue', count: since ? 1 : 0, exact: true, oldest_since, sample: null }
      const completeness = { complete: true, truncated_sources: [], examined: {}, limits: {} }
      return Response.json({ kinds: [kind], not_looked_for: [], completeness, observed_at: new Date().toISOString() })
    })
    const page = await open(host.page, { key: KEY, clock: true })
    await page.getByText('no findings').waitFor()
    since = await page.evaluate(() => Date.now())
    await page.clock.runFor(3_000)
    const row = page.locator('.attention li', { hasText: '1 × call overdue' })
    const badge = page.locator('nav [data-count]')
    await row.getByText('just seen').waitFor()
    const colours = async () => [
      await row.getByRole('link').getAttribute('class'),
      await badge.getAttribute('class'),
      await page.locator('.numbers a').first().getAttribute('class'),
    ]
    expect(await colours()).toEqual(['', '', ''])
    await page.clock.runFor(10_000)
    await expect.poll(colours).toEqual(['bad', 'alarm', 'bad'])
  })

  it('is red at once where it has come and gone three times', async () => {
    const host = await startViewedOnce(createWorld())
    let count = 0
    host.break(async (path) => {
      if (path !== '/findings/summary') return undefined
      const kind = { kind: 'call_overdue', count, exact: true, oldest_since: null, sample: null }
      const completeness = { complete: true, truncated_sources: [], examined: {}, limits: {} }
      return Response.json({ kinds: [kind], not_looked_for: [], completeness, observed_at: new Date().toISOString() })
    })
    const page = await open(host.page, { key: KEY, clock: true })
    const row = page.locator('.attention li', { hasText: '1 × call overdue' })
    for (const state of ['just seen', 'just seen', '3 times']) {
      await page.getByText('no findings').waitFor()
      count = 1
      await page.clock.runFor(3_000)
      await row.getByText(state).waitFor()
      count = 0
      if (state === '3 times') break
      await page.clock.runFor(3_000)
    }
    expect(await row.getByRole('link').getAttribute('class')).toBe('bad')
    expect(await page.locator('nav [data-count]').getAttribute('class')).toBe('alarm')
  })

  it('says since when the findings are unknown, and the time stands still', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(host.page, { key: KEY, clock: true })
    const fact = page.locator('.numbers a').first()
    await fact.getByText(/finding/).waitFor()
    host.break(async (path) => {
      if (path !== '/findings/summary') return undefined
      const completeness = { complete: false, truncated_sources: ['delivery'], examined: {}, limits: {} }
      return Response.json({ kinds: [], not_looked_for: [], completeness, observed_at: new Date().toISOString() })
    })
    await page.clock.runFor(3_000)
    await fact.getByText(/findings unknown since/).waitFor()
    const said = await fact.innerText()
    await page.clock.runFor(8_000)
    expect([await fact.innerText(), await fact.getAttribute('class')]).toEqual([said, 'bad'])
  })

  it('counts clients that were lost just now, without an alarm', async () => {
    const world = createWorld()
    const minute = new Date(Math.floor(NOW / MINUTE_MS) * MINUTE_MS).toISOString()
    const host = await startViewedOnce(world)
    host.break((path) =>
      path === '/connections/churn'
        ? Response.json({ items: [{ minute, opened: 0, ended: { heartbeat_lost: 2 } }], observed_at: at(0) })
        : undefined,
    )
    const page = await open(host.page, { key: KEY })
    const lost = page.locator('.headline').getByRole('link', { name: '2 heartbeat lost in 3 min' })
    await lost.waitFor()
    expect(await lost.getAttribute('class')).toBe('warn')
    await lost.click()
    await page.locator('.chip.on', { hasText: 'ended reason heartbeat lost' }).waitFor()
  })

  it('names a silent node that holds clients once', async () => {
    const world = createWorld()
    const stale = { stale: true, staleness_ms: 60_000, updated_at: at(-60_000), connection_waiters: 3 }
    world.delivery.nodes = [node({ node_id: 'node-1', ...stale }), node({ node_id: 'node-2' })]
    const host = await startViewedOnce(world)
    const { kinds } = await host.ask<FindingSummary>('/findings/summary')
    expect(kinds.find(({ kind }) => kind === 'silent_node_holds')?.count).toBe(1)
    const page = await open(host.page, { key: KEY })
    await page.locator('.attention li', { hasText: 'Node node-1 is silent' }).getByText('recorded there: 3').waitFor()
    expect(await page.locator('.attention li', { hasText: 'silent node holds' }).count()).toBe(0)
  })
})

inChromium('observed calls', (open) => {
  const counts = emptyAction('sync', 'to_client').counts.map((_, i) => (i === 3 ? 40 : i === 8 ? 2 : 0))
  const actions = [
    { ...emptyAction('echo', 'to_server'), succeeded: 7 },
    { ...emptyAction('sync', 'to_client'), succeeded: 41, failed: 1, unanswered: 3, counts },
  ]
  const observed = { bounds_ms: [...LATENCY_BOUNDS_MS], actions, evicted: 0, unrecorded: 0 }
  const calls = [call({ observed: true, answered_since: 'none' })]

  it('lead where no commands are fed, by action, those with unanswered calls first', async () => {
    const host = await startViewedOnce({ connections: [connection()], calls, callSummary: { observed } })
    const page = await open(host.page, { key: KEY })
    const card = page.locator('section', { has: page.getByRole('heading', { name: 'Calls' }) })
    await expect
      .poll(() => card.locator('tbody tr').allInnerTexts())
      .toEqual(['sync\tto client\t42\t2\t1\t3', 'echo\tto server\t7\t0\t0\t0'])
    await card.getByText('1 open, the oldest').waitFor()
  })

  it('follow the commands where those are fed', async () => {
    const host = await startViewedOnce({ ...createWorld(), calls, callSummary: { observed } })
    const page = await open(host.page, { key: KEY })
    await expect
      .poll(() => page.locator('main .card h2').allInnerTexts())
      .toEqual(['Commands', 'Connects and disconnects', 'Calls', 'Nodes'])
  })
})
