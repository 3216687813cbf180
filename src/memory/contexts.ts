/** The context registry of one process, and its inspector. */

import { ClientType } from '../internal/contract/connections.js'
import {
  CONTEXT_FAMILY,
  type Context,
  type ContextCounts,
  type ContextRegistry,
  type ContextRegistryInspector,
  isLost,
  PresenceOptions,
  type WindowCounts,
} from '../internal/contract/contexts.js'
import type { Inspected } from '../internal/contract/families.js'
import type { UserPart } from '../internal/contract/observation.js'
import { type Clocked, readOptions, withClock } from '../internal/contract/options.js'
import { scanLimit, withMetadata } from '../internal/contract/page.js'
import { contextRules } from '../internal/rules/presence.js'
import { countedBy } from './table/field-index.js'
import { createPresenceTable, LOST_OF } from './table/presence.js'

/** Options of `createContextRegistry`. */
export const ContextRegistryOptions = withClock(PresenceOptions)
/** Options of `createContextRegistry`. */
export interface ContextRegistryOptions extends PresenceOptions, Clocked {}

/** Returns the key of a user's window. It is unambiguous, because ids contain no line break. */
const windowKey = ({ user_id, window_id }: { user_id: string; window_id: string | null }) =>
  window_id === null ? null : `${user_id}\n${window_id}`

/** Returns the counts of one window: its workers that are neither closed nor stale, split into idle and busy. */
function countWindow(
  window_id: string,
  count: (filter: Readonly<Record<string, unknown>>) => ContextCounts | null,
): WindowCounts | null {
  const all = count({ ownership: 'worker' })?.by_status
  const free = all && count({ ownership: 'worker', assigned: false })?.by_status
  if (!free) return null
  const worker_count = all.active + all.idle
  return { window_id, worker_count, idle_count: free.idle, busy_count: worker_count - free.active - free.idle }
}

/**
 * Creates a context registry in memory. Closing a context on purpose releases its task. Staleness and expiry are
 * computed on access; there is no timer.
 *
 * @example
 * const contexts = createContextRegistry()
 * await contexts.report({ context_id: 't1', user_id: 'u', client_id: 'c', client_type: 'browser', status: 'idle' })
 */
export function createContextRegistry(
  options: ContextRegistryOptions = {},
): Inspected<ContextRegistry, ContextRegistryInspector> {
  const { now, ...bounds } = readOptions(ContextRegistryOptions, options)
  const presence = createPresenceTable<Context, ContextCounts>({
    ...bounds,
    now,
    fields: ['client_id', 'window_id', 'task_id'],
    derived: [
      { name: 'window', of: windowKey },
      { name: LOST_OF, of: (context) => (isLost(context) ? context.user_id : null) },
    ],
    dimensions: [
      ...countedBy(CONTEXT_FAMILY.counted),
      { name: 'assigned', values: [false, true], of: (context) => context.task_id !== null },
    ],
  })

  const inspector: ContextRegistryInspector = {
    version: presence.version,
    listContexts: (filter, page, ctx) => presence.list(filter, page, scanLimit(ctx)),
    getContext: (contextId) => presence.get(contextId)?.record ?? null,
    countContexts: (filter, ctx) => presence.count(filter, scanLimit(ctx)),
    countByWindow(windowIds, ctx, windows) {
      const { count, examined } = presence.counter(scanLimit(ctx))
      const counted = windowIds.map((window_id, i) => {
        const owned = windows?.[i]
        const window = owned ? { window: windowKey(owned) } : { window_id }
        return countWindow(window_id, (filter) => count({ ...window, ...filter }))
      })
      const counts = counted.filter((one) => one !== null)
      return withMetadata(counts, { examined: examined(), truncated: counts.length < counted.length })
    },
    listUserIds: (page, ctx) => presence.userIds(page, scanLimit(ctx)),
    observeUsers: (userIds, ctx) =>
      presence.observe(userIds, ctx, (user_id, counts): UserPart => {
        const [active, idle] = [counts('active'), counts('idle')]
        return {
          user_id,
          observed_client_types: ClientType.options.filter(
            (type) => active.by_client_type[type] + idle.by_client_type[type] > 0,
          ),
          observed_contexts: active.total + idle.total,
          contexts_by_status: counts().by_status,
        }
      }),
  }

  return { inspector, ...contextRules(presence) }
}
