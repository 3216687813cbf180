/** One host node as a process of its own, for the fault campaign: does what its clients ask, and tells what it hands to them. */

import { ingestCooperativeSiteMessage } from '../../src/cooperative-site/index.js'
import type { Instance } from '../../src/internal/contract/connections.js'
import type { Site } from '../../src/internal/contract/sites.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createRedisEventBus, createRedisFacilities, type RedisClient } from '../../src/redis/index.js'
import type { Answer, Call, Failure } from './faults-history.js'
import { type NodePlan, type Order, TIGHT_SCOPE, type Word } from './faults-words.js'

/** Timeout for an acknowledgement: well below the length of the stops. */
const ACK_TIMEOUT_MS = 600
const COMMAND_TIMEOUT_MS = 1_000
/** Longer than any campaign: what leaves for its age would not be there for the last read. */
const KEPT_MS = 86_400_000
const KEPT_MAX = 1_000_000
/** Places of the scope that has few. */
const TIGHT_PLACES = 2

const HEARTBEAT_MS = 500

const plan = JSON.parse(process.argv[2] ?? '') as NodePlan

/** Resolves when the parent's side of the channel has it, whatever becomes of this process then. */
const say = (word: Word) =>
  new Promise<void>((resolve, reject) => {
    if (!process.send) return reject(new Error('no parent process to report to'))
    process.send(word, undefined, {}, (error) => (error ? reject(error) : resolve()))
  })

/** Of the two clients the one that is asked for: a process that is born often should not load both. */
async function connectStore(): Promise<RedisClient> {
  const host = '127.0.0.1'
  const [{ link: port }] = plan.servers as [NodePlan['servers'][number]]
  const isCluster = plan.servers.length > 1
  // What the servers of a Cluster say of each other leads past the link.
  const through = Object.fromEntries(plan.servers.map(({ port, link }) => [`${host}:${port}`, { host, port: link }]))
  if (plan.client === 'ioredis') {
    const { Cluster, Redis } = await import('ioredis')
    const retry = { retryStrategy: () => 50, maxRetriesPerRequest: null }
    const client = isCluster
      ? new Cluster(Object.values(through), { natMap: through, clusterRetryStrategy: () => 50 })
      : new Redis(port, host, retry)
    client.on('error', () => {})
    return client
  }
  const { createClient, createCluster } = await import('redis')
  const socket = { reconnectStrategy: 50 }
  const client = isCluster
    ? createCluster({
        rootNodes: Object.values(through).map((each) => ({ socket: { ...each, ...socket } })),
        defaults: { socket },
        nodeAddressMap: through,
      })
    : createClient({ url: `redis://${host}:${port}`, socket })
  client.on('error', () => {})
  client.connect().catch(() => {})
  return client as unknown as RedisClient
}

const place = {
  client: await connectStore(),
  deploymentId: plan.deploymentId,
  nodeId: plan.nodeId,
  shards: plan.shards,
  commandTimeoutMs: COMMAND_TIMEOUT_MS,
}
const { connections, dispatcher, ingest } = createRedisFacilities({
  ...place,
  connections: { heartbeatTimeoutMs: KEPT_MS },
  deduplicator: { ttlMs: KEPT_MS, capacity: KEPT_MAX },
  history: { maxMessages: KEPT_MAX, maxBytes: 2 ** 40, maxPerStream: KEPT_MAX },
  dispatcher: {
    ackTimeoutMs: ACK_TIMEOUT_MS,
    maxAttempts: 100,
    retentionMs: KEPT_MS,
    maxRetained: KEPT_MAX,
    capacity: (scope) => (scope === TIGHT_SCOPE ? TIGHT_PLACES : 1_000),
  },
})
const { nodeId: _, ...shared } = place
const bus = createRedisEventBus(shared)
const heard = new Set<string>()

/** Subscribes to a topic and pulls its events from now on. */
function listen(topic: string) {
  if (heard.has(topic)) return
  heard.add(topic)
  const subscription = bus.subscribe(topic, { wake: () => pull() })
  function pull() {
    for (let next = subscription.take(); next; next = subscription.take()) {
      const { epoch } = subscription.position
      if (next.type === 'gap') void say({ kind: 'gap', topic, last_seq: next.last_seq })
      else for (const { seq, event_id } of next.events) void say({ kind: 'heard', topic, epoch, seq, event_id })
    }
  }
  pull()
}

const siteOf = (site_id: string, owner: string): Site => ({
  site_id,
  owner,
  mode: 'observe',
  title: null,
  event_names: [],
  action_names: [],
  capability_profile: { action_invocation: false },
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
})

/** Connections by their ids. */
const held = new Map<string, Instance>()

// As hosts do: a connection that another one has superseded is closed, and its client told.
setInterval(() => {
  for (const [connection_id, instance] of held) {
    const heartbeat = async () => {
      if (await connections.heartbeat(connection_id)) return
      held.delete(connection_id)
      await say({ kind: 'superseded', ...instance })
    }
    heartbeat().catch(() => {})
  }
}, HEARTBEAT_MS).unref()

async function connect({ what: _, ...instance }: Extract<Call, { what: 'connect' }>): Promise<true> {
  const { connection_id } = await connections.connect({ ...instance, client_type: 'console' })
  held.set(connection_id, instance)
  try {
    await dispatcher.attach(instance, async ({ user_id, client_id, command_id, attempt, payload }) => {
      // Some meet a connection that breaks first.
      if (attempt === 1 && command_id.endsWith('7')) throw new Error('the connection broke')
      const { n } = payload as { n: number }
      await say({ kind: 'handed_over', user_id, client_id, command_id, attempt, n, instance_id: instance.instance_id })
    })
  } catch (error) {
    // The instance has taken over all the same.
    throw error instanceof Refusal ? new Refusal(error.code, error.detail, { outcome: 'unknown' }) : error
  }
  return true
}

async function take(call: Extract<Call, { what: 'ingest' }>) {
  const { user_id, client_id, instance_id, site_id, message_id, n } = call
  const sites = { get: async () => siteOf(site_id, user_id) }
  const stream = `sites/${site_id}/events`
  const message = {
    kind: 'event',
    payload: { name: 'changed', data: { n } },
    client_id,
    instance_id,
    message_id,
  } as const
  const answer = await ingestCooperativeSiteMessage(
    { ingest, sites, bus, projectionMs: 2 * COMMAND_TIMEOUT_MS },
    { host: { user_id }, message: { ...message, stream } },
  )
  return { duplicate: answer.duplicate, published: answer.published, reason: answer.not_published_reason }
}

async function obey(call: Call): Promise<Answer> {
  if (call.what === 'connect') return connect(call)
  if (call.what === 'ingest') return take(call)
  if (call.what === 'subscribe') {
    listen(call.topic)
    await bus.prepare(call.topic)
    // Report the events that have arrived before replying to this call.
    await new Promise(setImmediate)
    return true
  }
  if (call.what === 'dispatch') {
    const { what: _, n, ...command } = call
    const { admission, terminal } = await dispatcher.dispatch({ ...command, action: 'work', payload: { n } })
    return { admission: admission.state, terminal: terminal?.state ?? null }
  }
  const { what, ...word } = call
  if (what === 'cancel') return dispatcher.cancel(word)
  const { instance_id, ...rest } = word as Extract<Call, { what: 'settle' | 'acknowledge' }>
  if (call.what === 'acknowledge')
    return dispatcher.acknowledge({ ...rest, instance_id: call.instance_id, state: call.state })
  return dispatcher.settle({ ...rest, state: call.state, ...(instance_id !== null && { instance_id }) })
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof Refusal))
    return { type: 'error', message: String(error instanceof Error ? error.stack : error) }
  const { code, outcome } = error
  // Refusals other than those of the store are decided before anything runs.
  return {
    type: 'refused',
    code,
    outcome: outcome ?? (code === 'unavailable' || code === 'timeout' ? 'unknown' : 'not_run'),
  }
}

process.on('message', ({ op, call }: Order) => {
  obey(call)
    .then((answer) => say({ kind: 'ended', op, end: { type: 'ok', answer } }))
    .catch((error: unknown) => say({ kind: 'ended', op, end: failureOf(error) }))
    .catch(() => {})
})
// The campaign is over, or was interrupted.
process.on('disconnect', () => process.exit(0))
void say({ kind: 'ready' })
