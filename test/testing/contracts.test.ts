import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/contract/inspectors.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createFakeInspectors } from '../../src/testing/fake-inspectors.js'
import { inspectorContract } from '../../src/testing/inspectors.js'
import { connection, context, createWorld } from '../diagnostics/world.js'
import { createLivedFacilities, LIVED } from './lived-facilities.js'

const KNOWN = { commands: [{ user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' }], users: ['alice'] }

describe('the fakes over a rich world', () => {
  for (const { name, run } of inspectorContract(() => createFakeInspectors(createWorld()), KNOWN)) it(name, run)
})

describe('the fakes over an empty world', () => {
  const empty = {
    connections: [],
    messages: [],
    streams: [],
    calls: [],
    instances: [],
    contexts: [],
    browserWindows: [],
  }
  for (const { name, run } of inspectorContract(() =>
    createFakeInspectors({ ...empty, actions: [], connectionEvents: [], deduplicator: { users: [] }, delivery: {} }),
  ))
    it(name, run)
})

describe('the memory facilities over the life of a relay', () => {
  let facilities: Awaited<ReturnType<typeof createLivedFacilities>>
  beforeAll(async () => {
    facilities = await createLivedFacilities()
  })
  afterAll(() => facilities.close())
  for (const { name, run } of inspectorContract(() => memoryComposition(facilities).inspectors, LIVED)) it(name, run)
})

it('offers in a fake world what connected connections offer, as sampling it does', async () => {
  const connections = [connection(), connection({ connection_id: 'conn-2', status: 'disconnected', actions: ['gone'] })]
  const { registry } = createFakeInspectors({ connections, actions: [] })
  const ask = { signal: new AbortController().signal }
  const page = await registry?.listActions?.({}, { limit: 10, cursor: null }, ask)
  expect(page?.items.map(({ name }) => name)).toEqual(['close', 'open'])
})

it('passes where there is no inspector at all', async () => {
  for (const { run } of inspectorContract(() => ({}))) await run()
})

/** Breaks one method of one inspector: `answer` gets what it would have answered, and its arguments. */
function broken(family: keyof Inspectors, method: string, answer: (given: never, args: never) => unknown) {
  return (): Inspectors => {
    const inspectors = createFakeInspectors(createWorld())
    const inspector = inspectors[family] as unknown as Record<string, (...args: unknown[]) => unknown>
    const original = inspector[method]
    inspector[method] = (...args) => {
      let given: unknown
      try {
        given = original?.(...args)
      } catch {
        // A broken inspector refuses nothing.
      }
      return answer(given as never, args as never)
    }
    return inspectors
  }
}

type Page = { items: Record<string, unknown>[]; next_cursor: string | null; has_more: boolean }
type Args = [first: { cursor?: string | null; limit?: number }, page: { cursor: string | null; limit: number }]

const everyPage = (change: (page: Page, args: Args) => unknown) => change as (given: never, args: never) => unknown
const whole = createWorld()

describe('an inspector that breaks a promise is told which', () => {
  const { connections, contexts } = whole
  it.each<[what: string, make: () => Inspectors, promise: RegExp]>([
    [
      'ignores the limit',
      broken('registry', 'listConnections', () => ({ items: connections, next_cursor: null, has_more: false })),
      /6 items for a limit of 1/,
    ],
    [
      'repeats its token for ever',
      broken('registry', 'listConnections', () => ({ items: [], next_cursor: 'again', has_more: true })),
      /the same token twice/,
    ],
    [
      'never ends',
      broken(
        'contextRegistry',
        'listContexts',
        everyPage((_page, [, { cursor }]) => ({
          items: [],
          next_cursor: String(Number(cursor ?? 0) + 1),
          has_more: true,
        })),
      ),
      /did not end within/,
    ],
    [
      'has more, but no token',
      broken(
        'rpc',
        'listPending',
        everyPage((page) => ({ ...page, next_cursor: null })),
      ),
      /no next_cursor/,
    ],
    [
      'hands out a token that is too long',
      broken(
        'delivery',
        'listTenants',
        everyPage((page) => ({ ...page, next_cursor: page.next_cursor && 'é'.repeat(181) })),
      ),
      /over 360 bytes/,
    ],
    [
      'shows an entry twice',
      broken(
        'delivery',
        'listNodes',
        everyPage((page) => ({ ...page, items: page.items.map((item) => ({ ...item, node_id: 'node-1' })) })),
      ),
      /more than once/,
    ],
    [
      'loses entries at the ends of pages',
      broken(
        'contextRegistry',
        'listContexts',
        everyPage((page) => ({ ...page, items: page.has_more ? page.items.slice(1) : page.items })),
      ),
      /other entries with a limit of/,
    ],
    [
      'does not filter',
      broken('rpc', 'listPending', (_page, [, page]: [unknown, never]) =>
        createFakeInspectors(createWorld()).rpc?.listPending({}, page, { signal: new AbortController().signal }),
      ),
      /listPending under \{"user_id":"alice"\}/,
    ],
    [
      'answers a record that is none',
      broken(
        'browserWindowRegistry',
        'listBrowserWindows',
        everyPage((page) => ({ ...page, items: page.items.map((item) => ({ ...item, status: 'ajar' })) })),
      ),
      /listBrowserWindows: win-1 is not what its schema says/,
    ],
    [
      'answers another record than it lists',
      broken('registry', 'getConnection', (given: object | null) => given && connection({ client_id: 'other' })),
      /by its id/,
    ],
    [
      'finds what is not there',
      broken('contextRegistry', 'getContext', (given: object | null) => given ?? context()),
      /is not null/,
    ],
    [
      'answers undefined for what is not there',
      broken('browserWindowRegistry', 'getBrowserWindow', (given: object | null) => given ?? undefined),
      /is not null/,
    ],
    [
      'makes an entry of a foreign token',
      broken(
        'contextRegistry',
        'listContexts',
        // The original refused the token.
        everyPage(
          (page?: Page) => page ?? { items: [context({ context_id: 'ghost' })], next_cursor: null, has_more: false },
        ),
      ),
      /made an entry of a token/,
    ],
    [
      'leaves an action out',
      broken(
        'registry',
        'listActions',
        everyPage((page) => ({ ...page, items: page.items.filter((item) => item.name !== 'print') })),
      ),
      /leaves out print/,
    ],
    [
      'reads the oldest messages instead of the newest',
      broken('history', 'readMessages', (_given, [{ stream, limit }]: [{ stream: string; limit: number }]) => {
        const items = whole.messages.filter((message) => message.stream === stream).slice(0, limit)
        return { items, truncated: true }
      }),
      /the newest 1 of/,
    ],
    [
      'hides that a sample was cut',
      broken('history', 'readMessages', (given: object) => ({ ...given, truncated: false })),
      /is not truncated/,
    ],
    [
      'says current of every instance',
      broken('rpc', 'checkInstance', (given: object) => ({ ...given, current: true })),
      /contradicts itself/,
    ],
    [
      'counts beyond its capacity',
      broken('deduplicator', 'summary', (given: object) => ({ ...given, entries: 101 })),
      /more entries than the capacity/,
    ],
    ['knows every user', broken('deduplicator', 'userSummary', () => whole.deduplicator.users?.[0]), /does not exist/],
    [
      'carries a payload in its evidence',
      broken('delivery', 'status', (given: object | null) => given && { ...given, payload: { secret: 1 } }),
      /carries what its schema does not name/,
    ],
    [
      'answers for another command',
      broken('delivery', 'status', () => whole.delivery.statuses?.[0]),
      /status answers for another user_id|not null/,
    ],
    [
      'hangs when its signal is aborted',
      broken('registry', 'listConnections', (page: object, [, , ask]: [unknown, unknown, { signal: AbortSignal }]) =>
        ask.signal.aborted ? new Promise(() => {}) : page,
      ),
      /did not settle/,
    ],
    [
      'counts wrongly',
      broken('contextRegistry', 'countContexts', () => ({ total: contexts.length, by_status: {} })),
      /countContexts under \{\}/,
    ],
    [
      'lists its users out of order',
      broken('registry', 'listUserIds', (_given, [{ limit }]: [{ limit: number }]) => ['bob', 'alice'].slice(0, limit)),
      /listUserIds/,
    ],
    [
      'observes a user wrongly',
      broken('contextRegistry', 'observeUsers', (_given, [ids]: [string[]]) =>
        ids.slice(0, -1).map((user_id) => ({ user_id, observed_contexts: 99 })),
      ),
      /observeUsers: /,
    ],
    [
      'counts the workers of a window wrongly',
      broken('contextRegistry', 'countByWindow', (_given, [ids]: [string[]]) =>
        ids.map((window_id) => ({ window_id, worker_count: 9, idle_count: 0, busy_count: 0 })),
      ),
      /countByWindow/,
    ],
  ])('%s', async (_what, make, promise) => {
    const broken: string[] = []
    for (const { run } of inspectorContract(make, KNOWN))
      await run().catch((error: Error) => broken.push(error.message))
    expect(broken.join('\n')).toMatch(promise)
  })
})
