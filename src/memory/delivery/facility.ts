/** The direct-mode command dispatcher: admits commands and delivers them to the connections of this process. */

import { createClock } from '../../async/clock.js'
import type { CommandDispatcher, DeliveryInspector } from '../../contract/delivery.js'
import { type DispatcherOptions, resolveDeliveryBounds } from '../../contract/delivery-rules.js'
import type { Inspected } from '../../contract/inspectors.js'
import { toJson } from '../../contract/json.js'
import { METADATA_BYTES } from '../../contract/limits.js'
import { resolveBounds } from '../../contract/options.js'
import { createDeliveryDrain } from './attempts.js'
import { createDispatch } from './calls.js'
import { createDeliveryStore, type DeliveryStore } from './commands.js'
import { createDeliveryInspector } from './inspector.js'
import { createDeliveryLoop, type DeliveryLoop } from './loop.js'

export interface CommandDispatcherOptions extends DispatcherOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
  /** Shown in the summary. @default null */
  deploymentId?: string | null
  /** Most bytes of the payloads of all commands that are not terminal. @default 268435456 */
  maxPayloadBytes?: number
}

// As many bytes as 4,096 payloads of the greatest size.
const PAYLOAD_BYTES = 268_435_456

/**
 * The dispatcher of one process, with its loop started; the loop keeps no process alive. Delivery is at least once to
 * the connection until the client acknowledges; a record stays for `retentionMs` after the command's end. When the clock
 * goes back, deadlines move with it; retries and retention do not.
 *
 * `reconcile()` does at once what the loop would do by now.
 *
 * @throws RangeError for a bound that is not a whole number from 1, and for a deadline over 24 h.
 * @example
 * const dispatcher = createCommandDispatcher()
 * await dispatcher.attach({ user_id: 'u', client_id: 'c', instance_id: 'i' }, (command) => socket.send(command))
 * await dispatcher.dispatch({ user_id: 'u', client_id: 'c', command_id: '1', action: 'refresh' })
 */
export function createCommandDispatcher(
  options: CommandDispatcherOptions = {},
): Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> } {
  return assembleDispatcher(options).dispatcher
}

/** The dispatcher together with the store beneath it, for tests that look whether anything is left behind. */
export function assembleDispatcher(options: CommandDispatcherOptions) {
  const { now = Date.now, nodeId = 'local', deploymentId = null, connections, metadata: said } = options
  const metadata = said && JSON.parse(toJson(said, METADATA_BYTES).text)
  const bounds = { ...resolveDeliveryBounds(options), ...resolveBounds(options, { maxPayloadBytes: PAYLOAD_BYTES }) }
  const { capacityOf, ackTimeoutMs, maxRetained, retentionMs } = bounds

  const clock = createClock(now)
  const store: DeliveryStore = createDeliveryStore({ capacity: capacityOf, maxRetained, retentionMs, clock })
  const nudge = (delayMs: number) => loop.nudge(delayMs)
  const drain = createDeliveryDrain({ store, clock, nodeId, ackTimeoutMs, connections, nudge })
  const loop: DeliveryLoop = createDeliveryLoop({ store, clock, drain })
  loop.start()
  const inspector = createDeliveryInspector({ store, clock, loop, nodeId, deploymentId, metadata })
  return { store, dispatcher: { ...createDispatch({ store, clock, drain, loop, connections, ...bounds }), inspector } }
}
