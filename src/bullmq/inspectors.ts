/** Inspectors over BullMQ queues. */

import {
  boundsIn,
  checkOptions,
  defineBounds,
  FUNCTION,
  having,
  invalidOption,
  LIST,
  needed,
  orNull,
  resolveBounds,
  type Shape,
  shown,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/checks.js'
import type { DeliveryInspector } from '../contract/delivery.js'
import { checkId } from '../contract/ids.js'
import { listCommands, readStatus } from './commands.js'
import type { Identify } from './identity.js'
import { listNodes } from './nodes.js'
import { type BullmqQueue, createLink, QUEUE_METHODS, TIMEOUT_MS } from './queue.js'
import { listScopes, readScope, readSummary } from './scopes.js'

export interface BullmqOptions {
  /** The host's own queues, each name once; they stay the host's, and are never closed or written to. */
  queues: readonly BullmqQueue[]
  /** Returns the owner of a job, e.g. from its payload. @default unknown */
  identify?: Identify | undefined
  /** The deployment id in the summary. @default null */
  deploymentId?: string | null | undefined
  /** Time limit of one read from a queue's store in milliseconds, including connecting. @default 2000 */
  timeoutMs?: number | undefined
  /** Epoch milliseconds. @default Date.now */
  now?: (() => number) | undefined
}

const BOUNDS = defineBounds({ timeoutMs: [TIMEOUT_MS, TIMER_MAX_MS] })

const OPTIONS: Shape<BullmqOptions> = {
  ...boundsIn(BOUNDS),
  queues: needed(LIST),
  identify: FUNCTION,
  deploymentId: orNull(TEXT),
  now: FUNCTION,
}

const QUEUE = having(...QUEUE_METHODS)

function checkQueues(queues: readonly BullmqQueue[]): void {
  const names = new Set<string>()
  for (const [i, queue] of queues.entries()) {
    if (!QUEUE.test(queue) || typeof queue.name !== 'string')
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
 * @example const inspectors = createBullmqInspectors({ queues: [emails, reports] }) const router =
 * createDiagnosticsRouter({ inspectors, auth: resolveAdminAuth() })
 */
export function createBullmqInspectors(options: BullmqOptions): { delivery: DeliveryInspector } {
  checkOptions(options, OPTIONS)
  checkQueues(options.queues)
  const { timeoutMs } = resolveBounds(options, BOUNDS)
  const { identify, deploymentId = null, now = Date.now } = options
  const links = options.queues.map((queue) => createLink(queue, timeoutMs))
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
