/** The time control: every page as of an instant that the recorder of a live router has kept. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page, Request } from 'playwright-core'
import { expect, it } from 'vitest'
import { captureIncident } from '../../src/incident/capture.js'
import { openRecording, pastOf, snapshotLine } from '../../src/incident/recording.js'
import { KEY, type RouterOptions } from '../diagnostics/subject.js'
import { connection, createWorld } from '../diagnostics/world.js'
import { createOriginal, HEADERS as headers } from '../incident/subject.js'
import { inChromium } from './chromium.js'
import { startViewedOnce, type ViewedHost } from './host.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const MINUTE_MS = 60_000

/**
 * A live host whose recorder has the last 20 minutes: `later` connected ten minutes ago, and nothing was recorded for five
 * minutes before that.
 */
async function startRecorded(options: RouterOptions = {}): Promise<ViewedHost & { at(minutes: number): number }> {
  const world = createWorld()
  const later = connection({ connection_id: 'later', client_id: 'later' })
  const incident = await captureIncident(createOriginal(), { headers })
  const now = Date.now()
  const at = (minutes: number) => now + minutes * MINUTE_MS
  const time = (minutes: number) => new Date(at(minutes)).toISOString()
  const route = '/connections/{connection_id}/history'
  const missing = { route, of: null, reason: 'not_followed' as const, count: null, detail: 'only lists are recorded' }
  const begun = {
    ...incident,
    parts: incident.parts.filter((part) => part.route !== route),
    missing: [...incident.missing, missing],
    clocks: { node: null, observer: { from: time(-20), to: time(-20) } },
  }
  const change = { kind: 'rows', route: '/connections', upsert: [later], remove: [], order: null, cut: false }
  const seen = Array.from({ length: 41 }, (_, i) => -20 + i / 2).filter((minutes) => minutes < -15 || minutes >= -10)
  const lines = [
    snapshotLine(begun, false),
    ...seen.flatMap((minutes) => [
      ...(minutes === -10 ? [JSON.stringify({ ...change, at: time(minutes) })] : []),
      JSON.stringify({ kind: 'seen', at: time(minutes) }),
    ]),
  ]
  const recording = openRecording([{ name: 'a', read: () => lines.map((line) => `${line}\n`).join('') }])
  const past = pastOf(recording)
  const recorder = { at: (instant: number) => past.at(instant < now ? instant : Math.min(instant, recording.to)) }
  const host = await startViewedOnce(
    { ...world, connections: [...(world.connections ?? []), later] },
    { recorder, now: Date.now, ...options },
  )
  return { ...host, at }
}

const link = (page: Page, name: string) => page.locator('main').getByRole('link', { name: new RegExp(`${name}$`) })
const band = (page: Page) => page.getByRole('complementary', { name: 'Time' })
const slider = (page: Page) => page.getByRole('slider', { name: 'Instant of the recording' })
const isLive = (page: Page) => expect.poll(() => new URL(page.url()).search).toBe('')

inChromium('the time control', (open) => {
  it('leads to an instant and back, and requests nothing else meanwhile', async () => {
    const host = await startRecorded()
    const page = await open(`${host.page}#/connections`, { key: KEY, clock: true })
    await link(page, 'later').waitFor()
    await page.getByRole('button', { name: 'earlier' }).click()
    await slider(page).waitFor()
    expect(await slider(page).getAttribute('max')).toBe(String(host.at(0)))
    const pending = new Set<Request>()
    page.on('request', (request) => pending.add(request))
    page.on('requestfinished', (request) => pending.delete(request))
    page.on('requestfailed', (request) => pending.delete(request))
    await slider(page).fill(String(host.at(-18)))
    await band(page)
      .getByText(/^As of .*, 1[78] min ago$/)
      .waitFor()
    await link(page, 'conn-1').waitFor()
    expect(await link(page, 'later').count()).toBe(0)
    expect((await page.locator('.top .fresh').innerText()).split('\n')).toEqual(['not live', 'not live'])
    expect(await page.title()).toMatch(/^As of /)
    /** Requests of another two seconds. */
    const askedMore = async () => {
      const asked = host.asked.length
      await page.clock.runFor(2_000)
      await new Promise((resolve) => setTimeout(resolve, 200))
      return host.asked.length - asked
    }
    // The clock of the page must not run ahead of an answer: its requests end after 15 s.
    await expect.poll(async () => (await askedMore()) + pending.size).toBe(0)
    const before = host.asked.length
    await page.clock.runFor(20_000)
    expect(host.asked.slice(before)).toEqual([])
    // Another page keeps the instant, and so does its link.
    await page.locator('nav.views').getByRole('link', { name: 'Users' }).click()
    await link(page, 'alice').waitFor()
    expect(new URL(page.url()).searchParams.get('at')).toBe(String(host.at(-18)))
    expect([...new Set(host.asked.slice(before))]).toEqual([`/at/${host.at(-18)}/users`])
    await page.goBack()
    await page.goBack()
    await isLive(page)
    await link(page, 'later').waitFor()
    await page.goForward()
    await expect.poll(() => link(page, 'later').count()).toBe(0)
    await band(page).getByRole('button', { name: 'Back to live' }).click()
    await isLive(page)
    await link(page, 'later').waitFor()
  })

  it('takes a typed time, and steps by keys', async () => {
    const host = await startRecorded()
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await link(page, 'later').waitFor()
    const isAt = (instant: number) => expect.poll(() => page.url()).toContain(`?at=${instant}#`)
    const minute = Math.floor(Date.now() / MINUTE_MS)
    await page.keyboard.press(',')
    await expect.poll(() => new URL(page.url()).search).not.toBe('')
    const first = Number(new URL(page.url()).searchParams.get('at'))
    expect(first % MINUTE_MS).toBe(0)
    expect(first / MINUTE_MS).toBeGreaterThanOrEqual(minute - 1)
    await slider(page).waitFor()
    await page.keyboard.press(',')
    await isAt(first - MINUTE_MS)
    await page.keyboard.press('.')
    await isAt(first)
    const field = page.getByLabel('time', { exact: true })
    await field.fill('yesterday')
    await page.getByText('such as 14:03, 14:03:20 or -5m').waitFor()
    await field.fill('-18m')
    await field.press('Enter')
    await expect.poll(() => link(page, 'later').count()).toBe(0)
    await link(page, 'conn-1').waitFor()
    const clock = new Date(host.at(-17)).toTimeString().slice(0, 8)
    await field.fill(clock)
    await field.press('Enter')
    await isAt(Math.floor(host.at(-17) / 1_000) * 1_000)
    await field.fill(new Date(host.at(-1)).toISOString())
    await field.press('Enter')
    await isAt(host.at(-1))
    await slider(page).waitFor()
    await page.keyboard.press('Escape')
    for (let i = 0; i < 3; i++) await page.keyboard.press('.')
    await isLive(page)
    await band(page).waitFor({ state: 'detached' })
  })

  it('opens a link to an instant, and says in words what was not recorded', async () => {
    const host = await startRecorded()
    const page = await open(`${host.page}?at=${new Date(host.at(-12)).toISOString()}#/connections`, {
      key: KEY,
      refusals: true,
    })
    await band(page)
      .getByText(/^Nothing was recorded from .*: this is the state before\.$/)
      .waitFor()
    await link(page, 'conn-1').waitFor()
    expect(await link(page, 'later').count()).toBe(0)
    await page.goto(`${host.page}?at=${host.at(-1)}#/connections/later`)
    await page.locator('main .absent', { hasText: 'Not recorded' }).waitFor()
    expect(await page.locator('main .trouble').count()).toBe(0)
    await page.goto(`${host.page}?at=${host.at(-30)}#/connections`)
    await page.getByRole('heading', { name: 'Not recorded' }).waitFor()
    await page.getByText('The recording has').waitFor()
    await page.getByRole('button', { name: /^Show / }).click()
    await link(page, 'conn-1').waitFor()
    await page.goto(`${host.page}?at=soon#/connections`)
    await page.getByText('Nothing was recorded then').waitFor()
    await band(page).getByRole('button', { name: 'Back to live' }).click()
    await link(page, 'later').waitFor()
  })

  it('shows a caller with access to some users their rows only', async () => {
    const host = await startRecorded({ authorize: () => ({ user_ids: ['bob'] }) })
    const page = await open(`${host.page}?at=${host.at(-1)}#/connections`, { key: KEY, refusals: true })
    await link(page, 'conn-5').waitFor()
    const rows = await page.locator('main tbody tr').allInnerTexts()
    expect(rows.map((row) => row.split(' / ')[0])).toEqual(['bob', 'bob'])
    const past = host.asked.filter((path) => path.startsWith('/at/'))
    expect(past.length).toBeGreaterThan(0)
  })

  it.each(['light', 'dark'] as const)('breaks no rule of axe, in %s', async (colorScheme) => {
    const host = await startRecorded()
    const options = { key: KEY, colorScheme, reducedMotion: 'reduce', refusals: true } as const
    const page = await open(`${host.page}?at=${host.at(-12)}#/connections`, options)
    async function judge(): Promise<void> {
      await page.evaluate(AXE)
      const { violations } = await page.evaluate<AxeResults, RunOptions>(
        (options) => (globalThis as unknown as { axe: typeof import('axe-core') }).axe.run(document, options),
        { rules: { 'target-size': { enabled: true }, 'label-content-name-mismatch': { enabled: true } } },
      )
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 120))])).toEqual([])
    }
    await slider(page).waitFor()
    await link(page, 'conn-1').waitFor()
    await judge()
    await page.goto(`${host.page}?at=${host.at(-30)}#/connections`)
    await page.getByRole('heading', { name: 'Not recorded' }).waitFor()
    await judge()
    await page.goto(`${host.page}#/changes?from=${host.at(-18)}`)
    await family(page, 'Connections').getByText('1 new').waitFor()
    await judge()
  })

  it('is not there without a recorder', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/connections`, { key: KEY })
    await link(page, 'conn-1').waitFor()
    expect(await page.getByRole('button', { name: 'earlier' }).count()).toBe(0)
    await page.keyboard.press(',')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    expect(await page.getByText('one minute back').count()).toBe(0)
    await isLive(page)
  })
})

const family = (page: Page, title: string) =>
  page.locator('main section').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

inChromium('the page of what changed', (open) => {
  it('counts what is new and gone between two instants, and leads to it as of then', async () => {
    const host = await startRecorded()
    // What the recorder does not follow is refused. Sums of this world are from another year than its router.
    const page = await open(`${host.page}#/connections`, { key: KEY, refusals: true })
    await page.locator('nav.views').getByRole('link', { name: 'What changed' }).click()
    // Five minutes ago everything was as it is now.
    await family(page, 'Connections').getByText('unchanged').waitFor()
    expect(await family(page, 'Connections').getByRole('listitem').count()).toBe(0)
    await page.getByRole('link', { name: 'last 30 min' }).click()
    const changes = family(page, 'Connections')
    await changes.getByText(/^1 new · \d+ unchanged$/).waitFor()
    expect(await changes.getByRole('listitem').allInnerTexts()).toEqual([expect.stringMatching(/^\+ .*later$/)])
    await changes.getByRole('link', { name: /later$/ }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('at')).not.toBeNull()
    expect(page.url()).toMatch(/#\/connections\/later$/)
    await page.goBack()
    await changes.getByText('1 new').waitFor()
  })

  it('has only the rows of a caller with access to some users', async () => {
    const host = await startRecorded({ authorize: () => ({ user_ids: ['bob'] }) })
    const page = await open(`${host.page}#/changes?from=${host.at(-18)}`, { key: KEY, refusals: true })
    await family(page, 'Connections')
      .getByText(/^1 unchanged$/)
      .waitFor()
  })

  it('says what it needs where nothing is recorded', async () => {
    const host = await startViewedOnce(createWorld())
    const page = await open(`${host.page}#/changes`, { key: KEY })
    await page.locator('main .absent').waitFor()
    expect(await page.locator('nav.views a', { hasText: 'What changed' }).isVisible()).toBe(false)
    expect(await page.locator('main section.card').count()).toBe(0)
  })
})

inChromium('what a first visit shows', (open) => {
  it('has what happened before it, from the recorder', async () => {
    const host = await startRecorded()
    const page = await open(`${host.page}#/`, { key: KEY })
    await page.getByText('all sources answer').waitFor()
    await page.goto(`${host.page}#/findings`)
    await page.locator('.trend').first().waitFor()
    await expect
      .poll(() => page.locator('.trend').first().getAttribute('aria-label'))
      .toMatch(/^2 min before \d+, 1 min before \d+, as shown \d+$/)
  })
})
