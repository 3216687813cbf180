/** Workers as nodes: connections of the store that bear the name of a worker of a queue, and nothing more. */
import type { DeliveryNode } from '../contract/delivery.js'
import { checkId } from '../contract/ids.js'
import { type Ask, examinable, omitting, type Page, type PageQuery } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import type { Link } from './queue.js'
import { type Connected, type Told, workerName } from './store-connections.js'

const CLIENT_ID = /^[0-9]{1,15}$/
const TOKEN = /^([0-9]{1,15})\.(.+)$/s
const NO_COUNTERS = { recovery: {}, outcome: {}, acknowledgement: {}, other: {} }

function toNode(queue: string, { id = '', rawname = '', addr }: Connected): DeliveryNode | null {
  const name = workerName(rawname)
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
 * The workers of the queues, queue by queue, those that connected first before the others. A store that does not tell of its
 * connections leaves a gap: one record of that queue counts as left out.
 */
export async function listNodes(
  links: readonly Link[],
  { limit, cursor }: PageQuery,
  ask: Ask,
): Promise<Page<DeliveryNode>> {
  const [, last = '0', name] = cursor === null ? [] : (TOKEN.exec(cursor) ?? [])
  let queue = cursor === null ? 0 : links.findIndex((link) => link.name === name)
  if (queue < 0) throw new Refusal('invalid_cursor')
  let after = Number(last)
  const items: DeliveryNode[] = []
  const most = examinable(ask)
  let [examined, omitted] = [0, 0]
  // A store tells of all its connections or of none: they are read once for a request, and count whosoever they are.
  const told: Told = { lists: new Map(), count: 0 }
  for (const begin = queue; queue < links.length; queue++, after = 0) {
    const link = links[queue] as Link
    if (queue > begin && seen() >= most) return on(link)
    const connected = await workersOf(link, told, ask)
    if (connected === null) omitted += 1
    for (const [id, client] of connected ?? []) {
      if (id <= after) continue
      if (items.length >= limit || examined >= most) return on(link)
      examined += 1
      after = id
      const node = toNode(link.name, client)
      if (node) items.push(node)
      else omitted += 1
    }
  }
  return { items, next_cursor: null, has_more: false, examined: seen(), ...omitting(omitted) }

  /** A page that goes on behind the last connection of this queue that was looked at; their numbers begin at 1. */
  function on({ name }: Link): Page<DeliveryNode> {
    return { items, next_cursor: `${after}.${name}`, has_more: true, examined: seen(), ...omitting(omitted) }
  }

  function seen(): number {
    return Math.min(most, Math.max(examined, told.count))
  }
}

/** The workers by the numbers of their connections, which only grow; `null` where the store does not tell. */
async function workersOf(link: Link, told: Told, ask: Ask): Promise<[id: number, client: Connected][] | null> {
  try {
    const connected = await link.workers(ask, told)
    // Where CLIENT is no command, BullMQ answers one entry that says so.
    if (connected.some(({ id }) => !CLIENT_ID.test(id ?? ''))) throw new Error('it has no CLIENT LIST')
    return connected.map((client): [number, Connected] => [Number(client.id), client]).sort(([a], [b]) => a - b)
  } catch (error) {
    if (error instanceof Refusal || ask.signal.aborted) throw error
    ask.onError?.(new Error(`the store of the queue ${link.name} does not tell of its connections`, { cause: error }))
    return null
  }
}
