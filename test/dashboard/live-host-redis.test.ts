/** The dashboard of an observer over a store: a node that is stopped, one that is killed, and the store itself. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { end, type LiveHost, PROGRAM, startLiveHost } from '../end-to-end/live-host-process.js'
import { describeRedis } from '../redis/server.js'
import { inChromium } from './chromium.js'

describeRedis('over a store', () => {
  inChromium('the dashboard of an observer', (open) => {
    // Every folder that anything here makes is in this one.
    const folder = mkdtempSync(join(tmpdir(), 'relayscope-test-'))
    let host: LiveHost
    let page: string
    beforeAll(async () => {
      vi.stubEnv('TMPDIR', folder)
      host = await startLiveHost(['--redis', 'embedded'], PROGRAM, 'ignore')
      page = new URL('/dashboard/', host.diagnostics).href
    })
    afterAll(async () => {
      for (const name of ['node b', 'redis-server']) tell(name, 'SIGCONT')
      await end(host, 'SIGTERM')
      vi.unstubAllEnvs()
      rmSync(folder, { recursive: true, force: true })
    })

    /** Sends a signal to a process of the deployment. */
    function tell(name: string, signal: NodeJS.Signals): void {
      const [, pid] = new RegExp(`^ {2}${name} {2}pid (\\d+)`, 'm').exec(host.text) ?? []
      process.kill(Number(pid), signal)
    }

    /** The headline counts nodes, and those that are silent only if there are any. */
    const ALL_ALIVE = /(?<!of )2 nodes/
    const headline = (tab: Page, text: string | RegExp) => tab.locator('.headline', { hasText: text }).waitFor()

    it('shows a stopped node as silent, and as alive once it continues', async () => {
      const tab = await open(page, { key: host.key })
      await headline(tab, ALL_ALIVE)
      tell('node b', 'SIGSTOP')
      await headline(tab, '1 of 2 nodes silent')
      await tab.goto(`${page}#/delivery/nodes`)
      const row = tab.locator('main tbody tr').filter({ has: tab.getByRole('rowheader', { name: 'b', exact: true }) })
      await row.getByText('silent').first().waitFor()
      // What runs in it is unknown now.
      await row.locator('.unknown').first().waitFor()
      tell('node b', 'SIGCONT')
      await row.locator('.unknown').first().waitFor({ state: 'detached' })
      await tab.goto(`${page}#/`)
      await headline(tab, ALL_ALIVE)
    })

    it('shows a node that is killed, and who has taken over its clients', async () => {
      const tab = await open(page, { key: host.key })
      await headline(tab, ALL_ALIVE)
      tell('node a', 'SIGKILL')
      await headline(tab, '1 of 2 nodes silent')
      await tab.goto(`${page}#/connections?status=connected`)
      await expect
        .poll(async () => new Set((await tab.locator('main tbody tr').allInnerTexts()).map((row) => /\ta\t/.test(row))))
        .toEqual(new Set([false]))
    })

    it('names what cannot be read while the store is stopped, and reads it once it continues', async () => {
      const tab = await open(page, { key: host.key, refusals: true })
      await headline(tab, 'all sources answer')
      await headline(tab, /2 nodes/)
      tell('redis-server', 'SIGSTOP')
      await headline(tab, /no answer from (\d+ sources|\w+)/)
      await tab.locator('.attention .detail', { hasText: /: .*registry/ }).waitFor()
      await tab.locator('main .trouble').first().waitFor()
      await tab.locator('main .old').first().waitFor()
      // The observer itself answers, so the page is not late as a whole; but nothing of it is calm.
      await tab.locator('.top .fresh.late', { hasText: /\d answers? missing or old/ }).waitFor()
      expect(await tab.locator('main.late').count()).toBe(0)
      await tab
        .locator('main a', { hasText: /^(?:findings unknown|no findings in what was read)/ })
        .first()
        .waitFor()
      await headline(tab, /silent nodes unknown since/)
      tell('redis-server', 'SIGCONT')
      await headline(tab, 'all sources answer')
      await expect.poll(() => tab.locator('main .trouble, main .old').count()).toBe(0)
      await tab.locator('.top .fresh.live').waitFor()
    })
  })
})
