/** How `/findings` reads lists with empty pages that have more: a record beyond the first page is not missing. */
import { expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import type { Finding } from '../../src/internal/views/findings/finding.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { command as commandOf } from './finding-worlds.js'
import { createSubject, get, type RouterOptions } from './subject.js'
import { connection, context, NOW, node } from './world.js'

const at = (ms: number) => new Date(NOW + ms).toISOString()

/** A list that examines one record a page, matching or not. */
const crumbs =
  <T extends object>(records: readonly T[]) =>
  (filter: object, { cursor }: PageQuery): Page<T> => {
    const place = Number(cursor ?? 0)
    const isMeant = (record: T) => Object.entries(filter).every(([name, value]) => record[name as keyof T] === value)
    const has_more = place + 1 < records.length
    const next_cursor = has_more ? `${place + 1}` : null
    return { items: records.slice(place, place + 1).filter(isMeant), next_cursor, has_more, examined: 1 }
  }

const PAGE = { next_cursor: null, has_more: false }
const BEGUN = { items: [], next_cursor: 'on', has_more: true, examined: 1 }

/** `list` behind an empty page. */
const behind =
  <T>(items: readonly T[], first: readonly T[] = []) =>
  ({ cursor }: PageQuery): Page<T> =>
    cursor === null ? { ...BEGUN, items: [...first] } : { ...PAGE, items: [...items] }

async function findingsOf(kind: string, inspectors: object, options: RouterOptions = {}) {
  const router = createSubject({ inspectors: inspectors as Inspectors, ...options })
  const { status, body } = await get(router, `/findings?kind=${kind}`)
  expect(status).toBe(200)
  return body as { items: Finding[]; completeness: { complete: boolean } }
}

const others = (count: number) =>
  Array.from({ length: count }, (_, i) => connection({ connection_id: `conn-${i}`, client_id: `other-${i}` }))
const worker = context({ ownership: 'worker', task_id: 'task-1', status: 'active' })
const { contextRegistry } = createFakeInspectors({ contexts: [worker] })

/** The workers of one client, which is connected behind `count` others. */
const behindOthers = (count: number, own = [connection()]) => ({
  contextRegistry,
  registry: { listConnections: crumbs([...others(count), ...own]), getConnection: () => null },
})

it('finds no worker of a client that is connected on a later page', async () => {
  expect((await findingsOf('worker_of_disconnected_client', behindOthers(5))).items).toEqual([])
  const away = await findingsOf('worker_of_disconnected_client', behindOthers(5, []))
  expect(away.items.map(({ evidence }) => evidence[1]?.fields)).toEqual([
    { connected: false, current_instance_id: null },
  ])
})

it('finds nothing about a client whose state is unknown within the bounds', async () => {
  const few = { limits: { examined: 8 } }
  const beyond = await findingsOf('worker_of_disconnected_client', behindOthers(10, []), few)
  expect(beyond).toMatchObject({ items: [], completeness: { complete: false } })
  let pages = 0
  const listConnections = () => ({ items: [], next_cursor: `${++pages}`, has_more: true })
  const endless = { contextRegistry, registry: { listConnections, getConnection: () => null } }
  const never = await findingsOf('worker_of_disconnected_client', endless)
  expect(never).toMatchObject({ items: [], completeness: { complete: false } })
  expect(pages).toBeLessThanOrEqual(100)
})

/** A command, by the instants of its admission and its deadline. */
const command = (admitted: number, deadline: number, over: object = {}) => ({
  ...commandOf({}, at(admitted), at(deadline)),
  state: 'waiting',
  overdue: deadline <= 0,
  waits_for: 'unknown',
  ...over,
})

const delivery = (over: object) => ({
  summary: () => ({ observed_at: at(0) }),
  status: () => null,
  listTenants: () => ({ ...PAGE, items: [] }),
  listNodes: () => ({ ...PAGE, items: [node()] }),
  listCommands: () => ({ ...PAGE, items: [] }),
  ...over,
})

it.each([
  ['empty', []],
  ['of silent nodes', [node({ node_id: 'silent', stale: true })]],
])('finds no command overdue where a node lives behind a page that is %s', async (_, first) => {
  // No pass of the node was due since.
  const late = command(-5_000, -100)
  const listCommands = ({ overdue }: { overdue?: boolean }) => ({ ...PAGE, items: overdue ? [late] : [] })
  const living = [node({ updated_at: at(-50) })]
  const listNodes = behind(living, first)
  const found = await findingsOf('command_overdue', { delivery: delivery({ listCommands, listNodes }) })
  expect(found.items).toEqual([])
  // Where none lives on any page it is.
  const dead = delivery({ listCommands, listNodes: behind(first) })
  const [one] = (await findingsOf('command_overdue', { delivery: dead })).items
  expect(one?.evidence[1]?.fields).toEqual({ living_nodes: 0 })
})

it('finds what is shown by a later page as well', async () => {
  const { registry } = createFakeInspectors({ connections: [connection()] })
  const waiting = command(-60_000, 60_000)
  const attempts = { count: 1, confirmed: 0, last_at: at(-50_000), last_node_id: 'node-1', last_outcome: null }
  const other = command(-60_000, 60_000, { client_id: 'other', state: 'attempted', attempts })
  const listCommands = ({ state }: { state?: string }, page: PageQuery) =>
    state === 'attempted' ? behind([other])(page) : { ...PAGE, items: [waiting] }
  const kind = 'command_waiting_though_listened'
  const { items } = await findingsOf(kind, { registry, delivery: delivery({ listCommands }) })
  expect(items.map((one) => one.kind)).toEqual([kind])

  const tenant = { scope_id: 'leaky', reserved_commands: 1, oldest_deadline_at: at(-1_000) }
  const listTenants = () => ({ ...PAGE, items: [tenant] })
  const leaky = delivery({ listTenants, listCommands: (_: object, page: PageQuery) => behind([])(page) })
  const leaks = await findingsOf('reservation_without_command', { delivery: leaky })
  expect(leaks.items.map(({ subject }) => subject)).toEqual([{ scope_id: 'leaky' }])

  const silent = node({ stale: true, connection_waiters: null, active_drainers: null })
  const held = connection({ node_id: silent.node_id })
  const listConnections = (_: object, page: PageQuery) => behind([held])(page)
  const silentNodes = delivery({ listNodes: () => ({ ...PAGE, items: [silent] }) })
  const holds = await findingsOf('silent_node_holds', {
    registry: { listConnections, getConnection: () => null },
    delivery: silentNodes,
  })
  expect(holds.items.map(({ subject }) => subject)).toEqual([{ node_id: silent.node_id }])
})

it('distinguishes commands without a user by their scopes', async () => {
  const ofNobody = (scope_id: string) => {
    const { admission } = command(-50_000, -10_000)
    return command(-50_000, -10_000, { user_id: null, client_id: null, admission: { ...admission, scope_id } })
  }
  const items = [ofNobody('mail'), ofNobody('push'), command(-50_000, -10_000)]
  const listCommands = () => ({ ...PAGE, items })
  const found = await findingsOf('command_overdue', { delivery: delivery({ listCommands }) })
  expect(found.items.map(({ finding_id, subject }) => [finding_id, subject])).toEqual([
    ['command_overdue:mail/mail/cmd-1', { scope_id: 'mail', command_id: 'cmd-1' }],
    ['command_overdue:push/push/cmd-1', { scope_id: 'push', command_id: 'cmd-1' }],
    ['command_overdue:alice/desk/cmd-1', { user_id: 'alice', client_id: 'desk', command_id: 'cmd-1' }],
  ])
})
