/** The dashboard before axe: every page of it at three sizes, in light and in dark. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults, RunOptions } from 'axe-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { createWorld } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, type ViewedHost } from './host.js'
import { triedWorld } from './tried.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const TRIED = '/delivery/status?user_id=alice&client_id=desk&command_id=cmd-tried'
const ADDRESSES = [
  '/findings',
  '/users',
  '/users/alice/summary',
  '/connections',
  '/connections/conn-1',
  '/contexts',
  '/contexts/ctx-4',
  '/workers/tasks/task-1?user_id=alice',
  '/browser-windows',
  '/browser-windows/win-1',
  '/actions',
  '/delivery/commands',
  '/delivery/status?user_id=alice&client_id=desk&command_id=cmd-1',
  TRIED,
  '/delivery/mailboxes',
  '/delivery/nodes',
  '/delivery/tenants',
  '/rpc/pending',
  '/rpc/pending/call-1',
  '/rpc/ended',
  '/rpc/instances/inst-1?user_id=alice&client_id=desk',
  '/sites',
  '/sites/notes-1',
  '/sessions',
  '/sessions/session-1',
  '/subscriptions',
  '/history/streams',
  '/history/messages?stream=users/alice/log',
  '/sources',
  '/none/such',
  '/connections/none',
  '/connections?status=none',
  '/',
]

const SIZES = {
  phone: { width: 390, height: 844 },
  tablet: { width: 820, height: 1180 },
  desktop: { width: 1280, height: 800 },
} as const
const LOOKS = (Object.keys(SIZES) as (keyof typeof SIZES)[]).flatMap((size) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ size, colorScheme })),
)
/** Some forty pages, on a machine that has much else to do. */
const LONG_MS = 400_000

/** With lost clients, attempts and reasons of the end, besides what each family has. */
function fullWorld() {
  const [world, tried] = [createWorld(), triedWorld()]
  const by_reason = { attempts_exhausted: 1, deadline_passed: 2, refused: 3 }
  const delivery = {
    ...world.delivery,
    statuses: [...(world.delivery.statuses ?? []), ...tried.delivery.statuses],
    summary: { ...world.delivery.summary, by_reason },
  }
  const clientEvents = tried.connections.map(({ connection_id, user_id, client_id, disconnected_at }) => ({
    ...{ connection_id, user_id, client_id, at: disconnected_at as string },
    ...{ event: 'disconnected' as const, reason: 'heartbeat_lost' },
  }))
  return { ...world, connections: [...(world.connections ?? []), ...tried.connections], clientEvents, delivery }
}

inChromium('the accessibility of the dashboard', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(fullWorld())
  })
  afterAll(() => host.close())

  it.each(LOOKS)('breaks no rule of axe on any page: $size, $colorScheme', { timeout: LONG_MS }, async (look) => {
    const { colorScheme } = look
    const options = {
      key: KEY,
      colorScheme,
      viewport: SIZES[look.size],
      reducedMotion: 'reduce',
      refusals: true,
    } as const
    const page = await open(`${host.page}#/none`, options)
    // Evaluated from outside of the page, so that its policy has no say.
    await page.evaluate(AXE)
    const broken: Record<string, string[]> = {}
    async function judge(name: string): Promise<void> {
      const { violations } = await page.evaluate<AxeResults, RunOptions>(
        (options) => (globalThis as unknown as { axe: typeof import('axe-core') }).axe.run(document, options),
        // What is dark differs in its colours alone.
        {
          resultTypes: ['violations'],
          ...(colorScheme === 'dark'
            ? { runOnly: ['color-contrast'] }
            : { rules: { 'target-size': { enabled: true }, 'label-content-name-mismatch': { enabled: true } } }),
        },
      )
      if (violations.length === 0) return
      broken[name] = violations.map(
        ({ id, help, nodes }) =>
          `${id}: ${help}: ${nodes
            .map(({ html }) => html.slice(0, 120))
            .slice(0, 3)
            .join(' ')}`,
      )
    }
    await page.getByText('No page shows this').waitFor()
    for (const address of ADDRESSES) {
      await page.goto(`${host.page}#${address}`)
      await page.locator('main .state, main .empty, main h1').first().waitFor()
      const unanswered = page.locator('main .state', { hasText: 'loading' })
      await expect.poll(async () => (await unanswered.count()) > (await page.locator('.trouble').count())).toBe(false)
      await judge(address)
    }
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await judge('the keys')
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 360, height: 700 })
    await judge('a narrow window')
    await page.context().setOffline(true)
    await page.locator('main.late .old').first().waitFor()
    await judge('what may have changed since')
    await page.getByRole('button', { name: 'pause' }).click()
    await page.locator('.top .paused').waitFor()
    await judge('paused')
    expect(broken).toEqual({})
  })

  it.each([
    'light',
    'dark',
  ] as const)('has no violations if the key is rejected or the router does not answer, in %s', async (colorScheme) => {
    const page = await open(host.page, { colorScheme, reducedMotion: 'reduce', refusals: true })
    await page.getByRole('heading', { name: 'A key is needed' }).waitFor()
    await page.evaluate(AXE)
    const judge = async () => {
      const { violations } = await page.evaluate<AxeResults>(() =>
        (globalThis as unknown as { axe: typeof import('axe-core') }).axe.run(),
      )
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    }
    await judge()
    host.break(() => new Response('', { status: 502 }))
    await page.getByLabel('Administrator').fill(KEY)
    await page.getByRole('button', { name: 'Open' }).click()
    await page.locator('main .trouble').first().waitFor()
    await judge()
    host.repair()
  })
})
