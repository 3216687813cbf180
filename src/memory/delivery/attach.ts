/** Attaches a connection to the mailbox of its client, replacing the previous one. */
import type { Clock } from '../../async/timer.js'
import { type ConnectionRegistry, Instance } from '../../contract/connections.js'
import type { CommandDispatcher } from '../../contract/delivery-dispatch.js'
import { requireIdentity } from '../../contract/delivery-rules.js'
import { clientKey } from '../../contract/ids.js'
import { parseInput } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import type { DeliveryStore } from './commands.js'
import type { DeliveryLoop } from './loop.js'
import type { Mailboxes } from './mailboxes.js'

export interface AttachOptions {
  store: DeliveryStore
  clock: Clock
  mailboxes: Mailboxes
  loop: DeliveryLoop
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxWaiters: number
  maxWaitersPerUser: number
}

export function createAttach(options: AttachOptions): CommandDispatcher['attach'] {
  const { store, clock, mailboxes, loop, connections, maxWaiters, maxWaitersPerUser } = options
  let attaches = 0

  return async (given, deliver) => {
    if (loop.closed) throw new Refusal('closed')
    const sequence = ++attaches
    const instance = parseInput(Instance, given)
    requireIdentity(instance)
    if (typeof deliver !== 'function') throw new Refusal('invalid_input', 'deliver: must be a function')
    if (connections && (await connections.currentInstance(instance)) !== instance.instance_id)
      throw new Refusal('stale_instance')
    if (loop.closed) throw new Refusal('closed')
    const former = store.mailboxes.get(clientKey(instance))?.waiter
    // A later attach finished earlier: this one was replaced while it looked up the instance.
    if (former && former.sequence > sequence) {
      if (former.instance_id !== instance.instance_id) throw new Refusal('stale_instance')
      return { async detach() {} }
    }
    const isFull = store.totals.waiters >= maxWaiters || store.waitersOf.of(instance.user_id) >= maxWaitersPerUser
    if (!former && isFull) throw new Refusal('capacity_exceeded')
    const mailbox = store.openMailbox(instance.user_id, instance.client_id)
    const { instance_id } = instance
    const waiter = { instance_id, sequence, cell: 0, mailbox, attachedAt: clock.now(), deliver }
    store.setWaiter(mailbox, waiter)
    mailboxes.kick(mailbox)
    return {
      async detach() {
        if (mailbox.waiter === waiter) store.setWaiter(mailbox, null)
      },
    }
  }
}
