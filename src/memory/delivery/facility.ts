/** The direct-mode command dispatcher: admits commands and delivers them to the connections of this process. */

import type { CloseResult } from '../../async/deadline.js'
import { createClock } from '../../async/timer.js'
import { publishCommands } from '../../contract/channels.js'
import type { DeliveryInspector } from '../../contract/delivery.js'
import type { CommandDispatcher } from '../../contract/delivery-dispatch.js'
import { DispatcherOptions, readDeliveryBounds, withDeadline } from '../../contract/delivery-rules.js'
import type { Inspected } from '../../contract/families.js'
import { toJson } from '../../contract/json.js'
import { METADATA_BYTES } from '../../contract/limits.js'
import { Clocked, count, defineOptions, type Input, readOptions, textOrNull } from '../../contract/options.js'
import { createAttach } from './attach.js'
import { createDeliveryAttempts } from './attempts.js'
import { createDeliveryCalls } from './calls.js'
import type { Mailbox } from './command.js'
import { createDeliveryStore, type DeliveryStore } from './commands.js'
import { createDeliveryInspector } from './inspector.js'
import { createDeliveryLoop, type DeliveryLoop } from './loop.js'
import { createMailboxes, type Mailboxes } from './mailboxes.js'

const OfProcess = defineOptions({
  /** Deployment id in the summary; `null` for none. @default null */
  deploymentId: textOrNull().default(null),
  // The size of 4,096 payloads of the maximum size.
  /** Maximum size of the payloads of all commands that are not terminal, in bytes. @default 268435456 */
  maxPayloadBytes: count(268_435_456),
})
/** Options of `createCommandDispatcher`. */
export const CommandDispatcherOptions = defineOptions({
  ...DispatcherOptions.shape,
  ...OfProcess.shape,
  ...Clocked.shape,
})
/** Options of `createCommandDispatcher`. */
export interface CommandDispatcherOptions extends DispatcherOptions, Input<typeof OfProcess>, Clocked {}

/**
 * Creates the dispatcher of one process and starts its loop, which does not keep the process alive. A command is
 * delivered at least once, until the client acknowledges it; its record is retained for `retentionMs` after its end. If
 * the clock is set back, deadlines move with it; retries and retention do not.
 *
 * `reconcile()` immediately does all work of the loop that is due.
 *
 * @throws RangeError for a limit that is not an integer of at least 1, and for a deadline over 24 h.
 * @example
 * const dispatcher = createCommandDispatcher()
 * await dispatcher.attach({ user_id: 'u', client_id: 'c', instance_id: 'i' }, (command) => socket.send(command))
 * await dispatcher.dispatch({ user_id: 'u', client_id: 'c', command_id: '1', action: 'refresh' })
 */
export function createCommandDispatcher(
  options: CommandDispatcherOptions = {},
): Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> } {
  return publishCommands(assembleDispatcher(options).dispatcher)
}

/** Creates the dispatcher with its store, for tests that check for leftovers. */
export function assembleDispatcher(options: CommandDispatcherOptions) {
  const read = readOptions(CommandDispatcherOptions, options)
  const { now, nodeId = 'local', deploymentId, metadata: given } = read
  const connections = withDeadline(read.connections)
  const metadata = given && JSON.parse(toJson(given, METADATA_BYTES).text)
  const bounds = { ...read, ...readDeliveryBounds(read) }
  const { capacityOf, ackTimeoutMs, maxRetained, retentionMs, maxDeliveriesPerClient } = bounds

  const clock = createClock(now)
  const store: DeliveryStore = createDeliveryStore({ capacity: capacityOf, maxRetained, retentionMs, clock })
  const nudge = (delayMs: number) => loop.nudge(delayMs)
  const kick = (mailbox: Mailbox) => mailboxes.kick(mailbox)
  const attempts = createDeliveryAttempts({ store, clock, nodeId, ackTimeoutMs, nudge, kick })
  const mailboxes: Mailboxes = createMailboxes({ store, attempts, connections, maxDeliveriesPerClient })
  const loop: DeliveryLoop = createDeliveryLoop({ store, clock, attempts })
  loop.start()
  const parts = { store, clock, attempts, mailboxes, loop, connections, ...bounds }
  const { reconcile } = loop

  async function close(): Promise<CloseResult> {
    loop.close()
    for (const mailbox of [...store.mailboxes.values()]) if (mailbox.waiter) store.setWaiter(mailbox, null)
    return { aborted: 0 }
  }

  const inspector = createDeliveryInspector({ store, clock, loop, nodeId, deploymentId, metadata })
  return {
    store,
    dispatcher: { ...createDeliveryCalls(parts), attach: createAttach(parts), reconcile, close, inspector },
  }
}
