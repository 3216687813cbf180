/** Opens the live host's page in a real browser: its tab is a context, its window a browser window. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BrowserWindow, Context } from '../../src/internal/contract/index.js'
import { isChromiumMissing, launchChromium } from '../chromium.js'
import { end, type LiveHost, startLiveHost, until } from './live-host-process.js'

describe.skipIf(isChromiumMissing)('a browser tab on the live host’s page (needs chromium)', () => {
  let host: LiveHost
  let browser: Browser
  let page: Page
  const faults: string[] = []

  beforeAll(async () => {
    host = await startLiveHost()
    browser = await launchChromium()
    page = await browser.newPage()
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(host.url)
  })
  afterAll(async () => {
    await browser?.close()
    await end(host)
  })

  /** The tab's one context, once it is as `wanted`. */
  function contextOf(wanted: Partial<Context>): Promise<Context> {
    return until(`a context ${JSON.stringify(wanted)}`, async () => {
      const { body } = await host.ask('/contexts?user_id=visitor')
      const [context] = (body as { items: Context[] }).items
      return context && Object.entries(wanted).every(([name, value]) => context[name as keyof Context] === value)
        ? context
        : undefined
    })
  }

  it('is shown with its window, live', async () => {
    const { window_id, client_id } = await contextOf({ status: 'active', client_type: 'browser' })
    expect(await page.textContent('#state')).toBe(`connected as visitor/${client_id}`)
    const { body } = await host.ask(`/browser-windows/${window_id}`)
    expect(body as BrowserWindow).toMatchObject({ client_id, status: 'open', tab_count: 1, counts_source: 'contexts' })
  })

  it('turns idle when it is hidden', async () => {
    const hide = "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })"
    await page.evaluate(`${hide}; document.dispatchEvent(new Event('visibilitychange'))`)
    await contextOf({ status: 'idle' })
  })

  it('keeps its identity over a reload, with a new instance', async () => {
    const before = await contextOf({})
    await page.reload()
    const after = await until('a new instance', async () => {
      const context = await contextOf({ status: 'active' })
      return context.instance_id === before.instance_id ? undefined : context
    })
    expect(after.context_id).toBe(before.context_id)
  })

  it('is closed when the page goes', async () => {
    await page.goto('about:blank')
    await contextOf({ status: 'closed' })
    expect(faults).toEqual([])
  })
})
