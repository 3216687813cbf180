/** Attaches a connection to the mailbox of its client at this node, and replaces the one that was attached before. */
import { type ConnectionRegistry, Instance } from '../../contract/connections.js'
import type { CommandDispatcher } from '../../contract/delivery-dispatch.js'
import { requireIdentity } from '../../contract/delivery-rules.js'
import { parseInput } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import type { LocalWaiter, Mailboxes } from './mailboxes.js'
import { mailboxOf } from './record.js'

export interface AttachOptions {
  store: Store
  mailboxes: Mailboxes
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxWaiters: number
  maxWaitersPerUser: number
  isClosed: () => boolean
}

export function createAttach(options: AttachOptions): CommandDispatcher['attach'] {
  const { store, mailboxes, connections, maxWaiters, maxWaitersPerUser, isClosed } = options
  return async (given, deliver) => {
    if (isClosed()) throw new Refusal('closed')
    const instance = parseInput(Instance, given)
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
