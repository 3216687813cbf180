/** The parts of the overview that a reader moves: the chart of the last hour, and what has just happened. */
import { expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { connection, createWorld, NOW } from '../diagnostics/world.js'
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

inChromium('the chart of commands', (open) => {
  it('reads one minute after the other by arrow keys, and has all of them as a table', async () => {
    const host = await startViewedOnce(busyWorld([5, 7, 9]))
    const page = await open(host.page, { key: KEY })
    const chart = page.getByLabel('Commands of the last hour; arrow keys read one minute')
    const said = page.locator('.river figcaption [role=status]')
    await expect
      .poll(() => said.innerText())
      .toBe('at most 9 admitted a minute · at most 3 open · at most 9 ended a minute')
    await chart.focus()
    const readings: string[] = []
    for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) {
      await page.keyboard.press(key)
      readings.push((await said.innerText()).replace(/^.*\d\d:\d\d:\d\d: /, ''))
    }
    const minute = (count: number) => `${count} admitted, 1 waiting, 0 attempted, 2 acknowledged, ${count} resulted`
    expect(readings).toEqual([...[9, 7, 9, 9, 7, 5].map(minute), 'not observed'])
    await page.keyboard.press('Escape')
    expect(await said.innerText()).toMatch(/^at most 9/)
    const rows = page.locator('.river table tr')
    expect(await rows.locator('td').allTextContents()).toEqual([5, 7, 9].map(minute))
  })

  it('draws roots where one minute dwarfs the others, and says so', async () => {
    const host = await startViewedOnce(busyWorld([1, 1, 1, 1, 10_000]))
    const page = await open(host.page, { key: KEY })
    await page.locator('.river figcaption', { hasText: 'at most 10,000 admitted a minute' }).waitFor()
    const heights = await page
      .locator('.river rect.admitted')
      .evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute('height'))))
    expect(heights).toHaveLength(5)
    // One in ten thousand has a hundredth of the height.
    expect((heights[4] as number) / (heights[0] as number)).toBeCloseTo(100, 0)
    await page.locator('.river figcaption', { hasText: /root/ }).waitFor()
  })
})

inChromium('what has just happened', (open) => {
  it('names what changed since the tab was opened, the latest first, and stands still while it is held', async () => {
    const world = createWorld()
    const [first] = world.delivery.statuses ?? []
    if (!first) throw new Error('the world has no command')
    const statuses = [...(world.delivery.statuses ?? [])]
    const admit = (command_id: string, ms: number) =>
      statuses.push({
        ...first,
        command_id,
        terminal: { state: 'failed', at: at(ms), reason: 'disk_full' },
        admission: { ...first.admission, at: at(ms) },
      })
    const connections = [...(world.connections ?? []), connection({ connection_id: 'conn-new', client_id: 'tablet' })]
    const host = await startViewedOnce({ ...world, connections, delivery: { ...world.delivery, statuses } })
    const page = await open(host.page, { key: KEY })
    const rows = page.locator('.tail li')
    await rows.filter({ hasText: 'Nothing yet.' }).waitFor()
    await page.getByText('all sources answer').waitFor()
    const ids = async () => (await rows.getByRole('link').allInnerTexts()).map((text) => text.replaceAll('\n', ''))
    admit('new-1', 1_000)
    await expect.poll(ids).toEqual(['new-1'])
    admit('new-2', 2_000)
    await expect.poll(ids).toEqual(['new-2', 'new-1'])
    expect(await rows.first().innerText()).toMatch(/failed new-2 alice \/ desk · disk full/)
    await page.getByRole('button', { name: 'hold' }).click()
    admit('new-3', 3_000)
    const asked = host.asked.length
    await expect.poll(() => host.asked.length).toBeGreaterThan(asked + 8)
    expect(await ids()).toEqual(['new-2', 'new-1'])
    await page.getByRole('button', { name: 'hold' }).click()
    await expect.poll(ids).toEqual(['new-3', 'new-2', 'new-1'])
  })
})
