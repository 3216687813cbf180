/** Drains the mailboxes at which connections wait: delivers their commands, a few at the same time. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { DeliveryAttempts } from './attempts.js'
import type { Mailbox, Waiter } from './command.js'
import type { DeliveryStore } from './commands.js'

/** Delay before the registry is queried again after it failed, in ms. */
const FENCE_RETRY_MS = 1_000

export interface MailboxesOptions {
  store: DeliveryStore
  attempts: DeliveryAttempts
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxDeliveriesPerClient: number
}

export type Mailboxes = ReturnType<typeof createMailboxes>

export function createMailboxes({ store, attempts, connections, maxDeliveriesPerClient }: MailboxesOptions) {
  /** Whether a command of `mailbox` can be delivered now. */
  const canHandOver = ({ waiter, handovers, ready }: Mailbox) =>
    waiter !== null && handovers.size < maxDeliveriesPerClient && ready.size > 0

  /**
   * Whether the waiter is the current instance of its client; `null` if that is unknown now. An outdated waiter is
   * released: its instance attaches again if it returns.
   */
  async function isCurrent(mailbox: Mailbox, waiter: Waiter): Promise<boolean | null> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(mailbox)
    } catch {
      store.count('other', 'fence_unavailable')
      const command = mailbox.ready.first()
      if (command) attempts.pause(command, FENCE_RETRY_MS)
      return null
    }
    if (mailbox.waiter !== waiter) return false
    if (current === waiter.instance_id) return true
    store.count('other', 'waiter_fenced')
    store.setWaiter(mailbox, null)
    return false
  }

  async function drain(mailbox: Mailbox) {
    while (canHandOver(mailbox)) {
      const waiter = mailbox.waiter as Waiter
      const isOurs = await isCurrent(mailbox, waiter)
      // One query for all waiting commands: the first one pauses, and triggers the next query when its pause is over.
      if (isOurs === null) break
      if (!isOurs) continue
      const command = mailbox.ready.first()
      // Read after the wait: the command or the waiter may have changed.
      if (!command || mailbox.waiter !== waiter || attempts.expire(command)) continue
      attempts.handOver(mailbox, command, waiter)
    }
    // In the same step as the last check of the mailbox; otherwise a kick in between would be lost.
    mailbox.draining = false
  }

  /** Schedules a drain of `mailbox`, soon but never within the caller's own step. */
  function kick(mailbox: Mailbox) {
    if (mailbox.draining || !canHandOver(mailbox)) return
    mailbox.draining = true
    queueMicrotask(() => drain(mailbox))
  }

  return { kick }
}
