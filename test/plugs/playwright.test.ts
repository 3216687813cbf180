/** `followBrowser` against a real Chromium: what is shown is what the browser says of its contexts and pages. */
import { EventEmitter } from 'node:events'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import type { BrowserWindow, Context, Finding } from '../../src/index.js'
import { type FollowBrowserOptions, followBrowser } from '../../src/plugs/playwright/index.js'
import { isChromiumMissing, launchChromium } from '../chromium.js'
import { soon } from '../redis/wait-for.js'
import { failing, type Outage } from './failing.js'
import { createMemoryWorld, describeWorlds, keepContract, type World } from './world.js'

type Options = Partial<FollowBrowserOptions<BrowserContext, Page>>

const follow = (browser: Browser, { facilities }: World, options: Options = {}) =>
  followBrowser(browser, {
    contexts: facilities.contexts,
    browserWindows: facilities.browserWindows,
    identify(context, page) {
      expectTypeOf(context).toExtend<BrowserContext>()
      expectTypeOf(page).toEqualTypeOf<Page | null>()
      return { user_id: 'ada', client_id: 'crawler' }
    },
    onError: null,
    ...options,
  })

/** The tabs of each open window, and the open contexts in it, most first. */
async function shown(world: World): Promise<[tabs: number, contexts: number][]> {
  const windows = await world.list<BrowserWindow>('/browser-windows?status=open')
  const contexts = await world.list<Context>('/contexts')
  const open = contexts.filter(({ status }) => status === 'active' || status === 'idle')
  return windows
    .map(({ window_id, tab_count }): [number, number] => [
      tab_count ?? -1,
      open.filter((context) => context.window_id === window_id).length,
    ])
    .sort(([a], [b]) => b - a)
}

/** Waits until the router shows what the browser says. */
const agree = (browser: Browser, world: World) =>
  soon(async () => {
    const said = browser.contexts().map((context) => [context.pages().length, context.pages().length])
    expect(await shown(world)).toEqual(said.sort(([a = 0], [b = 0]) => b - a))
  })

describe.skipIf(isChromiumMissing)('Playwright (needs chromium)', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
  })

  describeWorlds('a browser', (open) => {
    let world: World
    beforeEach(async () => {
      world = await open()
    })
    afterEach(() => world.close())

    it('is shown with its contexts and pages as they come and go', async () => {
      const early = await browser.newContext()
      await early.newPage()
      const follower = follow(browser, world)
      await agree(browser, world)
      const contexts = await Promise.all(Array.from({ length: 4 }, () => browser.newContext()))
      await Promise.all(contexts.flatMap((context, i) => Array.from({ length: i % 3 }, () => context.newPage())))
      await agree(browser, world)
      const [, , two] = contexts as [BrowserContext, BrowserContext, BrowserContext]
      await two.pages()[0]?.close()
      await contexts[1]?.close()
      await early.close()
      await agree(browser, world)
      expect((await world.list<BrowserWindow>('/browser-windows?status=closed')).length).toBe(2)
      expect(await follower.close()).toEqual({ aborted: 0 })
      await keepContract(world)
    })

    it('is shown without unreported attributes', async () => {
      const follower = follow(browser, world)
      await (await browser.newContext()).newPage()
      await agree(browser, world)
      const unreported = { focused: null, type: null, state: null, incognito: null, capacity: null, draining: null }
      expect(await world.list('/browser-windows')).toMatchObject([{ ...unreported, tab_count: 1 }])
      await follower.close()
    })

    it('has its workers with the task that they were given, and another one when the host says so', async () => {
      let task: string | null = 'crawl-7'
      const follower = follow(browser, world, {
        identify: (_context, page) => ({
          user_id: 'ada',
          client_id: 'crawler',
          instance_id: 'run-1',
          ownership: 'worker',
          window_id: 'window-1',
          ...(page && { context_id: 'page-1', task_id: task }),
        }),
      })
      const page = await (await browser.newContext()).newPage()
      const now = () => world.ask<Context>('/contexts/page-1')
      await soon(async () => expect(await now()).toMatchObject({ task_id: 'crawl-7', status: 'active' }))
      expect(await now()).toMatchObject({ window_id: 'window-1', instance_id: 'run-1', ownership: 'worker' })
      expect(await world.ask('/browser-windows/window-1')).toMatchObject({ worker_count: 1, busy_count: 1 })
      for (const next of ['crawl-8', null]) {
        task = next
        await follower.identifyAgain(page)
        await soon(async () => expect((await now()).task_id).toBe(next))
      }
      expect(await now()).toMatchObject({ status: 'idle' })
      await follower.close()
    })
  })

  describe('a follower', () => {
    let world: World
    beforeEach(() => {
      world = createMemoryWorld()
    })
    afterEach(() => world.close())

    it('closes a page that has crashed, though its tab is still there', async () => {
      const follower = follow(browser, world)
      const page = await (await browser.newContext()).newPage()
      await agree(browser, world)
      const crashed = new Promise((resolve) => page.once('crash', resolve))
      page.goto('chrome://crash').catch(() => {})
      await crashed
      await soon(async () => expect(await shown(world)).toEqual([[1, 0]]))
      await follower.close()
    })

    it('tells a page that crashed from one that was closed, with the task that it had', async () => {
      const follower = follow(browser, world, {
        identify: (_context, page) => ({ user_id: 'ada', client_id: 'crawler', ...(page && { task_id: 'job' }) }),
      })
      const context = await browser.newContext()
      const [crashing, closing] = [await context.newPage(), await context.newPage()]
      const ofTask = () => world.list<Context>('/workers/tasks/job?user_id=ada')
      await soon(async () => expect(await ofTask()).toHaveLength(2))
      crashing.goto('chrome://crash').catch(() => {})
      await soon(async () => expect(await world.list('/contexts?status_reason=crashed')).toHaveLength(1))
      // It stays a crash when what is left of it is closed.
      await crashing.close()
      await closing.close()
      await soon(async () =>
        expect(await world.list('/contexts?status_reason=closed')).toMatchObject([{ task_id: null }]),
      )
      expect(await ofTask()).toMatchObject([{ status: 'closed', status_reason: 'crashed', task_id: 'job' }])
      const [found, ...others] = await world.list<Finding>('/findings?kind=worker_lost_with_task')
      expect([found?.evidence[0]?.fields.task_id, others]).toEqual(['job', []])
      await follower.close()
    })

    it('ends all that it had when the browser goes without a word', async () => {
      const other = await launchChromium()
      const follower = follow(other, world)
      for (let i = 0; i < 3; i++) await (await other.newContext()).newPage()
      await agree(other, world)
      const session = await other.newBrowserCDPSession()
      session.send('Browser.crash').catch(() => {})
      await soon(async () => expect(await shown(world)).toEqual([]))
      // A page waits for word that its browser has ended.
      await soon(async () => expect(await world.list('/contexts?status_reason=browser_disconnected')).toHaveLength(3))
      await follower.close()
    })

    it('reports present and lost pages again when the store is back', async () => {
      const outage: Outage = { isDown: true, refused: 0 }
      const errors: unknown[] = []
      const follower = follow(browser, world, {
        contexts: failing(world.facilities.contexts, outage),
        browserWindows: failing(world.facilities.browserWindows, outage),
        onError: (error) => void errors.push(error),
      })
      for (let i = 0; i < 3; i++) await (await browser.newContext()).newPage()
      await soon(() => expect(errors).not.toEqual([]))
      await browser.contexts()[0]?.close()
      outage.isDown = false
      await agree(browser, world)
      await follower.close()
    })

    it('reports again before a record expires, and finds contexts without an event', async () => {
      const { on, off } = { on: browser.on.bind(browser), off: browser.off.bind(browser) }
      // A version without the event.
      const older = {
        contexts: () => browser.contexts(),
        on: (event: string, listener: () => void) => event !== 'context' && on(event as 'disconnected', listener),
        off: (event: string, listener: () => void) => event !== 'context' && off(event as 'disconnected', listener),
      }
      const follower = follow(older as Browser, world, { heartbeatMs: 20 })
      await (await browser.newContext()).newPage()
      await agree(browser, world)
      const [before] = await world.list<Context>('/contexts')
      await soon(async () => {
        const [after] = await world.list<Context>('/contexts')
        expect((after?.updated_at ?? '') > (before?.updated_at ?? '')).toBe(true)
      })
      await follower.close()
    })

    it('ignores pages without an identity, and reports an identify() that fails', async () => {
      const errors: [string, string][] = []
      const follower = follow(browser, world, {
        identify: (_context, page) => {
          if (page === null) return null
          throw new Error('no such page')
        },
        onError: (error, { step }) => void errors.push([step, (error as Error).message]),
      })
      const page = await (await browser.newContext()).newPage()
      await soon(() => expect(errors).toEqual([['identify', 'no such page']]))
      expect(await world.list('/contexts')).toEqual([])
      expect(await world.list('/browser-windows')).toEqual([])
      expect(page.isClosed()).toBe(false)
      await follower.close()
    })

    it('leaves an id of another client to its owner, and reports it once', async () => {
      const errors: unknown[] = []
      let users = 0
      const follower = follow(browser, world, {
        identify: (_context, page) =>
          page && { user_id: `user-${++users}`, client_id: 'crawler', context_id: 'page-1', window_id: 'window-1' },
        onError: (error) => void errors.push(error),
        heartbeatMs: 20,
      })
      const context = await browser.newContext()
      await context.newPage()
      await soon(async () => expect((await world.ask<Context>('/contexts/page-1')).user_id).toBe('user-1'))
      const second = await context.newPage()
      await soon(() => expect(errors).toMatchObject([{ code: 'identity_conflict' }]))
      await second.close()
      const { updated_at } = await world.ask<Context>('/contexts/page-1')
      await soon(async () => {
        const now = await world.ask<Context>('/contexts/page-1')
        expect(now.status === 'active' && now.updated_at > updated_at).toBe(true)
      })
      expect(errors).toHaveLength(1)
      await follower.close()
    })

    it('reports a browser that cannot be read, and continues', async () => {
      const errors: [string, unknown][] = []
      let looks = 0
      const broken = {
        contexts: () => {
          if (looks++ > 0) throw new Error('no such browser')
          return []
        },
        on: () => {},
        off: () => {},
      }
      const { contexts, browserWindows } = world.facilities
      const follower = followBrowser(broken, {
        contexts,
        browserWindows,
        identify: () => null,
        heartbeatMs: 10,
        onError: (error, { step }) => void errors.push([step, error]),
      })
      await soon(() => expect(errors.length).toBeGreaterThan(1))
      expect(errors[0]).toEqual(['write', new Error('no such browser')])
      await follower.close()
    })

    it('ends what a browser had that goes without closing it', async () => {
      const page = Object.assign(new EventEmitter(), { isClosed: () => false })
      const context = Object.assign(new EventEmitter(), { pages: () => [page] })
      const other = Object.assign(new EventEmitter(), { contexts: () => [context] })
      const { contexts, browserWindows } = world.facilities
      const identify = () => ({ user_id: 'ada', client_id: 'crawler' })
      const follower = followBrowser(other, { contexts, browserWindows, identify, onError: null })
      await soon(async () => expect(await shown(world)).toEqual([[1, 1]]))
      other.emit('disconnected')
      await soon(async () => expect(await shown(world)).toEqual([]))
      await follower.close()
    })

    it('says that a page which was no worker cannot have a task', async () => {
      const errors: unknown[] = []
      let task: string | undefined
      const follower = follow(browser, world, {
        identify: (_context, page) => ({ user_id: 'ada', client_id: 'crawler', task_id: page ? task : undefined }),
        onError: (error) => void errors.push(error),
      })
      const page = await (await browser.newContext()).newPage()
      await agree(browser, world)
      task = 'crawl-7'
      await follower.identifyAgain(page)
      await soon(() => expect(errors).toMatchObject([{ code: 'invalid_input' }]))
      await agree(browser, world)
      await follower.close()
    })

    it('takes every listener away when it is closed', async () => {
      const context = await browser.newContext()
      const page = await context.newPage()
      // Emitters of Node's kind underneath, though their types do not say so.
      const emitters = [browser, context, page] as object[] as { listenerCount(name: string): number }[]
      const counts = () =>
        emitters.map((each) =>
          ['context', 'disconnected', 'page', 'close', 'crash'].map((name) => each.listenerCount(name)),
        )
      const before = counts()
      const follower = follow(browser, world)
      await agree(browser, world)
      expect(counts()).not.toEqual(before)
      await follower.close()
      expect(counts()).toEqual(before)
    })
  })
})
