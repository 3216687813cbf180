/** What a table and the header show in the width that there is. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { connection, createWorld, mailbox, NOW } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewedOnce } from './host.js'
import { triedWorld } from './tried.js'

const COLUMNS = [
  ...['who', 'state', 'admitted', 'action', 'ended', 'attempts', 'client said', 'command id', 'scope id'],
]

/** A command whose id is as long as that of most. */
function longWorld() {
  const world = triedWorld()
  const [tried] = world.delivery.statuses
  const command_id = 'count-109a2f00-5b6c-4d1e-8f7a-0c3e49a481ba'
  return {
    ...world,
    delivery: { ...world.delivery, statuses: [{ ...(tried as NonNullable<typeof tried>), command_id }] },
  }
}

const headsOf = async (page: Page) =>
  (await page.locator('main thead th').allInnerTexts()).map((text) => text.split('\n')[0]?.replace(/ [+−]\d*.*/, ''))

/** How much of the table is beyond its place, to the side. */
const overflowOf = (page: Page) =>
  page
    .locator('main .scroll')
    .first()
    .evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)

inChromium('the columns of a list', (open) => {
  it.each([
    [1_800, 9, 9],
    [900, 3, 8],
    [390, 3, 3],
  ])('are those that fit into a window of %i px, and the reason is one of them', async (width, least, most) => {
    const host = await startViewedOnce(longWorld())
    const viewport = { width, height: 800 }
    const page = await open(`${host.page}#/delivery/commands`, { key: KEY, viewport })
    await page.locator('tbody tr').first().waitFor()
    await expect.poll(async () => (await headsOf(page)).length).toBeLessThanOrEqual(most)
    const heads = await headsOf(page)
    expect(heads.length).toBeGreaterThanOrEqual(least)
    expect(heads).toEqual(COLUMNS.slice(0, heads.length))
    expect(await overflowOf(page)).toBe(0)
    // The whole reason can be read.
    const reason = page.locator('tbody td').first()
    expect(await reason.innerText()).toBe('failed attempts exhausted')
    expect(await reason.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)).toBe(true)
  })

  it('follow the width of the window, and all are shown on request', async () => {
    const host = await startViewedOnce(longWorld())
    const page = await open(`${host.page}#/delivery/commands`, { key: KEY, viewport: { width: 900, height: 800 } })
    const others = page.getByRole('button', { name: /^\+\d columns/ })
    await others.waitFor()
    const shown = (await headsOf(page)).length
    expect(await others.getAttribute('title')).toBe(COLUMNS.slice(shown).join(', '))
    await page.setViewportSize({ width: 1_800, height: 800 })
    await expect.poll(() => headsOf(page)).toEqual(COLUMNS)
    expect(await others.count()).toBe(0)
    await page.setViewportSize({ width: 900, height: 800 })
    await others.click()
    expect(await headsOf(page)).toEqual(COLUMNS)
    expect(await overflowOf(page)).toBeGreaterThan(0)
    // The tab remembers it.
    await page.goto(`${host.page}#/delivery/tenants`)
    await page.locator('main h1', { hasText: 'Tenants' }).waitFor()
    await page.goto(`${host.page}#/delivery/commands`)
    await page.getByRole('button', { name: '− columns' }).click()
    await others.waitFor()
    expect(await overflowOf(page)).toBe(0)
  })

  it('are measured for each list, whichever was shown before', async () => {
    const host = await startViewedOnce(longWorld())
    const page = await open(`${host.page}#/delivery/tenants`, { key: KEY, viewport: { width: 390, height: 800 } })
    const heads = page.locator('main thead th')
    await expect.poll(() => heads.count()).toBe(4)
    await page.setViewportSize({ width: 1_280, height: 800 })
    await expect.poll(() => heads.count()).toBe(5)
    await page.goto(`${host.page}#/delivery/commands`)
    await expect.poll(async () => (await headsOf(page)).slice(0, 3)).toEqual(COLUMNS.slice(0, 3))
    await expect.poll(() => overflowOf(page)).toBe(0)
  })

  it('become fewer when wider rows come, and those below the window count too', async () => {
    const world = createWorld()
    for (let i = 0; i < 80; i++)
      world.connections.push(connection({ connection_id: `many-${i}`, client_id: `c-${i}`, user_id: 'u' }))
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/connections?order=oldest&limit=500`, {
      key: KEY,
      viewport: { width: 1_000, height: 400 },
    })
    await expect.poll(() => page.locator('tbody tr').count()).toBeGreaterThan(80)
    const heads = page.locator('main thead th')
    const before = await heads.count()
    expect(await overflowOf(page)).toBe(0)
    world.connections.push(
      connection({
        connection_id: 'wide',
        connected_at: new Date(NOW).toISOString(),
        disconnected_at: new Date(NOW).toISOString(),
        status: 'disconnected',
        ended_reason: 'closed_because_the_moon_was_full',
      }),
    )
    await page.getByText('closed because the moon').waitFor({ state: 'attached' })
    await expect.poll(() => overflowOf(page)).toBe(0)
    expect(await heads.count()).toBeLessThan(before)
    expect(await heads.first().innerText()).toContain(`+${7 - (await heads.count())}`)
  })

  it('give a long id of any column the room that there is', async () => {
    const world = createWorld()
    const instance_id = '109a2f00-5b6c-4d1e-8f7a-0c3e49a481ba'
    world.delivery.mailboxes = [mailbox({ instance_id })]
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/delivery/mailboxes`, { key: KEY, viewport: { width: 1_280, height: 800 } })
    const id = page.getByRole('link', { name: instance_id })
    const isWhole = () => id.locator('span').evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)
    expect(await isWhole()).toBe(true)
    await page.setViewportSize({ width: 390, height: 800 })
    await page.getByRole('button', { name: /^\+\d columns/ }).click()
    expect(await isWhole()).toBe(false)
  })
})

inChromium('the header on a phone', (open) => {
  it('names the deployment and its whole state', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(host.page, { key: KEY, viewport: { width: 390, height: 844 }, refusals: true })
    const isWhole = (selector: string) =>
      page.locator(selector).evaluate((element) => {
        const { right, width } = element.getBoundingClientRect()
        return width > 0 && right <= innerWidth && element.scrollWidth <= element.clientWidth
      })
    await page.locator('.top .brand', { hasText: 'relayscope' }).waitFor()
    expect(await isWhole('.top .brand')).toBe(true)
    host.break((path) => (/^\/(capabilities)?$/.test(path) ? undefined : new Response('{}', { status: 503 })))
    await page.locator('.top .fresh', { hasText: /answers missing or old/ }).waitFor()
    expect(await isWhole('.top .fresh')).toBe(true)
    expect((await page.locator('.top').boundingBox())?.height).toBeLessThan(80)
  })
})
