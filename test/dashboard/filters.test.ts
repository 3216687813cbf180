/** The filters of the viewer's lists: those that the API has, each in the address, in the rows, and in a link that is opened. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/index.js'
import { traceFields } from '../../src/internal/contract/ids.js'
import type { FakeWorld } from '../../src/testing/kits.js'
import { KEY } from '../diagnostics/subject.js'
import {
  browserWindow,
  call,
  connection,
  context,
  createWorld,
  mailbox,
  NOW,
  subscription,
} from '../diagnostics/world.js'
import { inChromium, type Open } from './chromium.js'
import { startViewed, type ViewedHost } from './host.js'

/** Every list with filters: what it cannot be asked without, and the field that the first cell of a row shows. */
const LISTS: Record<string, { needs?: Record<string, string>; id: string }> = {
  '/findings': { id: 'kind' },
  '/users': { id: 'user_id' },
  '/connections': { id: 'connection_id' },
  '/contexts': { id: 'context_id' },
  '/workers/tasks/task-1': { id: 'context_id', needs: { user_id: 'alice' } },
  '/browser-windows': { id: 'window_id' },
  '/actions': { id: 'name' },
  '/delivery/commands': { id: 'command_id' },
  '/delivery/mailboxes': { id: 'client_id' },
  '/delivery/tenants': { id: 'scope_id' },
  '/rpc/pending': { id: 'correlation_id' },
  '/rpc/ended': { id: 'correlation_id' },
  '/sites': { id: 'site_id' },
  '/sessions': { id: 'session_id' },
  '/subscriptions': { id: 'subscription_id' },
  '/history/streams': { id: 'stream' },
  '/history/messages': { id: 'sequence', needs: { stream: 'users/alice/log' } },
}

const OBSERVED = { direction: 'to_server', observed: true } as const
const TRACED = traceFields(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)

const LONG_AGO = { at: '2025-12-30T00:00:00.000Z', deadline_at: '2025-12-31T00:00:00.000Z' }

/** The world of the router, with something apart in every field by which a list can be narrowed. */
function variedWorld(): FakeWorld {
  const world = createWorld()
  const ended = { status: 'disconnected', connected_at: LONG_AGO.at, disconnected_at: LONG_AGO.deadline_at } as const
  return {
    ...world,
    connections: [
      ...(world.connections ?? []),
      connection({
        connection_id: 'conn-7',
        node_id: 'node-1',
        client_type: 'web',
        connected_at: new Date(NOW).toISOString(),
      }),
      connection({ ...ended, connection_id: 'conn-8', ended_reason: 'superseded', last_seen_at: LONG_AGO.at }),
    ],
    contexts: [
      ...world.contexts,
      context({ context_id: 'ctx-9', client_id: 'phone', client_type: 'mobile', updated_at: LONG_AGO.at }),
      context({ context_id: 'ctx-10', status: 'closed', status_reason: 'crashed' }),
    ],
    browserWindows: [
      ...world.browserWindows,
      browserWindow({ window_id: 'win-4', client_id: 'phone', ownership: 'user-owned' }),
    ],
    calls: [
      ...world.calls,
      call({ correlation_id: 'call-5', client_id: 'phone', ...TRACED }),
      // Shown where it is asked for, and nowhere else.
      call({ correlation_id: 'call-6', overdue: true }),
      call({ correlation_id: 'call-7', ...OBSERVED }),
    ],
    endedCalls: [
      ...(world.endedCalls ?? []).map((ended, i) => (i === 0 ? { ...ended, ...TRACED } : ended)),
      { correlation_id: 'call-8', user_id: 'alice', client_id: 'desk', outcome: 'unanswered', ...OBSERVED },
    ],
    subscriptions: [
      ...world.subscriptions,
      subscription({ subscription_id: 'sub-5', site_id: 'board', node_id: 'node-2' }),
    ],
    delivery: {
      ...world.delivery,
      mailboxes: [
        ...(world.delivery.mailboxes ?? []),
        mailbox({ user_id: 'bob', client_id: 'phone', node_id: 'node-2' }),
      ],
      statuses: [
        ...(world.delivery.statuses ?? []),
        {
          command_id: 'cmd-3',
          action: 'open_tab',
          user_id: 'bob',
          client_id: 'phone',
          admission: { scope_id: 'scope-2', ...LONG_AGO },
          ...TRACED,
        },
        {
          command_id: 'cmd-4',
          user_id: 'alice',
          client_id: 'desk',
          admission: LONG_AGO,
          terminal: { state: 'expired', at: LONG_AGO.deadline_at },
        },
      ],
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a document is read place by place
const DOCUMENT = openApiDocument() as any

/** The filters that the API has for a list, with the words of those that have some. */
function filtersOf(path: string): Record<string, string[] | null> {
  const { parameters } = DOCUMENT.paths[path.replace('task-1', '{task_id}')].get
  const found: Record<string, string[] | null> = {}
  for (const { name, in: where, schema } of parameters) {
    if (where !== 'query' || name === 'limit' || name === 'cursor') continue
    const { type, enum: words } = schema.$ref ? DOCUMENT.components.schemas[schema.$ref.split('/').at(-1)] : schema
    found[name] = words ?? (type === 'boolean' ? ['true', 'false'] : null)
  }
  return found
}

/** Opens the field that adds a filter, at the filter `name`. @returns the field of its value */
async function fieldOf(page: Page, name: string) {
  const details = page.locator('main details.filters')
  if ((await details.getAttribute('open')) === null) await details.locator('summary').click()
  await details.getByLabel('filter', { exact: true }).selectOption(name)
  return details.locator('form > :nth-child(2)')
}

/** The filters that the page offers, with the words of those that have some. */
async function offeredFilters(page: Page): Promise<Record<string, string[] | null>> {
  const details = page.locator('main details.filters')
  const namesOf = async (select: number) =>
    (
      await details
        .locator('select')
        .nth(select)
        .locator('option')
        .evaluateAll((all) => (all as HTMLOptionElement[]).map(({ value }) => value))
    ).filter((value) => value !== '')
  const found: Record<string, string[] | null> = {}
  for (const name of await namesOf(0)) {
    await fieldOf(page, name)
    found[name] = (await details.locator('select').count()) > 1 ? await namesOf(1) : null
  }
  return found
}

/** The filters of the address, as the page shows them. */
const givenFilters = (page: Page): Promise<string[]> =>
  page.locator('main .chip.on').evaluateAll((all) => (all as HTMLElement[]).map(({ dataset }) => dataset.filter ?? ''))

inChromium('the filters of the viewer', (open) => {
  let host: ViewedHost
  beforeAll(async () => {
    // What is overdue must be the same however long a busy machine takes.
    host = await startViewed(variedWorld(), { now: () => NOW })
  })
  afterAll(() => host.close())

  describe.each(Object.entries(LISTS))('of %s', (path, list) => {
    it('are those of the API, and each narrows what is shown', () => useFilters(open, host, path, list))
  })

  it('are not shown next to a list that the router does not filter', async () => {
    const page = await open(host.page, { key: KEY })
    await page.locator('nav.views a').first().waitFor()
    const paths: string[] = await page.evaluate(
      `[...document.querySelectorAll('nav.views a')].map(({ hash }) => hash.slice(1))`,
    )
    const filtered = paths.filter((path) => DOCUMENT.paths[path] && Object.keys(filtersOf(path)).length > 0)
    expect(filtered.filter((path) => !LISTS[path])).toEqual([])
  })

  it('count the actions of the commands under a filter, each a link that narrows them further', async () => {
    const page = await open(`${host.page}#/delivery/commands`, { key: KEY })
    const counted = page.locator('.bar-of-filters .chip', { hasText: '×' })
    await page.locator('main tbody th').first().waitFor()
    expect(await counted.count()).toBe(0)
    await page.getByRole('link', { name: 'open', exact: true }).click()
    await expect.poll(() => page.url()).toBe(`${host.page}#/delivery/commands?state=open`)
    const { items } = await host.ask<{ items: { action: string }[] }>('/delivery/commands?state=open')
    const { action } = items[0] as { action: string }
    const count = items.filter((item) => item.action === action).length
    await page.getByRole('link', { name: `${count} × ${action}`, exact: true }).click()
    await expect.poll(() => page.url()).toBe(`${host.page}#/delivery/commands?state=open&action=${action}`)
    await expect.poll(() => page.locator('main tbody th').count()).toBe(count)
    expect(await page.getByRole('link', { name: /^\d+ ×/ }).count()).toBe(0)
  })

  it('leave a refused value in the address, where it says what is wrong', async () => {
    const page = await open(`${host.page}#/connections?status=gone`, { key: KEY, refusals: true })
    await page.locator('main .trouble', { hasText: 'status' }).waitFor()
    await page.getByRole('link', { name: 'clear' }).click()
    await page.locator('main tbody tr').first().waitFor()
  })

  it('start the list again, and its pages can be turned forwards and back', async () => {
    const page = await open(`${host.page}#/connections?limit=3`, { key: KEY })
    const rows = page.locator('main tbody th a.who')
    const idsOf = () => rows.evaluateAll((all) => (all as HTMLElement[]).map(({ title }) => title))
    const reads = (texts: string[]) => expect.poll(idsOf).toEqual(texts)
    const all = await host.ask<{ items: { connection_id: string }[] }>('/connections')
    const ids = all.items.map(({ connection_id }) => connection_id)
    await reads(ids.slice(0, 3))
    expect(await page.getByRole('link', { name: 'first page' }).count()).toBe(0)
    await page.getByRole('link', { name: 'next page' }).click()
    await reads(ids.slice(3, 6))
    await page.getByRole('link', { name: 'next page' }).click()
    await reads(ids.slice(6))
    expect(await page.getByRole('link', { name: 'next page' }).count()).toBe(0)
    await page.getByRole('link', { name: 'previous page' }).click()
    await reads(ids.slice(3, 6))
    await page.getByRole('link', { name: 'previous page' }).click()
    await reads(ids.slice(0, 3))
    expect(await page.getByRole('link', { name: 'previous page' }).count()).toBe(0)
    await page.goBack()
    await reads(ids.slice(3, 6))
    await page.reload()
    expect(await page.getByRole('link', { name: 'previous page' }).count()).toBe(0)
    await reads(ids.slice(3, 6))
    await (await fieldOf(page, 'status')).selectOption('connected')
    await expect.poll(() => page.url()).toBe(`${host.page}#/connections?limit=3&status=connected`)
    await page.goBack()
    await reads(ids.slice(3, 6))
    await page.getByRole('link', { name: 'first page' }).click()
    await reads(ids.slice(0, 3))
    await page.goBack()
    await page.goForward()
    await reads(ids.slice(0, 3))
  })
})

/** Chooses a value for each filter of a list, one after the other, and holds the rows to what the router answers. */
async function useFilters(
  open: Open,
  host: ViewedHost,
  path: string,
  { id, needs = {} }: { id: string; needs?: Record<string, string> },
): Promise<void> {
  const search = (query: Record<string, string>) => {
    const text = new URLSearchParams(query).toString()
    return text && `?${text}`
  }
  type Row = Record<string, unknown>
  /** The rows that the router has for a question, as the page would show the first cell of each. */
  async function answered(query: Record<string, string>, tries = 10): Promise<{ items: Row[]; shown: string[] }> {
    type Body = { items?: Row[]; idle: Row[]; assigned: Row[]; completeness?: { complete: boolean } }
    const body = await host.ask<Body>(path + search(query))
    // On a busy machine a source may be late.
    if (body.completeness?.complete === false && tries > 1) return answered(query, tries - 1)
    const items = body.items ?? [...body.idle, ...body.assigned]
    return { items, shown: items.map((row) => String(row[id])) }
  }
  const page = await open(`${host.page}#${path}${search(needs)}`, { key: KEY })
  const cells = page.locator(path === '/findings' ? 'main .found' : 'main tbody th')
  // Findings stand below their kind, those of one kind together.
  const textsOf = (): Promise<string[]> =>
    path === '/findings'
      ? cells.evaluateAll((found) =>
          found.map((one) => one.closest('.group')?.querySelector('h2 a')?.textContent ?? ''),
        )
      : cells.evaluateAll((all) =>
          all.map((cell) => cell.querySelector<HTMLElement>('a.who')?.title ?? cell.textContent),
        )
  const inOrder = (texts: string[]) => {
    const words = texts.map((text) => text.replaceAll(' ', '_'))
    return path === '/findings' ? words.sort() : words
  }
  const reads = (shown: string[]) => expect.poll(async () => inOrder(await textsOf())).toEqual(inOrder(shown))
  const all = await answered(needs)
  await reads(all.shown)

  const filters = filtersOf(path)
  expect(await offeredFilters(page)).toEqual(filters)
  const chosen: Record<string, string> = { ...needs }
  for (const [name, words] of Object.entries(filters)) {
    if (needs[name] !== undefined) continue
    const field = await fieldOf(page, name)
    const values = words ?? [...new Set(all.items.map((row) => wordOf(row, name)))].filter((value) => value !== null)
    const { value, shown } = await findApart(values as string[], name)
    if (words) await field.selectOption(value)
    else {
      await field.fill(value)
      await field.press('Enter')
    }
    await expect.poll(() => page.url()).toBe(`${host.page}#${path}${search({ ...needs, [name]: value })}`)
    await reads(shown)
    await page.goBack()
    await reads(all.shown)
    expect(await givenFilters(page)).toEqual(Object.keys(needs))
    chosen[name] = value
  }

  // A link with all of them.
  await page.goto(`${host.page}#${path}${search(chosen)}`)
  await page.reload()
  await reads((await answered(chosen)).shown)
  await expect.poll(async () => (await givenFilters(page)).sort()).toEqual(Object.keys(chosen).sort())
  await page.getByRole('link', { name: 'clear' }).click()
  await expect.poll(() => page.url()).toBe(`${host.page}#${path}`)

  /** A value that changes what is shown, and leaves something. */
  async function findApart(values: readonly string[], name: string): Promise<{ value: string; shown: string[] }> {
    for (const value of values) {
      const { shown } = await answered({ ...needs, [name]: value })
      if (shown.length > 0 && shown.join() !== all.shown.join()) return { value, shown }
    }
    throw new Error(`nothing in the world is apart in ${name} of ${path}`)
  }
}

/** What a record says of a filter; some stand deeper in it, or only in those that the row is made of. */
function wordOf(row: Record<string, unknown>, name: string): unknown {
  type Row = { admission?: { scope_id: string }; stream?: string; terminal?: { reason: string | null } | null }
  const { admission, stream, terminal } = row as Row
  if (name === 'reason') return terminal ? (terminal.reason ?? 'unspecified') : null
  if (name === 'scope_id' && admission) return admission.scope_id
  if (name === 'stream') return stream
  if (name === 'user_id_prefix') return String(row.user_id).slice(0, 2)
  if (name === 'name_prefix') return String(row.name).slice(0, 2)
  if (name === 'silent_for_ms') return '600000'
  if (name === 'from' || name === 'to') return String(NOW - 2_000)
  return row[name] ?? (name === 'user_id' ? 'bob' : null)
}
