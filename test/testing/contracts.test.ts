import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Connection } from '../../src/internal/contract/connections.js'
import type { ContextInput } from '../../src/internal/contract/contexts.js'
import { type CommandFilter, CommandState, WaitsFor } from '../../src/internal/contract/delivery.js'
import { familyEntries, type Inspectors } from '../../src/internal/contract/families.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { contextRegistryContract } from '../../src/testing/contexts.js'
import { createFakeInspectors, inspectorContract } from '../../src/testing/kits.js'
import { ASK } from '../contract/clock.js'
import { connection, context, createWorld, NOW } from '../diagnostics/world.js'
import { createLivedFacilities, LIVED } from './lived-facilities.js'

const KNOWN = { commands: [{ user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' }], users: ['alice'] }

/** A world whose summary and scopes have the numbers of its commands. */
function countedWorld() {
  const { delivery, ...world } = createWorld()
  const tenants = [{ scope_id: 'alice', reserved_commands: 1 }, { scope_id: 'scope-2' }]
  return { ...world, delivery: { ...delivery, summary: { deployment_id: 'dep', sample_size: 1 }, tenants } }
}

describe('the fakes with a rich world', () => {
  for (const { name, run } of inspectorContract(() => createFakeInspectors(countedWorld()), KNOWN))
    it(name, async () => void (await run()))
})

describe('the fakes with an empty world', () => {
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
    it(name, async () => void (await run()))
})

describe('the memory facilities after the life of a relay', () => {
  let facilities: Awaited<ReturnType<typeof createLivedFacilities>>
  beforeAll(async () => {
    facilities = await createLivedFacilities()
  })
  afterAll(() => facilities.close())
  for (const { name, run } of inspectorContract(() => memoryComposition(facilities).inspectors, LIVED))
    it(name, async () => void (await run()))

  it.each(familyEntries())('has entries of the family %s, so that its suite tests something', async (name, {
    users,
  }) => {
    const inspector = memoryComposition(facilities).inspectors[name]
    if (!users) return
    const { items } = await Reflect.get(inspector ?? {}, users.list)({}, { limit: 1, cursor: null }, ASK)
    expect(items).toHaveLength(1)
  })
})

it('lists the actions of connected clients in a fake world', async () => {
  const connections = [connection(), connection({ connection_id: 'conn-2', status: 'disconnected', actions: ['gone'] })]
  const { registry } = createFakeInspectors({ connections, actions: [] })
  const ctx = { signal: new AbortController().signal }
  const page = await registry?.listActions?.({}, { limit: 10, cursor: null }, ctx)
  expect(page?.items.map(({ name }) => name)).toEqual(['close', 'open'])
})

it('resolves to not tested for missing inspectors, and skips the test of the runner', async () => {
  const reasons: unknown[] = []
  for (const { run } of inspectorContract(() => ({}))) {
    // Runners that look for a callback among the parameters find none.
    expect(run).toHaveLength(0)
    expect(await run({ skip: (reason) => reasons.push(reason) })).toBe('not tested')
  }
  expect(reasons).toContain('not tested: listConnections is not implemented')
  const { registry } = createFakeInspectors(createWorld())
  const outcomes = new Set<string>()
  for (const { name, run } of inspectorContract(() => ({ registry })))
    outcomes.add(`${name.split(':')[0]} ${await run()}`)
  expect(outcomes).toContain('registry tested')
  // The fakes keep no exact counts.
  expect(outcomes).toContain('registry not tested')
  expect(outcomes).not.toContain('rpc tested')
})

it('tolerates an instant that is computed again each time', async () => {
  let times = 0
  const moving = (record: ContextInput) => ({ ...record, updated_at: new Date(NOW + (times++ % 500)).toISOString() })
  const make = () => {
    const { contextRegistry } = createFakeInspectors(createWorld())
    if (!contextRegistry) throw new Error('the world has one')
    const { listContexts, getContext } = contextRegistry
    return {
      listContexts: async (...asked: Parameters<typeof listContexts>) => {
        const page = await listContexts(...asked)
        return { ...page, items: page.items.map(moving) }
      },
      getContext: async (...asked: Parameters<typeof getContext>) => {
        const found = await getContext(...asked)
        return found && moving(found)
      },
    }
  }
  for (const { run } of contextRegistryContract(make)) await run()
})

describe('a failure', () => {
  const failureOf = async (make: () => Inspectors): Promise<string> => {
    for (const { run } of inspectorContract(make)) {
      const failed = await run().catch((error: Error) => error)
      if (failed instanceof Error) return failed.message
    }
    return 'none'
  }
  it.each<[what: string, make: () => Inspectors, message: string]>([
    [
      'names the field that differs, of records however long',
      broken('registry', 'getConnection', (given: Connection | null) => given && { ...given, node_id: 'elsewhere' }),
      'the entry conn-1 by its id: node_id: expected null, got "elsewhere"',
    ],
    [
      'names missing and surplus entries',
      broken('rpc', 'listPending', (_page, [filter, page]: [{ user_id?: string }, never]) =>
        createFakeInspectors(createWorld()).rpc?.listPending(filter.user_id ? { user_id: 'carol' } : {}, page, ASK),
      ),
      'listPending under {"user_id":"alice"}: missing call-1, call-2, call-3; surplus call-4; call-4: user_id: expected "alice", got "carol"',
    ],
    [
      'names duplicate entries',
      broken('delivery', 'listNodes', (page: Page) => ({
        ...page,
        items: page.items.map((item) => ({ ...item, node_id: 'node-1' })),
      })),
      'more than once node-1',
    ],
    [
      'names the correct refusal instead of another error',
      broken('contextRegistry', 'listContexts', (page: Page | undefined) => {
        if (page) return page
        throw new RangeError('no such page')
      }),
      `listContexts for the cursor "" threw RangeError: no such page: to reject a request, throw new Refusal('invalid_cursor') of relayscope; any other error becomes a 500`,
    ],
    [
      'names the order in which actions are',
      broken('registry', 'listActions', (page: Page | null) => page && { ...page, items: page.items.toReversed() }),
      'listActions is not ordered by name: print, open, close',
    ],
    [
      'names the message that is out of order',
      broken('history', 'readMessages', (given: { items: object[] }) => ({
        ...given,
        items: given.items.toReversed(),
      })),
      'messages of users/alice/log must be oldest first',
    ],
  ])('%s', async (_what, make, message) => {
    expect(await failureOf(make)).toContain(message)
  })
})

/** Breaks one method of one inspector: `answer` gets its result and its arguments. */
function broken(family: keyof Inspectors, method: string, answer: (given: never, args: never) => unknown) {
  return (): Inspectors => {
    const inspectors = createFakeInspectors(countedWorld())
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
const NO_STATES = Object.fromEntries(CommandState.options.map((state) => [state, 0]))
const NO_WAITS = Object.fromEntries(WaitsFor.options.map((wait) => [wait, 0]))

describe('the contract suite detects an inspector that', () => {
  const { connections, contexts } = whole
  it.each<[what: string, make: () => Inspectors, promise: RegExp]>([
    [
      'ignores the limit',
      broken('registry', 'listConnections', () => ({ items: connections, next_cursor: null, has_more: false })),
      /6 items for a limit of 1/,
    ],
    [
      'repeats its cursor forever',
      broken('registry', 'listConnections', () => ({ items: [], next_cursor: 'again', has_more: true })),
      /the same cursor twice/,
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
      /next_cursor must be well-formed/,
    ],
    [
      'hands out a token that is too long',
      broken(
        'delivery',
        'listTenants',
        everyPage((page) => ({ ...page, next_cursor: page.next_cursor && 'é'.repeat(181) })),
      ),
      /of 362 bytes, more than the maximum of 360/,
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
      'returns an invalid record',
      broken(
        'browserWindowRegistry',
        'listBrowserWindows',
        everyPage((page) => ({ ...page, items: page.items.map((item) => ({ ...item, status: 'ajar' })) })),
      ),
      /listBrowserWindows: win-1 does not match its schema/,
    ],
    [
      'returns another record than it lists',
      broken('registry', 'getConnection', (given: object | null) => given && connection({ client_id: 'other' })),
      /by its id/,
    ],
    [
      'finds a record that does not exist',
      broken('contextRegistry', 'getContext', (given: object | null) => given ?? context()),
      /must be null/,
    ],
    [
      'returns undefined for a record that does not exist',
      broken('browserWindowRegistry', 'getBrowserWindow', (given: object | null) => given ?? undefined),
      /must be null/,
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
      /must not create an entry from a cursor/,
    ],
    [
      'leaves an action out',
      broken(
        'registry',
        'listActions',
        everyPage((page) => ({ ...page, items: page.items.filter((item) => item.name !== 'print') })),
      ),
      /does not return print/,
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
      /truncated must be true/,
    ],
    [
      'returns current: true for every instance',
      broken('rpc', 'checkInstance', (given: object) => ({ ...given, current: true })),
      /contradicts itself/,
    ],
    [
      'counts beyond its capacity',
      broken('deduplicator', 'summary', (given: object) => ({ ...given, entries: 101 })),
      /101 entries, more than its capacity of/,
    ],
    ['knows every user', broken('deduplicator', 'userSummary', () => whole.deduplicator.users?.[0]), /does not exist/],
    [
      'carries a payload in its evidence',
      broken('delivery', 'status', (given: object | null) => given && { ...given, payload: { secret: 1 } }),
      /has fields that are not in its schema/,
    ],
    [
      'carries a payload in its list of commands',
      broken(
        'delivery',
        'listCommands',
        everyPage((page) => ({ ...page, items: page.items.map((item) => ({ ...item, payload: 1 })) })),
      ),
      /listCommands: .*has fields that are not in its schema/,
    ],
    [
      'returns the wrong state of a command',
      broken(
        'delivery',
        'listCommands',
        everyPage((page) => ({ ...page, items: page.items.map((item) => ({ ...item, state: 'waiting' })) })),
      ),
      /state of cmd-1/,
    ],
    ...(
      [
        ['tracked_commands', 'summary', { tracked_commands: 2 }, 'tracked_commands of summary'],
        ['by_state', 'summary', { by_state: { ...NO_STATES, waiting: 1, resulted: 1 } }, 'by_state.waiting of summary'],
        ['by_reason', 'summary', { by_reason: { done: 1 } }, 'by_reason.done of summary'],
        ['waits_for', 'summary', { waits_for: { ...NO_WAITS, turn: 1 } }, 'waits_for.turn of summary'],
        ['reserved_commands', 'listTenants', { reserved_commands: 2 }, 'reserved_commands of the scope alice'],
        ['waiting_commands', 'listMailboxes', { waiting_commands: 1 }, 'waiting_commands of alice/desk-1'],
      ] as const
    ).map(([field, method, wrong, promise]): [string, () => Inspectors, RegExp] => [
      `counts ${field} wrongly`,
      broken('delivery', method, (given: object) =>
        'items' in given
          ? { ...given, items: (given as Page).items.map((item) => ({ ...item, ...wrong })) }
          : { ...given, ...wrong },
      ),
      new RegExp(`^${promise}.*: expected \\d+.*, got \\d+$`, 'm'),
    ]),
    [
      'takes a reason for none',
      broken('delivery', 'listCommands', (_page, [{ reason: _, ...filter }, page]: [CommandFilter, never]) =>
        createFakeInspectors(createWorld()).delivery?.listCommands?.(filter, page, {
          signal: new AbortController().signal,
        }),
      ),
      /listCommands with .*reason/,
    ],
    [
      'takes a scope for none',
      broken('delivery', 'listCommands', (_page, [{ scope_id: _, ...filter }, page]: [CommandFilter, never]) =>
        createFakeInspectors(createWorld()).delivery?.listCommands?.(filter, page, {
          signal: new AbortController().signal,
        }),
      ),
      /listCommands with .*scope_id/,
    ],
    [
      'ignores the trace of a filter for commands',
      broken('delivery', 'listCommands', (_page, [{ trace_id: _, ...filter }, page]: [CommandFilter, never]) =>
        createFakeInspectors(createWorld()).delivery?.listCommands?.(filter, page, {
          signal: new AbortController().signal,
        }),
      ),
      /listCommands under trace_id|listCommands .*trace_id/,
    ],
    ...(['registry listConnections', 'delivery listCommands', 'rpc listEnded'] as const).flatMap((list) =>
      ['from', 'to'].map((name): [string, () => Inspectors, RegExp] => {
        const [family, method] = list.split(' ') as ['registry', 'listConnections']
        const ignoring = (_page: unknown, [filter, page]: [object, never]) =>
          createFakeInspectors(createWorld())[family]?.[method]({ ...filter, [name]: undefined }, page, ASK)
        return [
          `ignores ${name} in ${method}`,
          broken(family, method, ignoring),
          new RegExp(`${method} under .*"${name}"`),
        ]
      }),
    ),
    [
      'returns another command',
      broken('delivery', 'status', () => whole.delivery.statuses?.[0]),
      /status must be null for another user_id|must be null/,
    ],
    [
      'hangs when its signal is aborted',
      broken('registry', 'listConnections', (page: object, [, , ctx]: [unknown, unknown, { signal: AbortSignal }]) =>
        ctx.signal.aborted ? new Promise(() => {}) : page,
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
