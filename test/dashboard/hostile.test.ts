/**
 * Records in which every text is an attack on the viewer: nothing runs, nothing is hidden, and nothing breaks the
 * layout.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { FakeWorld } from '../../src/testing/kits.js'
import { KEY } from '../diagnostics/subject.js'
import { connection, createWorld, message, node } from '../diagnostics/world.js'
import { inChromium } from './chromium.js'
import { startViewed, startViewedOnce, type ViewedHost } from './host.js'

/** Fields whose words, instants and forms the contract fixes: an answer with others is never sent. */
const FIXED =
  /_at$|^(at|minute|client_type|status|ownership|type|state|mode|kind|event|reason|last_outcome|counts_source|counting_since|close_reason|direction)$/

type Taint = (text: string) => string

const MARKUP: Taint = (text) => `${text}<img src=x onerror="alert(1)"><b>bold<script>alert(2)'&quot;`
const SCHEME: Taint = (text) => `javascript:alert(1);${text}`
const LONG: Taint = (text) => text + 'W'.repeat(256 - text.length)
const UNSEEN: Taint = (text) => `\u202e${text}\u2066\u200b\u0007\u2028gpj`

/** `value` with every text in it tainted, and every name of what a client may name itself. */
function tainted(value: unknown, taint: Taint, name = ''): unknown {
  if (typeof value === 'string') return FIXED.test(name) ? value : taint(value)
  if (Array.isArray(value)) return value.map((part) => tainted(part, taint, name))
  if (value === null || typeof value !== 'object') return value
  const isOwn = /^(metadata|payload|parameters_schema)$/.test(name)
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [isOwn ? taint(key) : key, tainted(part, taint, isOwn ? '' : key)]),
  )
}

/** What is beyond all measure where only the size of a whole answer bounds it. */
const deep = (levels: number): unknown => (levels === 0 ? '<b>bold</b>' : { [`level ${levels}`]: [deep(levels - 1)] })
const LARGE = {
  text: 'x'.repeat(10_000),
  words: 'a word '.repeat(1_000),
  deep: deep(40) as string,
  ['__proto__']: { a: '<b>bold</b>' },
}

/** The world with every text tainted in each way, one after the other, and some that is large. */
function hostileWorld(): FakeWorld {
  const worlds = [MARKUP, SCHEME, LONG, UNSEEN].map((taint) => tainted(createWorld(), taint) as Required<FakeWorld>)
  const all = <Name extends keyof FakeWorld>(name: Name) => worlds.flatMap((world) => world[name] as never)
  const [first] = worlds as [Required<FakeWorld>]
  return {
    connections: [
      ...all('connections'),
      connection({ connection_id: 'large', metadata: LARGE, ended_reason: 'constructor' }),
    ],
    actions: all('actions'),
    connectionEvents: all('connectionEvents'),
    connectionChurn: createWorld().connectionChurn,
    contexts: all('contexts'),
    browserWindows: all('browserWindows'),
    calls: all('calls'),
    callSummary: createWorld().callSummary,
    instances: all('instances'),
    messages: [
      ...all('messages'),
      message({ stream: MARKUP('users/alice/log'), sequence: 7, payload: LARGE as never }),
    ],
    streams: all('streams'),
    deduplicator: first.deduplicator,
    delivery: {
      summary: createWorld().delivery.summary ?? {},
      nodes: [
        ...worlds.flatMap(({ delivery }) => delivery.nodes ?? []),
        node({ metadata: { text: 'x'.repeat(4_000) } }),
      ],
      tenants: worlds.flatMap(({ delivery }) => delivery.tenants ?? []),
      statuses: worlds.flatMap(({ delivery }) => delivery.statuses ?? []),
    },
    sites: all('sites'),
    sessions: all('sessions'),
    subscriptions: all('subscriptions'),
  }
}

const at = encodeURIComponent
const query = (fields: Record<string, string>) => new URLSearchParams(fields)

const LISTS = ['/', '/findings', '/users', '/connections', '/contexts', '/browser-windows', '/actions']
  .concat(['/delivery/commands', '/delivery/nodes', '/delivery/tenants', '/rpc/pending', '/sites', '/sessions'])
  .concat(['/subscriptions', '/history/streams', '/sources'])

/** The pages of single records whose ids are tainted so. */
const recordsOf = (taint: Taint) => {
  const [user_id, client_id] = [taint('alice'), taint('desk')]
  return [
    `/users/${at(user_id)}/summary`,
    `/connections/${at(taint('conn-1'))}`,
    `/contexts/${at(taint('ctx-4'))}`,
    `/browser-windows/${at(taint('win-1'))}`,
    `/workers/tasks/${at(taint('task-1'))}?${query({ user_id })}`,
    `/delivery/status?${query({ user_id, client_id, command_id: taint('cmd-1') })}`,
    `/rpc/pending/${at(taint('call-1'))}`,
    `/rpc/instances/${at(taint('inst-1'))}?${query({ user_id, client_id })}`,
    `/sites/${at(taint('notes-1'))}`,
    `/sessions/${at(taint('session-1'))}`,
    `/history/messages?${query({ stream: taint('users/alice/log') })}`,
  ]
}

/** What of `main` no record may bring about, at the width that the window has. */
const HARM = `(() => {
  const main = document.querySelector('main')
  const found = (selector) => [...main.querySelectorAll(selector)].map((element) => element.outerHTML.slice(0, 200))
  return {
    injected: found('img, script, iframe, object, embed, style, link, form:not(.add)'),
    bold: [...main.querySelectorAll('b')].map((b) => b.textContent).filter((text) => /^bold/.test(text)),
    links: [...main.querySelectorAll('a')].map((a) => a.getAttribute('href')).filter((href) => !/^(#\\/|docs\\/(findings|problems)#\\w+$)/.test(href)),
    // The window cannot be scrolled aside: what is wide scrolls in a place of its own.
    wide: document.documentElement.scrollWidth > innerWidth ? document.documentElement.scrollWidth : null,
    unseen: /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\u2028\\u0007]/.test(main.textContent + document.title),
    classes: found('[class*="function"], [class*="native"]'),
  }
})()`

const NONE: Record<string, unknown> = { injected: [], bold: [], links: [], wide: null, unseen: false, classes: [] }

inChromium('hostile records in the viewer', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    host = await startViewed(hostileWorld())
  })
  afterAll(() => host.close())

  /** Opens each address at both widths; what any of them does that none may do, by address. */
  async function harmOf(page: Page, addresses: readonly string[]): Promise<Record<string, unknown>> {
    const harm: Record<string, unknown> = {}
    for (const address of addresses) {
      await page.goto(`${host.page}#${address}`)
      await page.locator('main .state').first().waitFor()
      await expect.poll(() => page.locator('main .state', { hasText: 'loading' }).count()).toBe(0)
      const problems = await page.locator('main .trouble').allTextContents()
      if (problems.length > 0) harm[address] = problems
      for (const width of [1240, 360]) {
        await page.setViewportSize({ width, height: 800 })
        const found = Object.entries(await page.evaluate<typeof NONE>(HARM)).filter(
          ([, what]) => String(what || '') !== '',
        )
        if (found.length > 0) harm[`${address} at ${width}`] = Object.fromEntries(found)
      }
    }
    return harm
  }

  it('are sent, so that something is held here', async () => {
    for (const path of LISTS.slice(1)) {
      const page = await host.ask<{ items: unknown[]; omitted?: number }>(path)
      expect([path, page.omitted ?? 0]).toEqual([path, 0])
    }
  })

  it('run nothing, inject nothing and push nothing apart in lists, where what cannot be seen is a mark', async () => {
    const page = await open(host.page, { key: KEY })
    expect(await harmOf(page, LISTS)).toEqual({})
    await page.goto(`${host.page}#/connections`)
    const mark = page.locator('main .unseen', { hasText: 'U+202E' }).first()
    await mark.waitFor()
    await page.getByText('<b>bold').first().waitFor()
  })

  it.each([
    ['markup', MARKUP],
    ['a scheme', SCHEME],
    ['256 bytes without a space', LONG],
  ])('do nothing on the pages of records whose ids are %s', async (_, taint) => {
    const page = await open(host.page, { key: KEY })
    expect(await harmOf(page, recordsOf(taint))).toEqual({})
  })

  it('keep an emoji of several whole, and give an id of spaces something to click', async () => {
    const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'
    const connections = [
      connection({ connection_id: 'odd-1', client_id: family, metadata: { note: `a\tb ${family}` } }),
      connection({ connection_id: 'odd-2', client_id: '   ' }),
      connection({ connection_id: 'odd-3', client_id: `a\u200db ${'x'.repeat(40)}` }),
    ]
    const own = await startViewedOnce({ ...createWorld(), connections })
    const page = await open(`${own.page}#/connections`, { key: KEY, refusals: true })
    const client = (id: string) => page.locator(`tbody a.who[title="${id}"] .dim`)
    await expect.poll(async () => (await client('odd-1').innerText()).trim()).toBe(`/ ${family}`)
    await expect.poll(async () => (await client('odd-2').innerText()).trim()).toBe('/ 3 × U+0020')
    // A mark is whole or not there: it is not cut in the middle.
    const mark = client('odd-3').locator('.unseen', { hasText: 'U+200D' })
    expect(await mark.evaluate((element) => getComputedStyle(element).display)).toBe('inline-block')
    await page.goto(`${own.page}#/connections/odd-1`)
    await page.locator('main .fields').getByText('U+0009').waitFor()
  })

  it('do nothing where one of them is large and deep', async () => {
    const page = await open(host.page, { key: KEY })
    expect(await harmOf(page, ['/connections/large'])).toEqual({})
    await page.getByText('level 40').first().waitFor()
  })

  it('stay text in the address, which an attacker may have written', async () => {
    const page = await open(host.page, { key: KEY, refusals: true })
    for (const address of [
      '/<img src=x onerror=alert(1)>',
      '/connections/%E2%80%AE%00',
      '/users/%E0%A4%A/summary',
      '/x?a=<b>',
    ]) {
      await page.goto(`${host.page}#${address}`)
      await page.locator('main .trouble').or(page.getByText('No page shows this')).first().waitFor()
      expect(await page.evaluate(HARM)).toEqual(NONE)
    }
  })
})
