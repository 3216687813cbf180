/** Pictures of the ten main views by their structure and key numbers: what a reader sees first, without a pixel. */
import type { Page } from 'playwright-core'
import type { FakeWorld } from '../../src/testing/kits.js'
import { connection, createWorld } from '../diagnostics/world.js'

/** A world in which no source contradicts another one. */
export function healthyWorld(): FakeWorld {
  const world = createWorld()
  return {
    ...world,
    connections: [
      ...world.connections,
      connection({ connection_id: 'conn-7', client_id: 'desk' }),
      connection({ connection_id: 'conn-8', user_id: 'dave' }),
      connection({ connection_id: 'conn-9', user_id: 'carol' }),
    ],
    delivery: {
      ...world.delivery,
      summary: { ...world.delivery.summary, mode: 'direct', tracked_commands: 1, due_commands: 0, sample_size: 1 },
      tenants: [],
    },
  }
}

/** The ten main views, by address. */
export const VIEWS = {
  overview: '/',
  findings: '/findings',
  users: '/users',
  user: '/users/alice/summary',
  connections: '/connections',
  connection: '/connections/conn-1',
  commands: '/delivery/commands',
  command: '/delivery/status?user_id=alice&client_id=desk&command_id=cmd-1',
  nodes: '/delivery/nodes',
  sources: '/sources',
} as const
export type ViewName = keyof typeof VIEWS

export interface Picture {
  /** Of the tab, without the deployment. */
  title: string
  /** What the navigation marks. */
  current: string
  /** The state of the page in its header. */
  tone: string
  icon: string
  headings: string[]
  /** Heads of the first table. */
  heads: string[]
  rows: number
  /** The large numbers of the overview, and how much each list says that it shows. */
  numbers: string[]
  /** Failures shown instead of data. */
  troubles: number
  /** Words that say that all is well. */
  calm: string[]
}

const LOOK = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)]
  const texts = (selector) => all(selector).map((element) => element.innerText.replace(/\\s+/g, ' ').trim())
  const icons = document.documentElement.dataset.icons.split(' ')
  const main = document.querySelector('main').innerText
  return {
    title: document.title.split(' · ')[0],
    current: texts('nav.views [aria-current=page]').join(),
    tone: document.querySelector('.fresh').className.replace('fresh ', ''),
    icon: ['unknown', 'ok', 'bad'][icons.indexOf(document.querySelector('link[rel=icon]').getAttribute('href'))],
    headings: texts('main h1, main h2').filter((text) => text !== ''),
    heads: texts('main table:not(.hidden *) thead').slice(0, 1).flatMap(() =>
      [...document.querySelector('main table:not(.hidden *) thead').querySelectorAll('th')].map((th) => th.firstChild?.firstChild?.textContent ?? th.textContent)),
    rows: document.querySelector('main table:not(.hidden *) tbody')?.rows.length ?? 0,
    numbers: [...texts('main .numbers li'), ...texts('main .state').map((text) => text.split(' · ')[0]).filter((text) => /\\d/.test(text) && !/as of/.test(text))],
    troubles: all('main .trouble').length,
    calm: main.match(/no findings(?! in)|No problems found|all sources answer/g) ?? [],
  }
})()`

/** What the page shows now. */
const pictureOf = (page: Page): Promise<Picture> => page.evaluate<Picture>(LOOK)

/** Readings in a row that must be the same. */
const STILL = 4

/** The first picture that is ready and no longer changes; the last one where that never comes. */
export async function stillPictureOf(page: Page, isReady: (picture: Picture) => boolean): Promise<Picture> {
  let picture = await pictureOf(page)
  for (let tries = 0, same = 1; tries < 300 && (same < STILL || !isReady(picture)); tries++) {
    await page.waitForTimeout(200)
    const next = await pictureOf(page)
    same = JSON.stringify(next) === JSON.stringify(picture) ? same + 1 : 1
    picture = next
  }
  return picture
}

/** Waits until nothing on the page is loading. */
export async function settle(page: Page): Promise<void> {
  await page.locator('main h1').waitFor({ state: 'attached' })
  await page.locator('main .state, main .absent, main .trouble').first().waitFor({ state: 'attached' })
  await page.locator('main .loading').first().waitFor({ state: 'detached' })
  await page.locator('.fresh.asking').waitFor({ state: 'detached' })
}

/** Adds up how much what is drawn moves by itself. */
export const WATCH_SHIFTS = `
  globalThis.shifts = 0
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.shifts += value
  }).observe({ type: 'layout-shift', buffered: true })
`
