/** Pages in a real Chromium for the tests of the dashboard: one browser a file, and whatever a page must never do is written down. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { isChromiumMissing, launchChromium } from '../chromium.js'

/** The console message of a browser for a failed request. */
const REFUSED = /^Failed to load resource/

export interface OpenOptions extends BrowserContextOptions {
  /** What the tab has kept since before. */
  key?: string
  /** Where the page is going to be, where that is not `url`. */
  home?: string
  /** The tab's clock can be set forward, which makes due what its timers wait for. */
  clock?: true
  /** Some requests fail or get no response, which the browser logs to its console. */
  refusals?: true
}

/** Opens `url` in a tab of its own, which is closed after the test; a fault of the page fails the test. */
export type Open = (url: string, options?: OpenOptions) => Promise<Page>

/** Records faults of `page`: errors, dialogs, violations of its policy, requests to other origins. */
async function guard(page: Page, origin: string, refusals: boolean, faults: string[]): Promise<void> {
  page.on('pageerror', ({ message }) => faults.push(`error: ${message}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    if (message.type() === 'error' && !(refusals && REFUSED.test(message.text())))
      faults.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`request: ${request.url()}`)
  })
  await page.exposeFunction('reportViolation', (what: string) => void faults.push(`policy: ${what}`))
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) =>
       reportViolation(event.effectiveDirective + ' ' + event.blockedURI))`,
  )
}

/** `describe` where there is a Chromium, with the means to open pages in it; elsewhere a named skip. */
export function inChromium(name: string, body: (open: Open) => void): void {
  describe.skipIf(isChromiumMissing)(`${name} (needs chromium)`, () => {
    const launching: { browser?: Browser } = {}
    beforeAll(async () => {
      launching.browser = await launchChromium()
    })
    afterAll(() => launching.browser?.close())
    body(async (url, { key, home = url, clock, refusals = false, ...options } = {}) => {
      const context = await (launching.browser as Browser).newContext(options)
      const faults: string[] = []
      onTestFinished(async () => {
        await context.close()
        expect(faults).toEqual([])
      })
      const page = await context.newPage()
      await guard(page, new URL(home).origin, refusals, faults)
      if (clock) await page.clock.install()
      if (key !== undefined) await page.addInitScript(`sessionStorage.setItem('relayscope.key', '${key}')`)
      await page.goto(url)
      return page
    })
  })
}
