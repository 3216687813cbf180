/** The contexts family: execution sites (a browser tab, a console flow) and the tasks assigned to them. */
import * as z from 'zod'
import { answerOf } from './answer.js'
import { ClientType } from './connections.js'
import { type Family, foldUsers } from './family.js'
import { filterBy, Id, idField, lastAtOrBefore, SilentForMs, Timestamp } from './ids.js'
import { addNames, countOne, type FoldedPart, orUnknown, type UserIndex } from './observation.js'
import { count, defineOptions, duration, type Input, inputObject, share } from './options.js'
import type { Awaitable, Indexed, InspectionContext, Page, PageQuery } from './page.js'

/** Status of a context. */
export const ContextStatus = z
  .enum(['active', 'idle', 'closed', 'stale'])
  .describe(
    '`active` and `idle` are reported by the client; `stale`: not reported in time; `closed`: reported as closed.',
  )
export type ContextStatus = z.infer<typeof ContextStatus>

/** Why a context closed. */
export const ContextEndReason = z
  .enum(['closed', 'crashed', 'browser_disconnected'])
  .describe(
    '`closed`: on purpose; `crashed`: its page or process crashed; `browser_disconnected`: its browser ended or disconnected while it was open.',
  )
export type ContextEndReason = z.infer<typeof ContextEndReason>

/** Owner of a context or window: the user or a worker. */
export const Ownership = z.enum(['user-owned', 'worker']).describe('Whether the user or tasks use it.')
export type Ownership = z.infer<typeof Ownership>

/** An execution site in its current registry state; no history. */
export const Context = z
  .object({
    context_id: idField('context_id'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: z.string().nullable().describe('The instance that reported it last; `null` if not given.'),
    client_type: ClientType.describe('What kind of program its client is.'),
    status: ContextStatus.describe('Current status.'),
    status_reason: ContextEndReason.nullable().describe('Why it closed; `null` unless it is closed.'),
    ownership: Ownership.describe('Whether it serves its user, or tasks as a worker.'),
    window_id: z.string().nullable().describe('The browser window that holds it; `null` for none.'),
    task_id: z
      .string()
      .nullable()
      .describe(
        'The task assigned to it in this registry, which is no proof that a job system owns the task or that its effect completed. A crashed or disconnected context keeps it. `null` for none.',
      ),
    task_assigned_at: Timestamp.nullable().describe('When the task was assigned; `null` without one.'),
    created_at: Timestamp.describe('When it was first reported.'),
    updated_at: Timestamp.describe('When it was last reported or changed.'),
  })
  .describe('An execution context (a browser tab, a console flow) in its current state; no history.')
export type Context = z.infer<typeof Context>

/** `Context` as routes answer it. */
export const ContextAnswer = answerOf(Context, ['context_id', 'user_id', 'status'])
export type ContextAnswer = z.output<typeof ContextAnswer>
/** `Context` as an inspector returns it: a field that is absent is not known. */
export type ContextInput = z.input<typeof ContextAnswer>

/** Filters of `/contexts`. */
export const ContextFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  client_type: ClientType.optional().describe('Only of clients of this type.'),
  status: ContextStatus.optional().describe('Only with this status.'),
  status_reason: ContextEndReason.optional().describe('Only those that closed for this reason.'),
  ownership: Ownership.optional().describe('Only workers, or only user-owned contexts.'),
  window_id: filterBy('window_id'),
  task_id: filterBy('task_id'),
  updated_before: lastAtOrBefore,
})
export type ContextFilter = z.infer<typeof ContextFilter>

/** Query of `/contexts`: the filters, with `silent_for_ms` instead of a time. */
export const ContextQuery = ContextFilter.omit({ updated_before: true }).extend({ silent_for_ms: SilentForMs })

/** How many contexts there are, every enum value present. */
export interface ContextCounts extends Indexed {
  /** Number of contexts under the filter. */
  total: number
  /** Number of contexts of each status. */
  by_status: Record<ContextStatus, number>
  /** Number of contexts of each client type. */
  by_client_type: Record<ClientType, number> & { unknown?: number }
  /** Number of contexts of each ownership. */
  by_ownership: Record<Ownership, number> & { unknown?: number }
}

/**
 * The worker contexts of one window: `worker_count` counts those neither closed nor stale, `busy_count` those with a
 * task, `idle_count` idle ones without a task.
 */
export interface WindowCounts {
  /** Id of the browser window. */
  window_id: string
  /** Number of worker contexts in the window. */
  worker_count: number
  /** Number of idle worker contexts in the window. */
  idle_count: number
  /** Number of busy worker contexts in the window. */
  busy_count: number
}

/** A window and its user. */
export interface WindowKey {
  /** Id of the user. */
  user_id: string
  /** Id of the browser window. */
  window_id: string
}

/** Reads a context registry. */
export interface ContextRegistryInspector extends UserIndex {
  /** Lists retained contexts under `filter`, one page at a time. */
  listContexts(filter: ContextFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<ContextInput>>
  /** Returns a retained context, or `null` if it is unknown. */
  getContext(contextId: string, ctx: InspectionContext): Awaitable<ContextInput | null>
  /** Exact counts under `filter`, or `null` if no index covers it; the view then samples. */
  countContexts?(filter: ContextFilter, ctx: InspectionContext): Awaitable<Partial<ContextCounts> | null>
  /**
   * Exact counts of these windows (at most 500), in any order. `windows`, which the router always passes, are the same
   * windows with their users: a context counts only for a window of its own user, whichever client reported it, so that
   * an extension can report the window and each tab its context. Windows without workers may be omitted; if the result
   * is `truncated`, an omitted window was not reached.
   */
  countByWindow?(
    windowIds: readonly string[],
    ctx: InspectionContext,
    windows?: readonly WindowKey[],
  ): Awaitable<WindowCounts[] & Indexed>
}

/** A report of a client about one of its contexts. `stale` and `closed` are not reportable. */
export const ReportContextInput = inputObject({
  /** Id of the context, e.g. of a tab. */
  context_id: Id,
  /** Id of the user. */
  user_id: Id,
  /** Id of the client; unique among the clients of the user. */
  client_id: Id,
  /** Id of the client instance; `null` if unknown. @default null */
  instance_id: Id.nullable().default(null),
  /** Type of the client. */
  client_type: ClientType,
  /** Whether the context is in use. It ends with `close`. */
  status: z.enum(['active', 'idle']),
  /** Who opened the context. @default 'user-owned' */
  ownership: Ownership.default('user-owned'),
  /** Id of the browser window that contains it. @default null */
  window_id: Id.nullable().default(null),
})
export type ReportContextInput = z.input<typeof ReportContextInput>

/** How long a context is readable that crashed, or whose browser disconnected. */
export const LOST_MS = 3_600_000
/** Maximum number of these of one user; beyond it the one that was reported first leaves early. */
export const LOST_MAX = 100

/**
 * The live context registry. An entry not reported within its TTL is `stale`, and leaves after a second one; a closed
 * one leaves after one TTL, or after an hour if it did not close on purpose. Ids are unique per deployment.
 */
export interface ContextRegistry {
  /**
   * Inserts or updates; the times are the registry's. `ownership` and the task fields of a known entry stay.
   *
   * @throws Refusal `invalid_input`, `identity_conflict` (the id is another (user, client)'s), `capacity_exceeded`.
   */
  report(input: ReportContextInput): Promise<Context>
  /**
   * Closes the entry. One that closed on purpose loses its task; a crashed or disconnected one keeps it, and is readable
   * for an hour (the latest 100 of a user).
   *
   * @param reason Why it closed. @default 'closed'
   * @returns Whether the entry was there and not closed.
   * @throws Refusal `invalid_input` for an unknown reason.
   */
  close(contextId: string, reason?: ContextEndReason): Promise<boolean>
  /** The entry with the task, or `null` for an entry that is unknown, closed, no worker, or has another task. */
  assignTask(contextId: string, taskId: string): Promise<Context | null>
  /** The entry without its task, or `null` when it is unknown or has none; also of one that crashed with it. */
  releaseTask(contextId: string): Promise<Context | null>
}

/** What registries of contexts and of windows take. In a shared store a bound on all is that of one shard. */
export const PresenceOptions = defineOptions({
  /** Silence after which an entry is `stale`, and after as much again leaves; a closed one leaves after one, a crashed context after an hour. @default 90000 */
  // The same timeout as for connections: browsers run timers of a hidden tab once a minute.
  ttlMs: duration(90_000),
  /** Entries of any status; a new one beyond is refused with `capacity_exceeded`. @default 1000000 */
  maxEntries: count(1_000_000),
  /** Entries of one user, of any status. @default a tenth of `maxEntries`, at least 2 */
  maxEntriesPerUser: share('maxEntries'),
})
export interface PresenceOptions extends Input<typeof PresenceOptions> {}

/** Whether a context is live: neither stale nor closed. */
const isLiveContext = ({ status }: Pick<Context, 'status'>) => status === 'active' || status === 'idle'

/** Adds a context to its user's observation: client and status always, the rest while it is live. */
function foldContext(part: FoldedPart, entry: Pick<ContextAnswer, 'client_id' | 'client_type' | 'status'>): void {
  const isLive = isLiveContext(entry)
  part.observed_contexts = (part.observed_contexts ?? 0) + Number(isLive)
  part.contexts_by_status = countOne(part.contexts_by_status, ContextStatus.options, entry.status)
  addNames(part, 'observed_client_ids', [entry.client_id])
  addNames(part, 'observed_client_types', isLive ? [entry.client_type] : [])
}

/** How a record ended, if it has. */
export interface ClosedState {
  readonly status: string
  readonly status_reason?: string | null
}

/** Whether the record ended otherwise than on purpose. */
export const isLost = ({ status, status_reason = null }: ClosedState): boolean =>
  status === 'closed' && status_reason !== null && status_reason !== 'closed'

/** A window without workers. */
export const noWorkersIn = (window_id: string): WindowCounts => ({
  window_id,
  worker_count: 0,
  idle_count: 0,
  busy_count: 0,
})

/** Adds a context to the counts of its window, if it is a live worker. */
export function countWorker(
  counts: Omit<WindowCounts, 'window_id'>,
  context: Pick<ContextAnswer, 'ownership' | 'status' | 'task_id'>,
): void {
  if (context.ownership !== 'worker' || !isLiveContext(context)) return
  counts.worker_count++
  if (context.task_id !== null) counts.busy_count++
  else if (context.status === 'idle') counts.idle_count++
}

/** Contexts, for the table of families. */
export const CONTEXT_FAMILY = {
  facility: 'contexts',
  capability: 'context_registry',
  methods: { listContexts: true, getContext: true },
  operations: {},
  components: { Context: ContextAnswer, ContextEndReason, ContextStatus, Ownership } as Family['components'],
  counted: { status: ContextStatus, client_type: orUnknown(ClientType), ownership: orUnknown(Ownership) },
  users: foldUsers('listContexts', ContextAnswer, 'context_id', foldContext),
} as const satisfies Family<ContextRegistryInspector>
