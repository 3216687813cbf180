/** How the mailboxes at which connections wait are drained: the waiter is handed their commands, a few at once. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { DeliveryAttempts } from './attempts.js'
import type { Mailbox, Waiter } from './command.js'
import type { DeliveryStore } from './commands.js'

/** Pause before a registry that could not say who is current is asked again. */
const FENCE_RETRY_MS = 1_000

export interface MailboxesOptions {
  store: DeliveryStore
  attempts: DeliveryAttempts
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxDeliveriesPerClient: number
}

export type Mailboxes = ReturnType<typeof createMailboxes>

export function createMailboxes({ store, attempts, connections, maxDeliveriesPerClient }: MailboxesOptions) {
  /** Whether a command of `mailbox` can be handed over now. */
  const canHandOver = ({ waiter, handovers, ready }: Mailbox) =>
    waiter !== null && handovers.size < maxDeliveriesPerClient && ready.size > 0

  /**
   * Whether the waiter still speaks for its client; `null` where nobody says so now. A fenced one is released: its instance
   * attaches again if it returns.
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
      // One question for all that wait: the command that pauses is the first of them, and calls when it is over.
      if (isOurs === null) break
      if (!isOurs) continue
      const command = mailbox.ready.first()
      // Looked up after the wait: the command or the waiter may be gone by now.
      if (!command || mailbox.waiter !== waiter || attempts.expire(command)) continue
      attempts.handOver(mailbox, command, waiter)
    }
    // In the same step as the last look at the mailbox, or a kick in between would be lost.
    mailbox.draining = false
  }

  /** Sees to it that `mailbox` is drained, soon but never within the caller's own step. */
  function kick(mailbox: Mailbox) {
    if (mailbox.draining || !canHandOver(mailbox)) return
    mailbox.draining = true
    queueMicrotask(() => drain(mailbox))
  }

  return { kick }
}
