/** The shared-store command dispatcher: admits commands on any node and delivers them from the one that has the client. */

import { unlessAborted } from '../../async/abort.js'
import { CLOSE_TIMEOUT_MS, type Ending, endWithin } from '../../async/ending.js'
import { Instance } from '../../contract/connections.js'
import type { CommandDispatcher, DeliveryInspector } from '../../contract/delivery.js'
import { type DispatcherOptions, requireIdentity, resolveDeliveryBounds } from '../../contract/delivery-rules.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { toJson } from '../../contract/json.js'
import { METADATA_BYTES } from '../../contract/limits.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { createStore, type Store, type StoreOptions } from '../store/store.js'
import { createDeliveryAttempts } from './attempts.js'
import { createDeliveryCalls } from './calls.js'
import { createDeliveryInspector } from './inspector.js'
import type { LegacyStream } from './legacy.js'
import { createDeliveryLoop, type DeliveryLoop, type Sweep } from './loop.js'
import { createMailboxes, type Mailboxes } from './mailboxes.js'
import { createDeliveryReport } from './node-report.js'
import { NODES } from './nodes.js'
import { createDeliveryRun } from './run.js'
import { createWaiters, type LocalWaiter } from './waiters.js'

/** What a dispatcher over a shared store takes beside its store. */
export interface RedisDispatcherOptions extends DispatcherOptions {
  /** An older command stream that the summary looks at and nobody touches. */
  legacy?: LegacyStream | undefined
}

export type RedisCommandDispatcherOptions = StoreOptions & RedisDispatcherOptions

/** A dispatcher; `reconcile()` does at once what the loop would do by now. */
export type RedisCommandDispatcher = Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> }

/**
 * One node's end of a deployment's dispatcher, with its loop started; the loop keeps no process alive. A command that
 * was admitted anywhere is delivered by the node at which its client waits, at least once, until it is acknowledged; when
 * that node dies, by the next one.
 *
 * It listens on the connection that all share who listen over the client, until `close()`. The node's own `inspector` shows the node as it is now.
 *
 * @throws RangeError for a bound that is not a whole number from 1, and for a `deadlineMs` of more than 24 h.
 * @example
 * const dispatcher = createRedisCommandDispatcher({ client, deploymentId: 'prod', connections })
 * await dispatcher.attach({ user_id: 'u', client_id: 'c', instance_id: 'i' }, (command) => socket.send(command))
 */
export function createRedisCommandDispatcher(options: RedisCommandDispatcherOptions): RedisCommandDispatcher {
  return commandDispatcherOn(createStore(options), options)
}

/** @param sweeps what other families have this node's loop take out. */
export function commandDispatcherOn(
  store: Store,
  options: RedisDispatcherOptions,
  sweeps: readonly Sweep[] = [],
): RedisCommandDispatcher {
  const { nodeId = crypto.randomUUID(), connections, legacy } = options
  const metadata = options.metadata && JSON.parse(toJson(options.metadata, METADATA_BYTES).text)
  const bounds = resolveDeliveryBounds(options)
  const { ackTimeoutMs, retentionMs, maxRetained } = bounds

  const boot = crypto.randomUUID()
  const onChange = () => report.changed()
  const delivery = createDeliveryRun({
    store,
    boot,
    retentionMs,
    maxRetained,
    ackTimeoutMs,
    onNotice: (notice, shard) => mailboxes.notice(notice, shard),
    onCount: onChange,
  })
  const attempts = createDeliveryAttempts(onChange)
  const nudge = (delayMs: number) => loop.nudge(delayMs)
  const onError = (error: unknown) => store.report(error)
  const waiters = createWaiters({ delivery, onChange, onError })
  const mailboxes: Mailboxes = createMailboxes({
    delivery,
    attempts,
    waiters,
    nodeId,
    ackTimeoutMs,
    connections,
    nudge,
    onError,
  })
  const onPass = () => void report.publish().catch(() => {})
  const loop: DeliveryLoop = createDeliveryLoop({ store, boot, delivery, mailboxes, waiters, attempts, sweeps, onPass })
  const state = () => ({
    is_listening: loop.isListening,
    passed_at: loop.passedAt,
    active_drainers: attempts.size,
    connection_waiters: waiters.size,
    counters: delivery.counters,
    ...(metadata && { metadata }),
  })
  const report = createDeliveryReport(store, nodeId, state)
  const inspector = createDeliveryInspector(store, legacy)
  const calls = createDeliveryCalls({
    store,
    delivery,
    connections,
    ...bounds,
    isClosed: () => loop.closed,
    nudge,
  })
  loop.start()

  async function attach(...[given, deliver]: Parameters<CommandDispatcher['attach']>) {
    if (loop.closed) throw new Refusal('closed')
    const instance = parseInput(Instance, given)
    requireIdentity(instance)
    if (typeof deliver !== 'function') throw new Refusal('invalid_input', 'deliver: must be a function')
    const shard = shardOf(instance.user_id, await store.claimShards())
    // In this order: an instance that takes over after the registry was asked gets a greater one.
    const order = await waiters.order(shard)
    const current = await connections?.currentInstance(instance)
    if (connections && current !== instance.instance_id) throw new Refusal('stale_instance')
    const isFull = waiters.size >= bounds.maxWaiters || waiters.of(instance.user_id) >= bounds.maxWaitersPerUser
    if (isFull && !waiters.find(instance)) throw new Refusal('capacity_exceeded')
    const waiter: LocalWaiter = {
      ...instance,
      token: crypto.randomUUID(),
      shard,
      order,
      deliver,
      claim: 0,
      isUnsure: false,
      isCalled: false,
      isDraining: false,
      letGo: null,
    }
    await waiters.attach(waiter, mailboxes.call)
    if (loop.closed) {
      await waiters.leave(waiter)
      throw new Refusal('closed')
    }
    return {
      async detach() {
        if (waiters.isHere(waiter)) await waiters.leave(waiter)
      },
    }
  }

  let closing: Promise<Ending> | undefined
  async function close(): Promise<Ending> {
    await loop.close()
    await endWithin([waiters.close(CLOSE_TIMEOUT_MS), report.close()], CLOSE_TIMEOUT_MS)
    return { cut: waiters.untold }
  }

  return {
    ...calls,
    attach,
    async reconcile() {
      await loop.reconcile()
      await report.publish()
    },
    inspector: {
      ...inspector,
      // What this node says of itself it knows better than its last report; to read it writes nothing.
      async listNodes(page, ask) {
        if (loop.closed) return inspector.listNodes(page, ask)
        await unlessAborted(report.first, ask.signal)
        const [now, nodes] = await Promise.all([store.time(ask), inspector.listNodes(page, ask)])
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
