/** The shared-store command dispatcher: admits commands on any node and delivers them from the node with the client. */
import { raceAbort } from '../../internal/async/abort.js'
import { CLOSE_TIMEOUT_MS, type CloseResult, endWithin } from '../../internal/async/deadline.js'
import { publishCommands } from '../../internal/contract/channels.js'
import { type ConnectionRegistry, readInstance } from '../../internal/contract/connections.js'
import type { DeliveryInspector } from '../../internal/contract/delivery.js'
import type { CommandDispatcher } from '../../internal/contract/delivery-dispatch.js'
import {
  DispatcherOptions,
  readDeliveryBounds,
  requireIdentity,
  withDeadline,
} from '../../internal/contract/delivery-rules.js'
import type { Inspected } from '../../internal/contract/families.js'
import { toJson } from '../../internal/contract/json.js'
import { METADATA_BYTES } from '../../internal/contract/limits.js'
import { defineOptions, type Input, optionsOf } from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { shardOf } from '../store/keys.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createAttempts } from './attempts.js'
import { createChurnWriter } from './churn.js'
import { createDispatch, createEnds } from './dispatch.js'
import { createHeartbeat } from './heartbeat.js'
import { createDeliveryInspector } from './inspector.js'
import { createDeliveryLoop, createShardStates, type Sweep } from './loop.js'
import { createMailboxes, type Mailboxes } from './mailboxes.js'
import { NODES } from './nodes.js'
import { mailboxOf, mailboxOfRef } from './record.js'
import { createDeliveryRun } from './run.js'
import { LegacyStream } from './summary.js'
import type { LocalWaiter } from './waiters.js'

// Attaches a connection to the mailbox of its client at this node, and replaces the one that was attached before.

interface AttachOptions {
  store: Store
  mailboxes: Mailboxes
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxWaiters: number
  maxWaitersPerUser: number
  isClosed: () => boolean
}

function createAttach(options: AttachOptions): CommandDispatcher['attach'] {
  const { store, mailboxes, connections, maxWaiters, maxWaitersPerUser, isClosed } = options
  return async (given, deliver) => {
    if (isClosed()) throw new Refusal('closed')
    const instance = readInstance(given)
    requireIdentity(instance)
    if (typeof deliver !== 'function') throw new Refusal('invalid_input', 'deliver: must be a function')
    const mailbox = mailboxOf(instance)
    const shard = shardOf(instance.user_id, await store.claimShards())
    // Take the order before asking the registry: an instance that takes over afterwards gets a greater order.
    const order = await mailboxes.order(shard)
    const current = await connections?.currentInstance(instance)
    if (connections && current !== instance.instance_id) throw new Refusal('stale_instance')
    const isFull = mailboxes.size >= maxWaiters || mailboxes.of(instance.user_id) >= maxWaitersPerUser
    if (isFull && !mailboxes.find(mailbox)) throw new Refusal('capacity_exceeded')
    const waiter: LocalWaiter = {
      ...instance,
      mailbox,
      shard,
      order,
      deliver,
      queue: [],
      open: new Set(),
      isPumping: false,
    }
    await mailboxes.attach(waiter)
    if (isClosed()) {
      await mailboxes.leave(waiter)
      throw new Refusal('closed')
    }
    return {
      async detach() {
        if (mailboxes.isWaiting(waiter)) await mailboxes.leave(waiter)
      },
    }
  }
}

/** Options of a dispatcher over a shared store, without the store. */
const OfLegacy = defineOptions({
  /** An older command stream whose backlog the summary reports. It is only read. */
  legacy: optionsOf<LegacyStream>(LegacyStream),
})
/** Options of the dispatcher in `createRedisFacilities`. */
export const RedisDispatcherOptions = defineOptions({ ...DispatcherOptions.shape, ...OfLegacy.shape })
export interface RedisDispatcherOptions extends DispatcherOptions, Input<typeof OfLegacy> {}

/** Options of `createRedisCommandDispatcher`. */
export type RedisCommandDispatcherOptions = StoreOptions & RedisDispatcherOptions

/** A dispatcher. `reconcile()` runs a pass of the loop at once. */
export type RedisCommandDispatcher = Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> }

/**
 * Creates the dispatcher of one node and starts its loop, which does not keep the process alive. Commands are admitted on any
 * node and delivered at least once, until acknowledged, by the node to which their client is attached. If that node dies, the
 * node to which the client attaches next continues.
 *
 * It subscribes over the listening connection that all facilities of the same client share, until `close()`. Its `inspector`
 * shows the live state of its own node.
 *
 * @throws RangeError for a limit that is not a whole number from 1, and for a `deadlineMs` of more than 24 h.
 * @example
 * const dispatcher = createRedisCommandDispatcher({ client, deploymentId: 'prod', connections })
 * await dispatcher.attach({ user_id: 'u', client_id: 'c', instance_id: 'i' }, (command) => socket.send(command))
 */
export function createRedisCommandDispatcher(options: RedisCommandDispatcherOptions): RedisCommandDispatcher {
  return publishCommands(commandDispatcherOn(createStore(options, inStore(RedisDispatcherOptions)), options))
}

/** @param sweeps Cleanup of other facilities, which the loop of this node runs. */
export function commandDispatcherOn(
  store: Store,
  options: RedisDispatcherOptions,
  sweeps: readonly Sweep[] = [],
): RedisCommandDispatcher {
  const { nodeId = crypto.randomUUID(), legacy } = options
  const connections = withDeadline(options.connections)
  const metadata = options.metadata && JSON.parse(toJson(options.metadata, METADATA_BYTES).text)
  const bounds = readDeliveryBounds(options)

  // An injected clock replaces that of the node, too.
  const clock = store.now ?? (() => performance.now())
  // The time of the store minus that of this node, as of the last reply. No attempt arrives before one.
  let storeAhead = 0
  const heartbeat = createHeartbeat(store, nodeId)
  const churn = createChurnWriter(store, nodeId)
  const onChange = heartbeat.changed
  const onError = (error: unknown) => store.onError(error)
  const stateOf = createShardStates()
  const delivery = createDeliveryRun({
    store,
    nodeId,
    ...bounds,
    incarnationIn: (shard) => stateOf(shard).incarnation,
    onTime(now) {
      storeAhead = now - clock()
      churn.at(now)
    },
    onCount(kind, name, times) {
      churn.count(kind, name, times)
      onChange()
    },
  })
  const attempts = createAttempts({
    clock,
    ackTimeoutMs: bounds.ackTimeoutMs,
    async conclude({ ref, delivery: number, shard }, outcome, ago) {
      const given = { ref, delivery: number, outcome, ago }
      const { answer } = await delivery.run('conclude', shard, given, mailboxOfRef(ref))
      return answer === 'pause'
    },
    async retry({ ref, delivery: number, shard }) {
      await delivery.run('retry', shard, { ref, delivery: number }, mailboxOfRef(ref))
    },
    onChange,
    onError,
  })
  const holdsLease = (shard: number) => clock() < stateOf(shard).holdsUntil
  const mailboxes = createMailboxes({
    ...bounds,
    delivery,
    attempts,
    connections,
    holdsLease,
    storeNow: () => clock() + storeAhead,
    onChange,
    onError,
  })
  delivery.connect(mailboxes)
  const onPass = () => {
    void heartbeat.publish().catch(() => {})
    void churn.publish()
  }
  const loop = createDeliveryLoop({ store, clock, delivery, attempts, mailboxes, sweeps, onPass, stateOf })
  const state = () => ({
    is_listening: loop.isListening,
    passed_at: loop.passedAt,
    active_drainers: mailboxes.clients,
    connection_waiters: mailboxes.size,
    counters: delivery.counters,
    latency: delivery.latency,
    ...(metadata && { metadata }),
  })
  heartbeat.start(state)
  const inspector = createDeliveryInspector(store, legacy, true)
  const parts = { ...bounds, store, delivery, mailboxes, connections, isClosed: () => loop.closed }
  loop.start()

  let closing: Promise<CloseResult> | undefined
  async function close(): Promise<CloseResult> {
    const reported = attempts.close()
    const counted = reported.then(() => churn.publish({ isForced: true }))
    await loop.close()
    await endWithin([counted, mailboxes.close(CLOSE_TIMEOUT_MS), heartbeat.close()], CLOSE_TIMEOUT_MS)
    return { aborted: mailboxes.undetached }
  }

  return {
    dispatch: createDispatch({ ...parts, nudge: loop.nudge }),
    ...createEnds(store, delivery, attempts, mailboxes, connections),
    attach: createAttach(parts),
    async reconcile() {
      await loop.reconcile()
      await Promise.all([heartbeat.publish(), churn.publish({ isForced: true })])
    },
    inspector: {
      ...inspector,
      // Replaces this node's last heartbeat by its live state. Reading doesn't write a heartbeat.
      async listNodes(page, ctx) {
        if (loop.closed) return inspector.listNodes(page, ctx)
        await raceAbort(heartbeat.first, ctx.signal)
        const [now, nodes] = await Promise.all([store.time(ctx), inspector.listNodes(page, ctx)])
        const own = NODES.read({ node_id: nodeId, updated_at: now, ...state() }, now)
        return { ...nodes, items: nodes.items.map((node) => (node.node_id === nodeId ? (own ?? node) : node)) }
      },
    },
    close: () => {
      closing ??= close()
      return closing
    },
  }
}
