/** Workers as nodes: connections of the store that have the name of a worker of a queue, and nothing more. */
import type { DeliveryNode } from '../contract/delivery.js'
import { checkId } from '../contract/ids.js'
import { type InspectionContext, omittedCount, type Page, type PageQuery, scanLimit } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import type { Link } from './queue.js'

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
export async function listNodes(
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

/** The workers by the numbers of their connections, which only grow; `null` where the store does not list them. */
async function workersOf(link: Link, ctx: InspectionContext): Promise<[id: number, client: Connected][] | null> {
  try {
    const connected = await link.call((queue) => queue.getWorkers(), ctx)
    // Without CLIENT, BullMQ returns one entry that says so.
    if (connected.some(({ id }) => !CLIENT_ID.test(id ?? ''))) throw new Error('it has no CLIENT LIST')
    return connected.map((client): [number, Connected] => [Number(client.id), client]).sort(([a], [b]) => a - b)
  } catch (error) {
    if (error instanceof Refusal || ctx.signal.aborted) throw error
    ctx.onError?.(new Error(`the store of the queue ${link.name} does not list its connections`, { cause: error }))
    return null
  }
}
