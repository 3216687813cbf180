/** What the page shows while the state changes, and after it stops receiving changes. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { FindingSummary } from '../../src/internal/views/findings/finding.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { KEY } from '../diagnostics/subject.js'
import { connection, createWorld } from '../diagnostics/world.js'
import { inChromium, type OpenOptions } from './chromium.js'
import { losable, startViewedOnce } from './host.js'

const problem = (status: number, code: string) => () =>
  new Response(JSON.stringify({ type: `urn:x:${code}`, title: `It is ${code}`, status, code }), {
    status,
    headers: { 'content-type': 'application/problem+json' },
  })

/** A tab whose clock can be set forward, before a host that is going to be broken. */
const WATCHED: OpenOptions = { key: KEY, clock: true, refusals: true }

const fresh = (page: Page) => page.locator('.top .fresh')

const NONE = 'No connections with user_id = zoe (exact match).'

/** The status that a screen reader announces. */
const told = (page: Page) => page.locator('.top').getByRole('status').textContent()

/** The page says that what it shows is old, and loses its colours. */
async function isDimmed(page: Page): Promise<void> {
  await fresh(page).getByText('no answer for').first().waitFor()
  expect(await told(page)).toBe('no answer')
  await page.locator('main.late').waitFor()
  await page.locator('main .old').first().waitFor()
  await page.locator('main').getByText('may have changed since').first().waitFor()
}

const isLive = (page: Page) => expect.poll(() => fresh(page).innerText()).toContain('live')

/** It answers again, and all of it is as good as new. */
async function isFresh(page: Page): Promise<void> {
  await expect.poll(() => fresh(page).innerText()).toMatch(/live/)
  await expect.poll(() => page.locator('main.late, main .old').count()).toBe(0)
}

inChromium('the dashboard, live', (open) => {
  it('shows what is new in a list, in every tab, without a reload', async () => {
    const world = createWorld()
    const host = await startViewedOnce(world)
    const address = `${host.page}#/connections?user_id=zoe`
    const page = await open(address, { key: KEY })
    const other = await page.context().newPage()
    await other.addInitScript(`sessionStorage.setItem('relayscope.key', '${KEY}')`)
    await other.goto(address)
    for (const tab of [page, other]) {
      await tab.getByText(NONE).waitFor()
      await isLive(tab)
    }
    world.connections.push(connection({ connection_id: 'conn-new', user_id: 'zoe' }))
    for (const tab of [page, other]) await tab.getByRole('link', { name: 'conn-new' }).waitFor()
    world.connections.pop()
    for (const tab of [page, other]) await tab.getByText(NONE).waitFor()
  })

  it('follows an address that changes while the page begins', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/sessions`, { key: KEY })
    await page.addInitScript(`addEventListener('DOMContentLoaded', () => { location.hash = '#/sites' })`)
    await page.reload()
    await page.getByRole('heading', { name: 'Sites', exact: true }).waitFor()
  })

  it('names what is not part of the deployment, and shows the rest', async () => {
    const { delivery: _, sites: __, ...world } = createWorld()
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/delivery/commands`, { key: KEY, refusals: true })
    await page.locator('main .absent', { hasText: 'Not part of this deployment.' }).waitFor()
    expect(await page.locator('main .trouble').count()).toBe(0)
    await page.goto(`${host.page}#/users/alice/summary`)
    await page.locator('main .absent', { hasText: /Not part of this deployment: Commands \(delivery/ }).waitFor()
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    // Views of other families are polled all the same.
    await isLive(page)
    await page.goto(`${host.page}#/`)
    await page.getByText('all sources answer').waitFor()
    expect(await page.locator('.absent').count()).toBeGreaterThan(0)
    await page.goto(`${host.page}#/sources`)
    await page.getByText('Not part of this deployment').first().waitFor()
  })

  it('names a source that fails where its data would be, and in the headline, until it answers again', async () => {
    const world = createWorld()
    const whole = createFakeInspectors(world)
    let isLost = false
    const registry = whole.registry && losable(whole.registry, () => isLost)
    const host = await startViewedOnce(world, { inspectors: { ...whole, ...(registry && { registry }) } })
    const page = await open(`${host.page}#/connections`, WATCHED)
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    await isLive(page)

    isLost = true
    const trouble = page.locator('main .trouble', { hasText: 'source not reachable' })
    await trouble.waitFor()
    // What was there is there still, and says that it is old.
    await page.locator('main .old').getByRole('link', { name: 'conn-1' }).waitFor()
    await page.goto(`${host.page}#/`)
    await page.locator('.headline .bad', { hasText: 'no answer from registry' }).waitFor()
    await page.locator('.top .fresh.late', { hasText: /\d answers missing or old$/ }).waitFor()
    expect(await told(page)).toBe('answers missing or old')
    expect(await page.locator('main section', { hasText: 'Nodes' }).first().locator('.trouble').count()).toBe(0)
    expect(await page.content()).not.toContain('planted-s3cr3t')

    isLost = false
    await page.locator('.headline', { hasText: 'all sources answer' }).waitFor()
    await expect.poll(() => page.locator('main .trouble').count()).toBe(0)
  })

  it('has no calm word and no green dot while no source can be read', async () => {
    const world = createWorld()
    let isLost = false
    const inspectors = Object.fromEntries(
      Object.entries(createFakeInspectors(world)).map(([name, inspector]) => [name, losable(inspector, () => isLost)]),
    )
    const host = await startViewedOnce(world, { inspectors })
    const page = await open(`${host.page}#/`, { key: KEY, refusals: true })
    const headline = page.locator('.headline')
    await headline.getByText('3 nodes').waitFor()
    await page.locator('.top .fresh.live').waitFor()
    isLost = true
    await page
      .locator('.numbers')
      .getByText(/findings unknown/)
      .waitFor()
    await headline.getByText(/silent nodes unknown since \d/).waitFor()
    await headline.getByText(/no answer from \d+ sources/).waitFor()
    await page.locator('.attention .detail', { hasText: /: .*(delivery.*registry|registry.*delivery)/ }).waitFor()
    expect(await headline.getByText(/no findings|\d of \d|all sources/).count()).toBe(0)
    expect(await page.locator('.top .fresh.live').count()).toBe(0)
    isLost = false
    await headline.getByText('3 nodes').waitFor()
    await page.locator('.top .fresh.live').waitFor()
  })

  it.each([
    ['a list with more pages', { exact: false }, 'no findings in what was read'],
    ['a list of which some was not read', { complete: false }, 'no findings in what was read'],
    ['a source that failed', { count: null, exact: false, complete: false, examined: 0 }, 'findings unknown'],
    ['kinds that no source can show', { blind: ['call_overdue'] }, 'no findings in what was read'],
    ['all that there is', {}, 'no findings'],
  ])('says no more of findings than was read: %s', async (_, given, said) => {
    type Given = { count?: number | null; exact?: boolean; complete?: boolean; examined?: number; blind?: string[] }
    const { count = 0, exact = true, complete = true, examined = 9, blind = [] } = given as Given
    const none = { count: 0, exact: true, oldest_since: null, nodes: [], sample: null, help: 'docs/findings.md' }
    const summary = FindingSummary.parse({
      kinds: [
        { ...none, kind: 'command_overdue' },
        { ...none, kind: 'context_of_disconnected_client', count, exact },
      ],
      observed_at: '2026-01-02T03:04:05.000Z',
      completeness: {
        complete,
        truncated_sources: complete ? [] : ['registry'],
        examined: { registry: examined },
        limits: { registry: 10 },
      },
      not_looked_for: blind,
    })
    const host = await startViewedOnce(createWorld())
    host.break((path) => (path === '/findings/summary' ? Response.json(summary) : undefined))
    const tab = await open(`${host.page}#/`, { key: KEY, refusals: true })
    const fact = tab.locator('.numbers a').first()
    await expect.poll(() => fact.innerText()).toBe(said)
    expect(await fact.getAttribute('class')).toBe('')
    const calm = { 'no findings': /^No problems found · (\d+) of \1 sources read/, 'findings unknown': /./ }[said]
    const needs =
      calm ?? (blind[0] ? /^No problems in what was read: clients, / : /^No problems in what was read: clients, /)
    expect(await tab.locator('.attention li').first().innerText()).toMatch(needs)
    if (said.endsWith('unknown')) await tab.locator('.top .fresh.late', { hasText: '1 answer missing' }).waitFor()
    else await tab.locator('.top .fresh.live').waitFor()
  })

  it('shows the stages of commands from one answer, so that they add up', async () => {
    const world = createWorld()
    const ended = { resulted: 0, failed: 0, expired: 0, cancelled: 0, rejected: 0 }
    const by_state = { waiting: 1_234, attempted: 56, acknowledged: 7, ...ended }
    const by_reason = { unspecified: 9_000, cancelled: 1, attempts_exhausted: 12, deadline_passed: 3, refused: 2 }
    const summary = { ...world.delivery.summary, tracked_commands: 1_297, by_state, by_reason }
    const host = await startViewedOnce({ ...world, delivery: { ...world.delivery, summary } })
    const page = await open(`${host.page}#/`, { key: KEY })
    const flow = page.locator('.flow')
    for (const stage of ['waiting 1,234', 'attempted 56', 'acknowledged 7'])
      await flow.getByRole('link', { name: stage, exact: true }).waitFor()
    await page.locator('main p').getByText('1,297 open').waitFor()
    // The most common reasons, each with its commands.
    const reasons = page.locator('.ends a')
    expect(await reasons.allInnerTexts()).toEqual(['12 attempts exhausted', '3 deadline passed', '2 refused'])
    expect(await reasons.first().getAttribute('href')).toBe('#/delivery/commands?reason=attempts_exhausted')
    expect(host.asked.filter((path) => path.includes('state'))).toEqual([])
  })

  it('shows when the router answers 503, when it does not answer, and when it has answered again', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/connections`, WATCHED)
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    await isFresh(page)
    host.break(problem(503, 'inspector_unavailable'))
    await fresh(page).getByText('no answer for').first().waitFor()
    await page.clock.fastForward(5_000)
    await isDimmed(page)
    await page.getByRole('link', { name: 'conn-1' }).waitFor()
    host.repair()
    await isFresh(page)

    host.break(() => new Promise<never>(() => {}))
    await page.clock.fastForward(5_000)
    await isDimmed(page)
    host.repair()
    await page.clock.fastForward(10_000)
    await isFresh(page)

    // A response of another server is not trusted.
    host.break(() => new Response('<h1>Bad gateway</h1>', { status: 502, headers: { 'content-type': 'text/html' } }))
    await page.clock.fastForward(5_000)
    await isDimmed(page)
    await page.locator('main .trouble', { hasText: '502' }).waitFor()
    expect(await page.getByText('Bad gateway').count()).toBe(0)
  })

  it('says so when the host has ended, and never shows as new what it has', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/`, WATCHED)
    await page.getByText('all sources answer').waitFor()
    await host.close()
    await page.clock.fastForward(5_000)
    await isDimmed(page)
    // A page that was not there before has nothing to show, and says that as well.
    await page.goto(`${host.page}#/sites`)
    await page.locator('main .trouble', { hasText: 'No answer' }).waitFor()
  })

  it('asks nothing while it is paused, and says since when', async () => {
    const world = createWorld()
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/connections?user_id=zoe`, { key: KEY, clock: true })
    await page.getByText(NONE).waitFor()
    await page.getByRole('button', { name: 'pause' }).click()
    await expect.poll(() => fresh(page).innerText()).toMatch(/paused.* as of \d/s)
    expect(await told(page)).toBe('paused')
    const before = host.asked.length
    world.connections.push(connection({ connection_id: 'conn-new', user_id: 'zoe' }))
    await page.clock.runFor(10_000)
    expect(host.asked.length).toBe(before)
    expect(await page.getByText(NONE).count()).toBe(1)
    // What one paused for keeps its colours: nothing is wrong, and the header says since when it stands.
    expect(await page.locator('main.late, .old, .top .late').count()).toBe(0)
    expect(await told(page)).toBe('paused')
    await page.goto(`${host.page}#/sites`)
    await page.locator('main .state', { hasText: 'not fetched while paused' }).waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('link', { name: 'conn-new' }).waitFor()
    expect(await page.getByText('no answer for').count()).toBe(0)
    await isFresh(page)
  })

  it('asks nothing while its tab is hidden, and is as new as any once it is looked at', async () => {
    const world = createWorld()
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/connections?user_id=zoe`, { key: KEY, clock: true })
    await page.getByText(NONE).waitFor()
    const show = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
         document.dispatchEvent(new Event('visibilitychange'))`,
      )
    await show(true)
    const before = host.asked.length
    await page.clock.runFor(10_000)
    expect(host.asked.length).toBe(before)
    world.connections.push(connection({ connection_id: 'conn-new', user_id: 'zoe' }))
    await show(false)
    await page.getByRole('link', { name: 'conn-new' }).waitFor()
    await isFresh(page)
  })
})
