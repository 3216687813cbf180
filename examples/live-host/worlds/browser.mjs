/** A Playwright farm: one browser with a browser context for each user, pages with tasks, and one that crashes. */
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { followBrowser } from 'relayscope/playwright'
import { every } from './every.mjs'

const FOUND = ['chromium', 'chromium-browser', 'google-chrome', 'chromium-headless-shell']
const USERS = ['ada', 'grace']
const PAGES = 3

export async function open({ signal }) {
  const executablePath = process.env.CHROMIUM ?? FOUND.map((name) => `/usr/bin/${name}`).find(existsSync)
  if (!executablePath) throw new Error('No Chromium found. Name one: CHROMIUM=/path/to/chromium')
  const facilities = createMemoryFacilities()
  const { contexts, browserWindows } = facilities
  const browser = await chromium.launch({
    executablePath,
    chromiumSandbox: process.getuid?.() !== 0,
    // This process ends it.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  })
  const users = new Map()
  const tasks = new Map()
  const follower = followBrowser(browser, {
    contexts,
    browserWindows,
    identify: (context, page) => ({
      user_id: users.get(context) ?? 'ada',
      client_id: 'crawler',
      ownership: 'worker',
      ...(page && { task_id: tasks.get(page) ?? null }),
      ...(!page && { capacity: PAGES }),
    }),
  })
  const pages = []
  for (const user of USERS) {
    const context = await browser.newContext()
    users.set(context, user)
    await follower.identifyAgain(context)
    for (let i = 0; i < PAGES; i++) {
      const page = await context.newPage()
      page.on('crash', () => {})
      pages.push(page)
    }
  }
  /** Gives a page its next task, or none. */
  async function turn(page, task) {
    if (task) tasks.set(page, task)
    else tasks.delete(page)
    await follower.identifyAgain(page)
  }
  for (const [i, page] of pages.entries()) if (i % PAGES > 0) await turn(page, `crawl-${i}`)
  let next = pages.length
  every(3_000, signal, () => turn(pages[next % 2 === 0 ? 1 : 2], `crawl-${next++}`))
  await pages
    .at(-1)
    .goto('chrome://crash')
    .catch(() => {})
  return {
    about: 'a browser with two users and six pages, one of which has crashed',
    composition: memoryComposition({ contexts, browserWindows }),
    async close() {
      await follower.close()
      await browser.close()
      await facilities.close()
    },
  }
}
