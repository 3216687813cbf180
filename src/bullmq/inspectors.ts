/** Inspectors over BullMQ queues. */
import { invalidOption, shown } from '../internal/contract/checks.js'
import type { DeliveryInspector, DeliveryNode } from '../internal/contract/delivery.js'
import { checkId, compareIds } from '../internal/contract/ids.js'
import {
  defineOptions,
  func,
  type Input,
  list,
  readOptions,
  textOrNull,
  timer,
  withMethods,
} from '../internal/contract/options.js'
import {
  type InspectionContext,
  omittedCount,
  type Page,
  type PageQuery,
  scanLimit,
} from '../internal/contract/page.js'
import { Refusal } from '../internal/refusal.js'
import { listCommands, readStatus } from './commands.js'
import type { Identify } from './identity.js'
import { type BullmqQueue, createLink, type Link, QUEUE_METHODS, TIMEOUT_MS } from './queue.js'
import { listScopes, readScope, readSummary } from './scopes.js'

// Workers as nodes: connections of the store that have the name of a worker of a queue, and nothing more.

type Connected = Readonly<Record<string, string>>

const CLIENT_ID = /^[0-9]{1,15}$/
const TOKEN = /^([0-9]{1,15})\.(.+)$/s
const NO_COUNTERS = { recovery: {}, outcome: {}, acknowledgement: {}, other: {} }
/** Separator before the name of a named worker. */
const NAMED = ':w:'

function toNode(queue: string, { id = '', rawname = '', addr }: Connected): DeliveryNode | null {
  const at = rawname.indexOf(NAMED)
  const name = at < 0 ? null : rawname.slice(at + NAMED.length)
  const node_id = `${queue}:${name ?? ''}:${id}`
  if (checkId(node_id) !== undefined) return null
  return {
    node_id,
    mailbox_listener_alive: null,
    reconciliation_loop_alive: null,
    active_drainers: null,
    connection_waiters: null,
    updated_at: null,
    stale: null,
    staleness_ms: null,
    counters: NO_COUNTERS,
    metadata: { queue, worker_name: name, address: addr ?? null },
  }
}

/**
 * Returns the workers by queue, oldest connection first. For a store without CLIENT LIST one record of the queue counts
 * as omitted.
 */
async function listNodes(
  links: readonly Link[],
  { limit, cursor }: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryNode>> {
  const [, last = '0', name] = cursor === null ? [] : (TOKEN.exec(cursor) ?? [])
  let queue = cursor === null ? 0 : links.findIndex((link) => link.name === name)
  if (queue < 0) throw new Refusal('invalid_cursor')
  let after = Number(last)
  const items: DeliveryNode[] = []
  const most = scanLimit(ctx)
  let [examined, omitted] = [0, 0]
  const page = (next_cursor: string | null): Page<DeliveryNode> => ({
    items,
    next_cursor,
    has_more: next_cursor !== null,
    examined: Math.min(examined, most),
    ...omittedCount(omitted),
  })
  for (const begin = queue; queue < links.length; queue++, after = 0) {
    const link = links[queue] as Link
    // A queue without workers costs its store a list of connections, too. Their numbers begin at 1.
    if (queue > begin && ++examined >= most) return page(`0.${link.name}`)
    const connected = await workersOf(link, ctx)
    if (connected === null) omitted += 1
    for (const [id, client] of connected ?? []) {
      if (id <= after) continue
      if (items.length >= limit || examined >= most) return page(`${after}.${link.name}`)
      examined += 1
      after = id
      const node = toNode(link.name, client)
      if (node) items.push(node)
      else omitted += 1
    }
  }
  return page(null)
}

/**
 * The workers by the numbers of their connections, which only grow. On PostgreSQL connections have none: the workers are
 * numbered by name. `null` where the store does not list them.
 */
async function workersOf(link: Link, ctx: InspectionContext): Promise<[number: number, client: Connected][] | null> {
  try {
    const connected = await link.call((queue) => queue.getWorkers(), ctx)
    if (connected.every(({ id }) => CLIENT_ID.test(id ?? '')))
      return connected.map((client): [number, Connected] => [Number(client.id), client]).sort(([a], [b]) => a - b)
    // Without CLIENT, BullMQ returns one entry that says so.
    if (connected.some(({ rawname }) => rawname === undefined)) throw new Error('it does not allow CLIENT LIST')
    const names = connected.map(({ rawname = '' }) => rawname).sort(compareIds)
    // Workers of one name differ by their place among them.
    return names.map((rawname, i) => [i + 1, { rawname, id: `${i - names.indexOf(rawname) || ''}` }])
  } catch (error) {
    if (error instanceof Refusal || ctx.signal.aborted) throw error
    ctx.onError?.(new Error(`the store of the queue ${link.name} does not list its workers`, { cause: error }))
    return null
  }
}

/** Options of `createBullmqInspectors`. */
export const BullmqOptions = defineOptions({
  /** Your queues, each name once. They are never closed or written to. */
  queues: list<readonly BullmqQueue[]>(),
  /** Returns the user and client of a job, for example from its data. @default unknown */
  identify: func<Identify>().optional(),
  /** Deployment id in the delivery summary. @default null */
  deploymentId: textOrNull().default(null),
  /** Timeout in ms of one call to a queue's Redis, connecting included. @default 2000 */
  timeoutMs: timer(TIMEOUT_MS),
  /** Returns the time in epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface BullmqOptions extends Input<typeof BullmqOptions> {}

const QUEUE = withMethods(...QUEUE_METHODS)

function checkQueues(queues: readonly BullmqQueue[]): void {
  const names = new Set<string>()
  for (const [i, queue] of queues.entries()) {
    if (!QUEUE.safeParse(queue).success || typeof queue.name !== 'string')
      throw new TypeError(invalidOption(`queues.${i}`, 'a Queue of bullmq 5 or 6', queue))
    const reason = checkId(queue.name)
    if (reason) throw new TypeError(`Invalid option "queues.${i}": the queue name ${reason}`)
    if (names.has(queue.name))
      throw new TypeError(`Invalid option "queues.${i}": another queue has the name ${shown(queue.name)}`)
    names.add(queue.name)
  }
}

/**
 * Creates inspectors over queues of BullMQ 5 and 6: jobs are commands, queues are scopes, workers are nodes. They only
 * call public getters, for a bounded part each time, and never add, move or remove a job. Facts that BullMQ does not
 * have are `null`.
 *
 * @returns `delivery` only: the store does not record who waits for the result of a job.
 * @throws TypeError or RangeError that names the option.
 *
 * @example
 * const inspectors = createBullmqInspectors({ queues: [emails, reports] })
 * const router = createDiagnosticsRouter({ inspectors, auth: resolveAdminAuth({ strict: true, host }) })
 */
export function createBullmqInspectors(options: BullmqOptions): { delivery: DeliveryInspector } {
  const { queues: given, identify, deploymentId, timeoutMs, now } = readOptions(BullmqOptions, options)
  checkQueues(given)
  const links = given.map((queue) => createLink(queue, timeoutMs))
  const queues = { links, identify }
  return {
    delivery: {
      ping: (ctx) => Promise.all(links.map(({ name }) => readScope(links, name, ctx))),
      summary: (ctx) => readSummary(links, deploymentId, ctx, now),
      listNodes: (page, ctx) => listNodes(links, page, ctx),
      listTenants: (page, ctx) => listScopes(links, page, ctx),
      getTenant: (scopeId, ctx) => readScope(links, scopeId, ctx),
      status: (key, ctx) => readStatus(queues, key, ctx),
      listCommands: (filter, page, ctx) => listCommands(queues, filter, page, ctx),
    },
  }
}
