/** Inspectors over BullMQ queues. */

import { invalidOption, shown } from '../contract/checks.js'
import type { DeliveryInspector } from '../contract/delivery.js'
import { checkId } from '../contract/ids.js'
import {
  defineOptions,
  func,
  type Input,
  list,
  readOptions,
  textOrNull,
  timer,
  withMethods,
} from '../contract/options.js'
import { listCommands, readStatus } from './commands.js'
import type { Identify } from './identity.js'
import { listNodes } from './nodes.js'
import { type BullmqQueue, createLink, QUEUE_METHODS, TIMEOUT_MS } from './queue.js'
import { listScopes, readScope, readSummary } from './scopes.js'

/** Options of `bullmqInspectors`. */
export const BullmqOptions = defineOptions({
  /** Your queues, each name once. They are never closed or written to. */
  queues: list<readonly BullmqQueue[]>(),
  /** Returns the user and client of a job, for example from its data. @default unknown */
  identify: func<Identify>().optional(),
  /** Deployment id in the delivery summary. @default null */
  deploymentId: textOrNull().default(null),
  /** Timeout in ms of one call to a queue's Redis, connecting included. @default 2000 */
  timeoutMs: timer(TIMEOUT_MS),
  /** Returns the time in epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface BullmqOptions extends Input<typeof BullmqOptions> {}

const QUEUE = withMethods(...QUEUE_METHODS)

function checkQueues(queues: readonly BullmqQueue[]): void {
  const names = new Set<string>()
  for (const [i, queue] of queues.entries()) {
    if (!QUEUE.safeParse(queue).success || typeof queue.name !== 'string')
      throw new TypeError(invalidOption(`queues.${i}`, 'a Queue of bullmq 5 or 6', queue))
    const reason = checkId(queue.name)
    if (reason) throw new TypeError(`Invalid option "queues.${i}": the queue name ${reason}`)
    if (names.has(queue.name))
      throw new TypeError(`Invalid option "queues.${i}": another queue has the name ${shown(queue.name)}`)
    names.add(queue.name)
  }
}

/**
 * Creates inspectors over queues of BullMQ 5 and 6: jobs are commands, queues are scopes, workers are nodes. They only
 * call public getters, for a bounded part each time, and never add, move or remove a job. Facts that BullMQ does not
 * have are `null`.
 *
 * @returns `delivery` only: the store does not record who waits for the result of a job.
 * @throws TypeError or RangeError that names the option.
 *
 * @example
 * const inspectors = createBullmqInspectors({ queues: [emails, reports] })
 * const router = createDiagnosticsRouter({ inspectors, auth: resolveAdminAuth() })
 */
export function createBullmqInspectors(options: BullmqOptions): { delivery: DeliveryInspector } {
  const { queues: given, identify, deploymentId, timeoutMs, now } = readOptions(BullmqOptions, options)
  checkQueues(given)
  const links = given.map((queue) => createLink(queue, timeoutMs))
  const queues = { links, identify }
  return {
    delivery: {
      ping: (ctx) => Promise.all(links.map(({ name }) => readScope(links, name, ctx))),
      summary: (ctx) => readSummary(links, deploymentId, ctx, now),
      listNodes: (page, ctx) => listNodes(links, page, ctx),
      listTenants: (page, ctx) => listScopes(links, page, ctx),
      getTenant: (scopeId, ctx) => readScope(links, scopeId, ctx),
      status: (key, ctx) => readStatus(queues, key, ctx),
      listCommands: (filter, page, ctx) => listCommands(queues, filter, page, ctx, now),
    },
  }
}
