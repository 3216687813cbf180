/**
 * The dashboard of a caller with access to some users: their data is shown, and data about all users is neither shown
 * nor requested.
 */
import { expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { createWorld } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewedOnce } from './host.js'

/** Views about all users. */
const OF_ALL = ['Findings', 'Nodes', 'Tenants', 'Sources']

inChromium('the dashboard of some users', (open) => {
  it('shows what is theirs, without an alarm, and never asks for the rest', async () => {
    const host = await startViewedOnce(createWorld(), { authorize: () => ({ user_ids: ['alice'] }) })
    const page = await open(host.page, { key: KEY, clock: true, refusals: true })
    const refused: string[] = []
    page.on('response', (response) => void (response.status() === 403 && refused.push(response.url())))
    const main = page.locator('main')
    await main.getByText('Your key is for some users, such as alice.').waitFor()
    await main.getByRole('link', { name: 'cmd-2' }).first().waitFor()
    await main.locator('.numbers a', { hasText: 'clients' }).waitFor()
    expect(await main.locator('.trouble, .attention, .headline .bad, .unknown').allTextContents()).toEqual([])
    const titles = await page.locator('nav.views a').allTextContents()
    expect(titles).toEqual(expect.arrayContaining(['Overview', 'Users', 'Commands']))
    for (const title of OF_ALL) expect(titles).not.toContain(title)
    await page.keyboard.press('?')
    expect(await page.getByRole('dialog').locator('dd').allTextContents()).not.toContain('Nodes')
    await page.keyboard.press('Escape')
    await page.clock.runFor(10_000)
    const ofAll = /^\/(delivery\/(summary|nodes|churn)|connections\/churn|rpc\/summary|sources|findings)/
    expect(host.asked.filter((path) => ofAll.test(path) || /view=%2Fdelivery%2Fnodes/.test(path))).toEqual([])
    // No record of an audit says that this caller tried what it may not.
    await page.reload()
    await main.getByRole('link', { name: 'cmd-2' }).first().waitFor()
    expect(refused).toEqual([])
  })

  it('says so where a link goes to what is of all', async () => {
    const host = await startViewedOnce(createWorld(), { authorize: () => ({ user_ids: ['alice'] }) })
    const page = await open(`${host.page}#/delivery/nodes`, { key: KEY, refusals: true })
    await page.locator('main .absent', { hasText: 'What covers all users is not shown' }).waitFor()
    await page.goto(`${host.page}#/users/alice/summary`)
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    // Every page says so, in its header.
    await page.locator('.top .brand', { hasText: 'some users only' }).waitFor()
    expect(await page.locator('main .trouble').count()).toBe(0)
  })

  it('shows all where the index does not come through', async () => {
    const host = await startViewedOnce(createWorld())
    host.break((path) => (path === '/' ? new Response('', { status: 404 }) : undefined))
    const page = await open(host.page, { key: KEY, refusals: true })
    await page.getByText('all sources answer').waitFor()
    await page.locator('nav.views').getByText('Nodes').waitFor()
  })
})
