/** The viewer before the live host: real clients come, work and go, and then the host itself is stopped and ended. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { end, type LiveHost, startLiveHost } from '../end-to-end/live-host-process.js'
import { inChromium } from './chromium.js'

inChromium('the viewer of the live host', (open) => {
  let host: LiveHost
  let page: string
  beforeAll(async () => {
    host = await startLiveHost()
    page = new URL('/dashboard/', host.diagnostics).href
  })
  afterAll(async () => {
    host.child.kill('SIGCONT')
    await end(host)
  })

  it('is opened by the link that the host prints, and shows every page', async () => {
    const [link] = /http\S+#key=\S+/.exec(host.printed.at(-1) ?? '') ?? ['']
    const tab = await open(link)
    await tab.getByText('all sources answer').waitFor()
    const links = tab.locator('nav.views a')
    await tab.locator('nav.views a', { hasText: 'Sources' }).waitFor()
    for (const title of await links.allTextContents()) {
      const link = links.filter({ hasText: new RegExp(`^${title}$`) })
      // What is not fed is folded up.
      if (!(await link.isVisible())) await tab.locator('nav.views summary').click()
      await link.click()
      await tab.locator('main h1', { hasText: title === 'Overview' ? 'relayscope' : title }).waitFor()
      await expect.poll(() => tab.locator('main .state', { hasText: 'loading' }).count()).toBe(0)
      await expect
        .poll(async () => [title, ...(await tab.locator('main .trouble, main .absent').allTextContents())])
        .toEqual([title])
    }
  })

  it('shows a client that comes, the commands that others get, and that it has gone, without a reload', async () => {
    const tab = await open(`${page}#/connections?user_id=visitor`, { key: host.key })
    await tab.getByText('No connections with user_id = visitor (exact match).').waitFor()
    const visitor = await tab.context().newPage()
    await visitor.goto(host.url)
    const row = tab.locator('main tbody tr')
    await row
      .filter({ hasText: 'disconnected' })
      .or(row.filter({ hasText: 'connected' }))
      .first()
      .waitFor()
    await visitor.close()
    await row.filter({ hasText: 'disconnected' }).waitFor()

    await tab.goto(`${page}#/delivery/commands`)
    await row.first().waitFor()
    const idsOf = () =>
      tab.locator('main tbody a.who').evaluateAll((all) => (all as HTMLElement[]).map(({ title }) => title))
    const before = new Set(await idsOf())
    // New rows wait, so that no row moves away from a pointer.
    await tab.getByRole('button', { name: /^show \d+ new$/ }).click()
    await expect.poll(async () => (await idsOf()).some((id) => !before.has(id))).toBe(true)
  })

  it('shows when the host is stopped, when it continues, and when it has ended', async () => {
    const tab = await open(page, { key: host.key, refusals: true })
    const fresh = tab.locator('.top .fresh')
    await tab.getByText('all sources answer').waitFor()
    await fresh.getByText('live').first().waitFor()
    // What has not loaded yet cannot be old.
    await tab.locator('main .commands b').first().waitFor()
    await expect.poll(() => tab.locator('main .state', { hasText: 'loading' }).count()).toBe(0)
    host.child.kill('SIGSTOP')
    await fresh.getByText('no answer for').first().waitFor()
    await tab.locator('main.late .old').first().waitFor()
    host.child.kill('SIGCONT')
    await expect.poll(() => tab.locator('main.late, main .old').count()).toBe(0)
    await end(host)
    await fresh.getByText('no answer for').first().waitFor()
    await tab.locator('main.late .old').first().waitFor()
    await tab.locator('main .state .trouble', { hasText: 'No answer' }).first().waitFor()
  })
})
