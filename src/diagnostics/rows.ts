/** The menu: every route of the diagnostics router, in the order in which the index lists them. */
import type { RouterLimits } from '../contract/limits.js'
import { browserWindowRows } from './browser-windows.js'
import { connectionRows } from './connections.js'
import { contextRows } from './contexts.js'
import { deduplicatorRows } from './deduplicator.js'
import { deliveryRows } from './delivery.js'
import { historyRows } from './history.js'
import type { DiagnosticsRow } from './row.js'
import { rpcRows } from './rpc.js'
import { serviceRows } from './service.js'
import { actionRows, userRows } from './users.js'
import { workerRows } from './workers.js'

/** All rows; the service's own are answered by `service`. A literal path stands before a parameter in its place. */
export function createRows(limits: RouterLimits, service: Parameters<typeof serviceRows>[0]): DiagnosticsRow[] {
  return [
    ...serviceRows(service),
    ...userRows(limits),
    ...actionRows(limits),
    ...connectionRows(limits),
    ...historyRows(limits),
    ...rpcRows(limits),
    ...deduplicatorRows(),
    ...contextRows(limits),
    ...workerRows(limits),
    ...browserWindowRows(limits),
    ...deliveryRows(limits),
  ]
}
