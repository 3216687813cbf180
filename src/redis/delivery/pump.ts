/** Delivers the commands of a waiter, as long as its client has a free slot. */
import type { ConnectionRegistry } from '../../internal/contract/connections.js'
import type { Command } from '../../internal/contract/delivery-dispatch.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { timestampOf } from '../table/rows.js'
import type { Attempts, Held } from './attempts.js'
import { keyOfRef } from './record.js'
import type { DeliveryRun } from './run.js'
import type { LocalWaiter, Waiters } from './waiters.js'

export interface PumpOptions {
  delivery: DeliveryRun
  attempts: Attempts
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxDeliveriesPerClient: number
  /** Returns whether the lease of this node in a shard certainly holds. */
  holdsLease: (shard: number) => boolean
  /** Returns the time of the store, which set the deadlines. */
  storeNow: () => number
  onError: (error: unknown) => void
}

/** @param leave Detaches a waiter. */
export function createPump(options: PumpOptions, waiters: Waiters, leave: (waiter: LocalWaiter) => Promise<void>) {
  const { delivery, attempts, connections, maxDeliveriesPerClient, holdsLease, storeNow, onError } = options
  /** Waiters whose delivery failed because the registry was unavailable. */
  const failed = new Set<LocalWaiter>()
  /** Number of waiters with a running `deliver`. */
  let clients = 0

  /** Returns whether the waiter is of the current instance of its client. Detaches it otherwise; the instance may attach again. */
  async function isCurrent(waiter: LocalWaiter): Promise<boolean> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(waiter)
    } catch (error) {
      delivery.count('other', 'fence_unavailable')
      throw error
    }
    if (current === waiter.instance_id || !waiters.has(waiter)) return waiters.has(waiter)
    delivery.count('other', 'waiter_fenced')
    await leave(waiter)
    return false
  }

  function begin(waiter: LocalWaiter, held: Held) {
    const { ref, action, trace, attempt, deadlineAt } = held
    const { user_id, client_id, command_id } = keyOfRef(ref)
    const payload = deepFreeze(JSON.parse(held.payload))
    const deadline_at = timestampOf(deadlineAt)
    const remaining_ms = Math.max(0, Math.round(deadlineAt - storeNow()))
    const key = { command_id, user_id, client_id }
    const plain: Command = { ...key, action, payload, attempt, deadline_at, remaining_ms }
    const command = Object.freeze(trace === '' ? plain : { ...plain, trace })
    if (waiter.open.size === 0) clients++
    waiter.open.add(held)
    held.onOver = () => {
      if (!waiter.open.delete(held)) return
      if (waiter.open.size === 0) clients--
      pump(waiter)
    }
    attempts.begin(held, (options) => waiter.deliver(command, options), {
      // The store may have more commands for the client, and gives none before it knows of a free slot.
      isFull: waiter.open.size + waiter.queue.length >= maxDeliveriesPerClient,
      onLate: () => delivery.count('other', 'late_outcome'),
    })
  }

  function beginAll(waiter: LocalWaiter) {
    while (waiter.queue.length > 0 && waiter.open.size < maxDeliveriesPerClient && waiters.has(waiter)) {
      const held = waiter.queue.shift()
      if (held?.phase === 'queued') begin(waiter, held)
    }
  }

  async function pumpCurrent(waiter: LocalWaiter) {
    waiter.isPumping = true
    try {
      while (waiter.queue.length > 0 && waiter.open.size < maxDeliveriesPerClient && waiters.has(waiter)) {
        if (!(await isCurrent(waiter))) return
        // The lease may have expired during the call of the registry.
        if (!holdsLease(waiter.shard)) return waiters.doubt(waiter)
        beginAll(waiter)
      }
    } catch (error) {
      if (waiters.has(waiter)) failed.add(waiter)
      onError(error)
    } finally {
      waiter.isPumping = false
    }
  }

  /** Delivers the commands in the queue, as long as the client has a free slot. */
  function pump(waiter: LocalWaiter) {
    if (waiter.isPumping || waiter.queue.length === 0 || !waiters.has(waiter)) return
    if (waiter.open.size >= maxDeliveriesPerClient) return
    // Without a lease, the store may have given these commands to another node.
    if (!holdsLease(waiter.shard)) waiters.doubt(waiter)
    else if (connections) void pumpCurrent(waiter)
    else beginAll(waiter)
  }

  return {
    pump,
    /** Number of clients with a running `deliver`. */
    get clients() {
      return clients
    },
    /** Delivers to the waiters for which the registry was unavailable. */
    retry() {
      const again = [...failed]
      failed.clear()
      for (const waiter of again) pump(waiter)
    },
  }
}
