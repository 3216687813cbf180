/** The ten main views in three states: their first screen, compared with the stored pictures. */
import { expect, it } from 'vitest'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { KEY } from '../diagnostics/subject.js'
import { connection } from '../diagnostics/world.js'
import { inChromium, type Open } from './chromium.js'
import { losable, startViewedOnce, type ViewedHost } from './host.js'
import { healthyWorld, type Picture, settle, stillPictureOf, VIEWS, type ViewName } from './pictures.js'

/** Ten views, on a machine that has much else to do. */
const LONG_MS = 300_000

/** More than any list shows on one page. */
const MANY = 5_000
const TYPES = ['browser', 'console', 'mobile', 'web'] as const

function largeWorld(): FakeWorld {
  const world = healthyWorld()
  const more = Array.from({ length: MANY }, (_, i) =>
    connection({
      connection_id: `many-${i}`,
      user_id: i < 50 ? 'alice' : `user-${i}`,
      client_id: `many-${i}`,
      client_type: TYPES[i % TYPES.length] as (typeof TYPES)[number],
    }),
  )
  return { ...world, connections: [...(world.connections ?? []), ...more] }
}

/** Every inspector of `world` throws, as those of a store that is gone. */
function deadInspectors(world: FakeWorld) {
  const fakes = createFakeInspectors(world)
  return Object.fromEntries(
    Object.entries(fakes).map(([name, inspector]) => [name, losable(inspector as object, () => true)]),
  ) as typeof fakes
}

/** Whether every answer has come, and was read to its end: a busy machine may cut the first ones short. */
const isWhole = (name: ViewName, { title, troubles, numbers, calm }: Picture) =>
  troubles === 0 &&
  // The title says how a record stands.
  !/^(command|connection) \S+$/.test(title) &&
  (name !== 'overview' || calm.includes('No problems found')) &&
  (name !== 'findings' || numbers.includes('0 in all'))

/** Pictures of all views, each once it has the tone that it is expected to have. */
async function picturesOf(open: Open, host: ViewedHost, tone: 'live' | 'late'): Promise<Record<ViewName, Picture>> {
  const page = await open(host.page, { key: KEY, viewport: { width: 1280, height: 800 }, refusals: true })
  const pictures: Partial<Record<ViewName, Picture>> = {}
  for (const [name, address] of Object.entries(VIEWS) as [ViewName, string][]) {
    await page.goto(`${host.page}#${address}`)
    await page.reload()
    await settle(page)
    pictures[name] = await stillPictureOf(
      page,
      (picture) => picture.tone === tone && (tone === 'late' || isWhole(name, picture)),
    )
  }
  return pictures as Record<ViewName, Picture>
}

/** Compares with the file of that name; `vitest -u` updates it. */
function isKept(name: string, pictures: Record<string, Picture>) {
  const lines = Object.entries(pictures).flatMap(([view, picture]) => [
    view,
    ...Object.entries(picture).map(([part, seen]) => `  ${part}: ${Array.isArray(seen) ? seen.join(' | ') : seen}`),
  ])
  return expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`pictures/${name}.txt`)
}

inChromium('the pictures of the dashboard', (open) => {
  it(
    'show the ten main views of a healthy relay',
    async () => {
      const pictures = await picturesOf(open, await startViewedOnce(healthyWorld()), 'live')
      expect(pictures.overview.calm.length).toBeGreaterThan(0)
      expect(Object.values(pictures).map(({ icon }) => icon)).toEqual(Object.keys(VIEWS).map(() => 'ok'))
      await isKept('healthy', pictures)
    },
    LONG_MS,
  )

  it('show nothing calm on any view while the store is dead', async () => {
    const world = healthyWorld()
    const pictures = await picturesOf(open, await startViewedOnce(world, { inspectors: deadInspectors(world) }), 'late')
    for (const [name, { calm, icon, title }] of Object.entries(pictures))
      expect([name, calm, icon, title.startsWith('▲')]).toEqual([name, [], 'bad', true])
    await isKept('store-dead', pictures)
  })

  it(
    'show the same views of 5,000 connections, with their numbers',
    async () => {
      const pictures = await picturesOf(open, await startViewedOnce(largeWorld()), 'live')
      expect(pictures.overview.numbers.join(' ')).toContain('5,0')
      await isKept('large', pictures)
    },
    LONG_MS,
  )
})
