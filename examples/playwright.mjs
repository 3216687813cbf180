/** A browser that you drive, with the Playwright integration. `CHROMIUM=/usr/bin/chromium node examples/playwright.mjs` */
import { chromium } from 'playwright-core'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { startNodeServer } from 'relayscope/node'

const { contexts, browserWindows } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ contexts, browserWindows }), // only what the integration feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  // Chromium has no sandbox for root.
  chromiumSandbox: process.getuid?.() !== 0,
})

const crawler = { user_id: 'ada', client_id: 'crawler', ownership: 'worker' }
/** The task of each page. */
const tasks = new Map()

// #region plug
import { followBrowser } from 'relayscope/playwright'

const follower = followBrowser(browser, {
  contexts,
  browserWindows,
  identify: (_context, page) => ({ ...crawler, task_id: tasks.get(page) ?? null }),
})
// #endregion

const context = await browser.newContext()
const page = await context.newPage()
tasks.set(page, 'crawl-1')
await follower.identifyAgain(page)
const { url } = await startNodeServer(diagnostics, { host: '127.0.0.1', port: Number(process.env.PORT ?? 8080) })
console.log(`${url}${diagnostics.prefix}/contexts`)
