/** Opens every page of the dashboard, from its navigation and by its address, over a world in which each has something to show. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { traceFields } from '../../src/internal/contract/ids.js'
import type { FindingSummary } from '../../src/internal/views/findings/finding.js'
import { KEY } from '../diagnostics/subject.js'
import { call, connection, createWorld } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, startViewedOnce, type ViewedHost } from './host.js'

/** By the path in `pages.tsx`: an address of it, its heading, and what of the world is to be read there. */
const PAGES: Record<string, readonly [address: string, heading: string, ...texts: string[]]> = {
  '/': ['/', 'relayscope', '4 open', 'node-2', 'all sources answer'],
  '/findings': ['/findings', 'Findings', 'session without connector', 'Subjects'],
  // Without a recorder it says what it needs.
  '/changes': ['/changes', 'What changed', 'recorder'],
  '/users': ['/users', 'Users', 'alice', 'carol'],
  '/users/*/summary': ['/users/alice/summary', 'alice', 'All fields', 'desk-3', 'cmd-2'],
  '/connections': ['/connections', 'Connections', 'bob / desk', 'mobile'],
  '/connections/*': ['/connections/conn-1', 'Connection', 'inst-1', 'client left'],
  '/contexts': ['/contexts', 'Workers and contexts', 'ctx-7', 'stale'],
  '/contexts/*': ['/contexts/ctx-4', 'Context', 'task-1'],
  '/workers/tasks/*': ['/workers/tasks/task-1?user_id=alice', 'Task', 'ctx-4', 'ctx-8'],
  '/browser-windows': ['/browser-windows', 'Windows', 'win-3', 'popup'],
  '/browser-windows/*': ['/browser-windows/win-1', 'Window', 'maximized', 'ctx-1'],
  '/actions': ['/actions', 'Actions', 'print', 'Opens a page'],
  '/delivery/commands': ['/delivery/commands', 'Commands', 'cmd-2', 'resulted'],
  '/delivery/status': [
    '/delivery/status?user_id=alice&client_id=desk&command_id=cmd-1',
    'Command',
    'admitted',
    'Not proven',
  ],
  '/delivery/mailboxes': ['/delivery/mailboxes', 'Mailboxes', 'desk-3'],
  '/delivery/nodes': ['/delivery/nodes', 'Nodes', 'node-3', 'lease expired 1'],
  '/delivery/tenants': ['/delivery/tenants', 'Tenants', 'scope-3'],
  '/rpc/pending': ['/rpc/pending', 'Calls', 'call-4', 'foreign'],
  '/rpc/pending/*': ['/rpc/pending/call-1', 'Call', 'inst-1'],
  '/rpc/ended': ['/rpc/ended', 'Ended calls', 'over-2', 'timed out'],
  '/rpc/ended/*': ['/rpc/ended/over-2', 'Call', 'duration', 'timed out'],
  '/rpc/instances/*': ['/rpc/instances/inst-1?user_id=alice&client_id=desk', 'Instance', 'it holds its client'],
  '/sites': ['/sites', 'Sites', 'board', 'note_changed'],
  '/sites/*': ['/sites/notes-1', 'Site', 'archive_note', 'session-1'],
  '/sessions': ['/sessions', 'Sessions', 'session-4'],
  '/sessions/*': ['/sessions/session-2', 'Session', 'sub-4'],
  '/subscriptions': ['/subscriptions', 'Viewers', 'sub-4', 'epoch-1:7'],
  '/history/streams': ['/history/streams', 'History', 'users/bob/log'],
  '/history/messages': ['/history/messages?stream=users/alice/log', 'Messages', 'msg-3', 'hello'],
  '/sources': ['/sources', 'Sources', '✓ answered', 'duplicates', 'Can be asked'],
}

it('knows every page that there is', () => {
  const source = readFileSync('src/dashboard/page/pages.tsx', 'utf8')
  const table = source.slice(source.indexOf('export const PAGES'), source.indexOf('/** The page of a path. */'))
  expect(Object.keys(PAGES)).toEqual([...table.matchAll(/^ {2}'(\/[^']*)':/gm)].map(([, path]) => path))
})

inChromium('the dashboard’s pages', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(createWorld())
  })
  afterAll(() => host.close())

  it('open by their addresses, each with its data and none with a fault', async () => {
    const page = await open(host.page, { key: KEY })
    const main = page.locator('main')
    for (const [address, heading, ...texts] of Object.values(PAGES)) {
      await page.goto(`${host.page}#${address}`)
      await page.reload()
      await main.locator('h1', { hasText: heading }).waitFor({ state: 'attached' })
      for (const text of texts) await main.getByText(text).filter({ visible: true }).first().waitFor()
      expect(await main.locator('.trouble').allTextContents(), address).toEqual([])
      expect(await page.title()).toContain('·')
    }
  })

  it('open from the navigation, which says where one is', async () => {
    const page = await open(host.page, { key: KEY })
    const links = page.locator('nav.views a')
    await links.first().waitFor()
    const titles = await links.allTextContents()
    expect(titles.length).toBeGreaterThan(15)
    for (const title of titles) {
      await links.filter({ hasText: new RegExp(`^${title}$`) }).click()
      await page.locator('main h1', { hasText: title === 'Overview' ? 'relayscope' : title }).waitFor()
      expect(await page.locator('nav.views [aria-current=page]').allTextContents()).toEqual([title])
    }
  })

  it('count the findings in the navigation', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    const counted = page.locator('nav.views [data-count]')
    const shown = async () => Number.parseInt((await counted.getAttribute('data-count')) ?? '', 10)
    const total = async () =>
      (await host.ask<FindingSummary>('/findings/summary')).kinds.reduce((sum, { count }) => sum + (count ?? 0), 0)
    await expect.poll(async () => (await counted.allTextContents()).join()).toBe('Findings')
    // More become due while the test runs.
    await expect.poll(async () => (await shown()) === (await total())).toBe(true)
    expect(await shown()).toBeGreaterThan(0)
  })

  it('name the docs of a problem', async () => {
    const page = await open(`${host.page}#/connections?status=none`, { key: KEY, refusals: true })
    await page.locator('main .trouble', { hasText: 'status' }).waitFor()
    const link = page.locator('main .trouble').getByRole('link', { name: 'Read more' })
    const opened = page.context().waitForEvent('page')
    await link.click()
    const docs = await opened
    await docs.locator('h3#invalid_query').waitFor()
    expect(new URL(docs.url()).pathname).toBe('/dashboard/docs/problems')
  })

  it('link findings and problems to the heading of the docs that explains them', async () => {
    const docs = 'https://git.example/relayscope/docs/'
    const host = await startViewedOnce(createWorld(), {}, { docsUrl: docs })
    const page = await open(`${host.page}#/findings`, { key: KEY, refusals: true })
    const links = page.locator('main a[target=_blank]')
    const hrefs = () => links.evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
    await links.first().waitFor({ state: 'attached' })
    const found = await hrefs()
    await page.goto(`${host.page}#/connections?status=none`)
    await page.locator('main .trouble a').waitFor()
    expect(found.length).toBeGreaterThan(1)
    for (const href of [...found, ...(await hrefs())]) {
      expect(href.startsWith(docs)).toBe(true)
      const [file, heading] = href.slice(docs.length).split('#')
      expect(readFileSync(`docs/${file}`, 'utf8')).toMatch(
        new RegExp(`^#+ .*\\b${heading}\\b|<a id="${heading}">`, 'm'),
      )
    }
  })

  it('show times in the zone of the browser, or in UTC in every tab from then on', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY, timezoneId: 'Asia/Tokyo' })
    const times = () =>
      page
        .locator('tbody time')
        .evaluateAll((all) => all.map((time) => (time.getAttribute('title') ?? '').split(' ').slice(-2)))
    const written = (hours: number) => async () =>
      (await times()).every(([text, at = '']) =>
        text?.endsWith(new Date(Date.parse(at ?? '') + hours * 3_600_000).toISOString().slice(11, 19)),
      )
    await page.locator('tbody time').first().waitFor()
    expect(await written(9)()).toBe(true)
    const zone = page.locator('.top .zone')
    expect(await zone.textContent()).toBe('UTC+9')
    await zone.click()
    expect(await zone.textContent()).toBe('UTC')
    await expect.poll(written(0)).toBe(true)
    await page.reload()
    await page.locator('tbody time').first().waitFor()
    expect([await zone.textContent(), await written(0)()]).toEqual(['UTC', true])
  })

  it('keep the head of a list in sight while it scrolls', async () => {
    const world = createWorld()
    for (let i = 0; i < 200; i++)
      world.connections.push(connection({ connection_id: `many-${i}`, client_id: `many-${i}` }))
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/connections?limit=500`, { key: KEY })
    const list = page.locator('main .tall')
    await expect.poll(() => list.locator('tbody tr').count()).toBeGreaterThan(200)
    const last = list.locator('tbody tr').last()
    await last.scrollIntoViewIfNeeded()
    const [box, head] = [await list.boundingBox(), await list.locator('thead th').first().boundingBox()]
    expect(await list.evaluate((element) => element.scrollTop)).toBeGreaterThan(1_000)
    expect(Math.abs((head?.y ?? 0) - (box?.y ?? 0))).toBeLessThan(2)
    // It covers no row that is said to be in sight: it is painted above them.
    expect(
      await page.evaluate(
        ([x, y]) => document.elementFromPoint(x as number, y as number)?.closest('thead') !== null,
        [(head?.x ?? 0) + 4, (head?.y ?? 0) + 4],
      ),
    ).toBe(true)
  })

  it.each([1_280, 390])('change their theme by a button, in a window of %d px', async (width) => {
    const page = await open(host.page, { key: KEY, viewport: { width, height: 800 }, colorScheme: 'light' })
    const shade = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await shade()
    const theme = page.locator('.top .theme')
    await theme.click()
    expect([await theme.getAttribute('aria-label'), await shade()]).toEqual(['theme: light, change', light])
    await theme.click()
    expect(await theme.getAttribute('aria-label')).toBe('theme: dark, change')
    expect(await shade()).not.toBe(light)
    await page.reload()
    await theme.waitFor()
    expect(await theme.getAttribute('aria-label')).toBe('theme: dark, change')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  })

  it('leave room between the cards of the overview', async () => {
    const page = await open(host.page, { key: KEY })
    await page.getByText('all sources answer').waitFor()
    await expect.poll(() => page.locator('.cards .card').count()).toBeGreaterThan(2)
    const boxes = await page.locator('main .card').evaluateAll((cards) =>
      cards.map((card) => {
        const { left, right, top, bottom } = card.getBoundingClientRect()
        return { left, right, top, bottom }
      }),
    )
    const isClose = boxes.flatMap((a, i) =>
      boxes.slice(i + 1).filter((b) => {
        const across = Math.max(a.left - b.right, b.left - a.right)
        const down = Math.max(a.top - b.bottom, b.top - a.bottom)
        return Math.max(across, down) < 8
      }),
    )
    expect(isClose).toEqual([])
  })

  it('follow the links in their tables from one to the next', async () => {
    const page = await open(`${host.page}#/connections`, { key: KEY })
    const follow = async (link: string, heading: string) => {
      await page.locator('main').getByRole('link', { name: link }).first().click()
      await page.locator('main h1', { hasText: heading }).waitFor()
    }
    await follow('conn-5', 'Connection')
    await page.locator('main').getByRole('link', { name: 'bob', exact: true }).first().click()
    await page.locator('main h1', { hasText: 'bob' }).waitFor()
    await follow('board', 'Site')
    await follow('session-4', 'Session')
    await page.goBack()
    await page.locator('main h1', { hasText: /^Site$/ }).waitFor()
    await page.goForward()
    await page.locator('main h1', { hasText: /^Session$/ }).waitFor()
  })

  it('show the last hour of a user by client on one axis, before the tables', async () => {
    const page = await open(`${host.page}#/users/alice/summary`, { key: KEY })
    const lanes = page.locator('main .user-axis .lane:not(.axis-row) .name')
    await lanes.first().waitFor()
    const barsOf = async (name: string) => {
      const lane = page.locator('main .user-axis .lane', { has: page.locator(`.name[title="${name}"]`) })
      const bars = await lane.locator('a').all()
      const titles = await Promise.all(bars.map((bar) => bar.getAttribute('title')))
      return titles.map((title) => title?.split(' ')[0]).sort()
    }
    // A command and two contexts ended long ago.
    const contexts = Array.from({ length: 5 }, () => 'context')
    await expect.poll(() => barsOf('desk')).toEqual(['call', 'call', 'call', 'command', ...contexts])
    expect(await barsOf('desk-1')).toEqual(['connection'])
    // It is before all tables.
    expect(
      await page.evaluate(() => {
        const [axis, table] = [document.querySelector('main .user-axis'), document.querySelector('main table')]
        return (axis as Element).compareDocumentPosition(table as Element) & Node.DOCUMENT_POSITION_FOLLOWING
      }),
    ).toBeGreaterThan(0)
    const [link] = await page.locator('main .user-axis a[title^="command cmd-2"]').all()
    expect(await link?.getAttribute('href')).toBe('#/delivery/status?user_id=alice&client_id=desk&command_id=cmd-2')
  })

  it('link a job to the page of the host about it, in another tab', async () => {
    const world = createWorld()
    const statuses = ['e%3Amail:7%25', 'plain'].map((command_id) => ({ command_id }))
    const shown = { ...world, delivery: { statuses } }
    const jobUrl = 'https://board.example/queue/{queue}/{job_id}'
    const host = await startViewedOnce(shown, {}, { jobUrl })
    const at = (id: string) =>
      `${host.page}#/delivery/status?${new URLSearchParams({ user_id: 'user-1', client_id: 'client-1', command_id: id })}`
    const page = await open(at('e%3Amail:7%25'), { key: KEY })
    const link = page.locator('main').getByRole('link', { name: 'Open the job' })
    await link.waitFor()
    expect(await link.getAttribute('href')).toBe('https://board.example/queue/e%3Amail/7%25')
    await page.goto(at('plain'))
    await page.locator('main', { hasText: 'plain' }).waitFor()
    expect(await link.count()).toBe(0)
  })

  it('draw a call from when it was sent to its answer, or to the end of its connection', async () => {
    const sent = '2026-01-02T03:04:00.000Z'
    const ended = { user_id: 'alice', client_id: 'desk', started_at: sent, ended_at: '2026-01-02T03:04:02.000Z' }
    const lost = { outcome: 'unanswered', observed: true, connection_reason: 'heartbeat_lost' } as const
    const world = {
      ...createWorld(),
      calls: [call({ correlation_id: 'open', observed: true, answered_since: 'later', started_at: sent })],
      endedCalls: [
        { ...ended, correlation_id: 'done', outcome: 'succeeded' as const },
        { ...ended, ...lost, correlation_id: 'lost' },
      ],
    }
    const host = await startViewedOnce(world)
    const page = await open(`${host.page}#/rpc/ended/done`, { key: KEY })
    const lane = page.locator('.event-chart .lane', { hasText: 'call' })
    const marks = lane.getByRole('img')
    const titles = () => marks.evaluateAll((all) => all.map((each) => each.getAttribute('title')?.split(', ')[0]))
    await expect.poll(titles).toEqual(['sent', 'answered'])
    await page.goto(`${host.page}#/rpc/ended/lost`)
    await expect.poll(titles).toEqual(['sent', 'connection ended: heartbeat lost'])
    await page.goto(`${host.page}#/rpc/pending/open`)
    await expect.poll(titles).toEqual(['sent', 'deadline'])
  })

  it('link the traces of commands, calls and messages to the tracing of the host, in another tab', async () => {
    const world = createWorld()
    const traced = traceFields(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)
    const [pending, ...calls] = world.calls
    const [message, ...messages] = world.messages
    const shown = {
      ...world,
      calls: [{ ...(pending as NonNullable<typeof pending>), ...traced }, ...calls],
      messages: [{ ...(message as NonNullable<typeof message>), ...traced }, ...messages],
      delivery: { statuses: [{ command_id: 'traced', ...traced }] },
    }
    const command = '/delivery/status?user_id=user-1&client_id=client-1&command_id=traced'
    const traceUrl = 'https://tracing.example/trace/{trace_id}?from=relay'
    const host = await startViewedOnce(shown, {}, { traceUrl })
    const page = await open(host.page, { key: KEY })
    const link = page.locator('main').getByRole('link', { name: 'a'.repeat(32) })
    for (const path of [
      `/rpc/pending/${pending?.correlation_id}`,
      command,
      `/history/messages?stream=${message?.stream}`,
    ]) {
      await page.goto(`${host.page}#${path}`)
      await link.waitFor()
      expect(await link.getAttribute('href')).toBe(`https://tracing.example/trace/${'a'.repeat(32)}?from=relay`)
    }
    await page.context().route('https://tracing.example/**', (route) => route.fulfill({ body: 'the trace' }))
    const opened = page.context().waitForEvent('page')
    await link.click()
    await (await opened).getByText('the trace').waitFor()
    // Of another host it is text.
    const other = await open(`${(await startViewedOnce(shown)).page}#/rpc/pending/${pending?.correlation_id}`, {
      key: KEY,
    })
    await other.getByText('a'.repeat(32), { exact: true }).waitFor()
    expect(await other.getByRole('link', { name: 'a'.repeat(32) }).count()).toBe(0)
  })

  it('say so where none is of the address', async () => {
    const page = await open(`${host.page}#/none/such`, { key: KEY })
    await page.getByText('No page shows this: /none/such').waitFor()
  })
})
