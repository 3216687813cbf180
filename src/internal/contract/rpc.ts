/** The rpc family: calls that wait for their reply, and whether an instance is still the current one. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { answerOf, OmittedFields } from './answer.js'
import { COUNTED_ACTIONS_MAX, OTHER_ACTION } from './call-counts.js'
import type { ConnectionRegistry, Instance } from './connections.js'
import { type Family, foldUsers } from './family.js'
import { byTraceId, filterBy, Id, idField, SPAN_FILTERS, Timestamp, TRACE_FIELDS, Traceparent } from './ids.js'
import { LATENCY_BOUNDS_MS } from './latency.js'
import { addNames, type FoldedPart, type UserIndex } from './observation.js'
import {
  checkFields,
  count,
  defineOptions,
  func,
  type Input,
  inputObject,
  Signal,
  share,
  timer,
  withMethods,
} from './options.js'
import type { Awaitable, InspectionContext, Page, PageQuery } from './page.js'

/** Which side has to reply to a call. */
export const CallDirection = z
  .enum(['to_client', 'to_server'])
  .describe('`to_client`: the client has to reply; `to_server`: the client has called the server.')
export type CallDirection = z.infer<typeof CallDirection>

/** What the same connection has answered since a call was sent. */
export const AnsweredSince = z
  .enum(['none', 'earlier', 'later'])
  .describe(
    'What its connection has answered since it was sent, in the same direction: `none`; `earlier`: only calls that were sent before it; `later`: also a call that was sent after it.',
  )
export type AnsweredSince = z.infer<typeof AnsweredSince>

const ORIGIN_FIELDS = {
  direction: CallDirection,
  observed: z
    .boolean()
    .describe('Whether a follower saw it in the traffic of the host, which sent it; `false` for calls of `rpc.open`.'),
}

/** A call that has been opened and not settled. */
export const PendingCall = z
  .object({
    correlation_id: idField('correlation_id'),
    action: idField('action'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: z.string().nullable().describe('The instance that was called; `null` where any may reply.'),
    started_at: Timestamp.describe('When it was opened.'),
    deadline_at: Timestamp.nullable().describe('When it times out; `null` where it does not.'),
    age_ms: z.int().min(0).describe('How long it has waited, in milliseconds.'),
    overdue: z
      .boolean()
      .optional()
      .describe('Whether its deadline has passed without a recorded end; absent if unknown.'),
    ...ORIGIN_FIELDS,
    answered_since: AnsweredSince.optional().describe(
      `${AnsweredSince.description} Absent for a call of \`rpc.open\`.`,
    ),
    ...TRACE_FIELDS,
  })
  .describe(
    'A call that has been opened and not settled. An observed call is listed from one second after it was sent.',
  )
export type PendingCall = z.infer<typeof PendingCall>

/** `PendingCall` as routes answer it. */
export const PendingCallAnswer = answerOf(PendingCall, ['correlation_id', 'user_id', 'client_id'])
export type PendingCallAnswer = z.output<typeof PendingCallAnswer>
/** `PendingCall` as an inspector returns it: a field that is absent is not known. */
export type PendingCallInput = z.input<typeof PendingCallAnswer>

const ORIGIN_FILTER = {
  direction: CallDirection.optional().describe('Only calls in this direction.'),
  observed: z.boolean().optional().describe('Only observed calls (`true`), or only those of `rpc.open` (`false`).'),
}

/** Filters of `/rpc/pending`. */
export const PendingCallFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  action: filterBy('action'),
  trace_id: byTraceId,
  overdue: z.boolean().optional().describe('Only overdue calls (`true`), or only others (`false`).'),
  ...ORIGIN_FILTER,
})
export type PendingCallFilter = z.infer<typeof PendingCallFilter>

/** How a call ended. */
export const CallOutcomeName = z
  .enum(['succeeded', 'failed', 'timed_out', 'cancelled', 'unanswered'])
  .describe(
    '`succeeded`: with a result; `failed`: with an error reply; `timed_out`: by its deadline; `cancelled`: by its caller, or by closing the correlator; `unanswered`: observed, and its connection ended or it was not observed any longer before a reply came.',
  )
export type CallOutcomeName = z.infer<typeof CallOutcomeName>

/** A call that has ended. */
export const EndedCall = z
  .object({
    correlation_id: idField('correlation_id'),
    action: idField('action'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: z.string().nullable().describe('The instance that was called; `null` where any could reply.'),
    outcome: CallOutcomeName.describe('How it ended.'),
    started_at: Timestamp.describe('When it was opened.'),
    ended_at: Timestamp.describe('When it ended.'),
    duration_ms: z.int().min(0).describe('How long it took, in milliseconds.'),
    ...ORIGIN_FIELDS,
    connection_reason: z
      .string()
      .nullable()
      .optional()
      .describe('Why its connection ended, if that ended the call: `unanswered` by the end of its connection.'),
    ...TRACE_FIELDS,
  })
  .describe(
    'A call that has ended, kept for an hour at most. An observed call is kept if it took a second or did not succeed.',
  )
export type EndedCall = z.infer<typeof EndedCall>

/** `EndedCall` as routes answer it. */
export const EndedCallAnswer = answerOf(EndedCall, ['correlation_id', 'user_id', 'client_id'])
export type EndedCallAnswer = z.output<typeof EndedCallAnswer>
/** `EndedCall` as an inspector returns it: a field that is absent is not known. */
export type EndedCallInput = z.input<typeof EndedCallAnswer>

/** Filters of `/rpc/ended`. */
export const EndedCallFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  action: filterBy('action'),
  outcome: CallOutcomeName.optional().describe('Only calls that ended this way.'),
  trace_id: byTraceId,
  ...ORIGIN_FILTER,
  ...SPAN_FILTERS,
})
export type EndedCallFilter = z.infer<typeof EndedCallFilter>

/** How long ended calls are kept, in milliseconds. */
export const ENDED_CALL_KEPT_MS = 3_600_000
/** Maximum number of ended calls that are kept; in a shared store per shard. The oldest are deleted first. */
export const ENDED_CALLS_MAX = 10_000
/** Maximum number of ended calls that are kept of one user. */
export const ENDED_CALLS_PER_USER_MAX = 1_000

/** Whether an instance holds its (user, client) now, and which one does. */
export interface InstanceCheck {
  /** Whether the instance holds its client now. */
  current: boolean
  /** The instance that holds the client; `null` if it is not connected. */
  current_instance_id: string | null
}

const Count = z.int().min(0)

/** Counters of calls and replies. */
export const CallCounters = z
  .object({
    opened: Count.describe('Calls that were opened: those of `/rpc/pending` and those that ended.'),
    succeeded: Count.describe('Calls that ended with a result; the newest are `/rpc/ended?outcome=succeeded`.'),
    failed: Count.describe('Calls that ended with an error reply; the newest are `/rpc/ended?outcome=failed`.'),
    timed_out: Count.describe(
      'Calls that ended by their deadline, including those of a node that had died; the newest are `/rpc/ended?outcome=timed_out`.',
    ),
    cancelled: Count.describe(
      'Calls cancelled by their caller or by closing the correlator; the newest are `/rpc/ended?outcome=cancelled`.',
    ),
    unanswered: Count.describe(
      'Observed calls without a reply when their connection ended, or when they were not observed any longer; the newest are `/rpc/ended?outcome=unanswered`.',
    ),
    late: Count.describe(
      'Replies, not calls: to a call that was not pending, because it had ended (see `/rpc/ended/{correlation_id}`) or was never opened.',
    ),
    foreign: Count.describe(
      'Replies, not calls: from another client than the called one, which stays in `/rpc/pending`.',
    ),
  })
  .describe(
    'Counters of calls and replies since `counting_since`. Observed calls count if they took a second or did not succeed; `observed` counts all.',
  )
export type CallCounters = z.infer<typeof CallCounters>

/** Observed calls of one action in one direction. */
export const ObservedAction = z
  .object({
    action: z.string().describe(`Name of the action; \`${OTHER_ACTION}\` for all beyond ${COUNTED_ACTIONS_MAX}.`),
    direction: CallDirection.describe('Which side has to reply.'),
    succeeded: Count.describe('Calls that were answered with a result.'),
    failed: Count.describe('Calls that were answered with an error.'),
    cancelled: Count.describe('Calls that were cancelled by a message of their protocol.'),
    unanswered: Count.describe('Calls without a reply when they were not observed any longer.'),
    notifications: Count.describe('Messages that ask for no reply.'),
    counts: z
      .array(Count)
      .length(LATENCY_BOUNDS_MS.length + 1)
      .describe('Answered calls in each bucket of durations, in the order of `bounds_ms`, and one more for all above.'),
    sum_ms: Count.describe('Sum of the durations of answered calls, in ms.'),
  })
  .describe('Observed calls of one action in one direction.')
export type ObservedAction = z.infer<typeof ObservedAction>

/** All observed calls that have ended, by action. */
export const ObservedCalls = z
  .object({
    bounds_ms: z
      .array(z.int().min(1))
      .length(LATENCY_BOUNDS_MS.length)
      .describe('Upper bounds of the buckets of durations, inclusive, in ms.'),
    actions: z
      .array(ObservedAction)
      .max(2 * COUNTED_ACTIONS_MAX + 2)
      .describe(`By action and direction, sorted; ${COUNTED_ACTIONS_MAX} actions at most, then \`${OTHER_ACTION}\`.`),
    evicted: Count.describe('Calls that left as `unanswered` because too many were open at their connection or node.'),
    unrecorded: Count.describe(
      'Calls that are counted here and missing in `/rpc/ended`: too many ended in one second.',
    ),
  })
  .describe('All observed calls that have ended since `counting_since`, also those that are not listed.')
export type ObservedCalls = z.infer<typeof ObservedCalls>

/** Pending calls and counters, from one moment. */
export const RpcSummary = z
  .object({
    pending: Count.describe('Calls without a recorded end, overdue ones included: those of `/rpc/pending`.'),
    oldest_started_at: Timestamp.nullable().describe('When the oldest of them was opened; `null` if there is none.'),
    oldest_age_ms: Count.nullable().describe('How long it has waited, in ms; `null` if there is none.'),
    overdue: Count.describe('Those of `pending` whose deadline has passed: `/rpc/pending?overdue=true`.'),
    counters: CallCounters.describe('Counters of calls and replies.'),
    observed: ObservedCalls.nullable()
      .optional()
      .describe('All observed calls that have ended; `null` where none was observed.'),
    counting_since: Timestamp.nullable().describe('When the first was counted; `null` where none has been.'),
    observed_at: Timestamp.describe('When this was read.'),
  })
  .describe(
    'Pending calls and counters from one moment: `opened` is `succeeded + failed + timed_out + cancelled + unanswered + pending`.',
  )
export type RpcSummary = z.infer<typeof RpcSummary>

const CallCountersAnswer = answerOf(CallCounters, [])

/** `RpcSummary` as routes answer it. */
export const RpcSummaryAnswer = answerOf(RpcSummary, [], { counters: CallCountersAnswer })
  .extend({
    omitted: OmittedFields,
  })
  .describe(RpcSummary.description as string)
export type RpcSummaryAnswer = z.output<typeof RpcSummaryAnswer>
/** `RpcSummary` as an inspector returns it: a field that is absent is not known. */
export type RpcSummaryInput = Omit<z.input<typeof RpcSummaryAnswer>, 'omitted'>

/** Reads an RPC correlator. */
export interface RpcInspector extends UserIndex {
  /** Oldest first, unless the page has an order. */
  listPending(filter: PendingCallFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<PendingCallInput>>
  /** Returns a pending call, or `null` if it is unknown. */
  getPending(correlationId: string, ctx: InspectionContext): Awaitable<PendingCallInput | null>
  /** Newest end first, unless the page has an order. Advertised as the operation `rpc_ended`, and so is `getEnded`. */
  listEnded?(filter: EndedCallFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<EndedCallInput>>
  /** Returns an ended call, or `null` if it is unknown. */
  getEnded?(correlationId: string, ctx: InspectionContext): Awaitable<EndedCallInput | null>
  /** Mirrored by the capability `rpc_instance_check`. */
  checkInstance?(instance: Instance, ctx: InspectionContext): Awaitable<InstanceCheck>
  /** Advertised as the operation `rpc_summary`. */
  summary?(ctx: InspectionContext): Awaitable<RpcSummaryInput>
}

/** The input of `open`. Without `timeout_ms` the correlator's default applies. */
export const OpenCallInput = inputObject({
  /** Name of the action. */
  action: Id,
  /** Id of the user whose client is called. */
  user_id: Id,
  /** Id of the called client. */
  client_id: Id,
  /** Id of the called instance. @default any instance of the client */
  instance_id: Id.nullable().optional(),
  /**
   * Set it if the id must be the same wherever the call arrives; use at least 128 unguessable bits. While a call with
   * this id is pending another one is refused with `command_conflict`; over several shards only one of the same node,
   * or of a user of the same shard: there the caller must make it unique among all users.
   */
  correlation_id: Id.optional(),
  /** Timeout of the call, 1 to 86,400,000 ms. @default the timeout of the correlator */
  timeout_ms: z.int().min(1).max(86_400_000).optional(),
  /** W3C `traceparent` of the host's trace: lists show it and filter by its trace id. @default none */
  trace: Traceparent.optional(),
  /** Gives the call up. */
  signal: Signal.optional(),
})
export type OpenCallInput = z.input<typeof OpenCallInput>

/** Who sends a reply. */
export interface CallSender {
  /** Id of the user. */
  user_id: string
  /** Id of the client. */
  client_id: string
  /** Id of the instance, if known. */
  instance_id?: string
}

/** A reply. Given `from`, it must match the call: another client's reply is foreign and dropped. */
export type CallOutcome = ({ ok: true; result: unknown } | { ok: false; error: unknown }) & { from?: CallSender }

/** The same, for the documents and the names of its fields. */
export const SettleCallInput = inputObject({
  /** Whether the call succeeded. */
  ok: z.boolean(),
  /** The result of a call that succeeded. @default undefined */
  result: z.unknown().optional(),
  /** The error of a call that failed; the promise of the call rejects with it. @default undefined */
  error: z.unknown().optional(),
  /** Who sends the reply; it counts only from the called client. @default anyone */
  from: inputObject({
    /** Id of the user. */
    user_id: Id,
    /** Id of the client. */
    client_id: Id,
    /** Id of the instance, if known. @default any instance */
    instance_id: Id.optional(),
  }).optional(),
})
const OUTCOME_FIELDS = Object.keys(SettleCallInput.shape)
const SENDER_FIELDS = ['user_id', 'client_id', 'instance_id']

/**
 * Returns the sender of `outcome`: one passed separately counts like one in it, because an ignored sender would let a
 * forged reply in.
 *
 * @throws Refusal `invalid_input` for an invalid reply; the call stays pending.
 */
export function checkOutcome(outcome: CallOutcome, from?: CallSender): CallSender | undefined {
  if (typeof outcome?.ok !== 'boolean') throw new Refusal('invalid_input', 'outcome.ok: must be true or false')
  checkFields(outcome, OUTCOME_FIELDS, 'outcome.')
  const sender = outcome.from ?? from
  if (sender) checkFields(sender, SENDER_FIELDS, outcome.from ? 'outcome.from.' : 'from.')
  return sender
}

/** An open call: its id, at least 128 random bits, and the promise of its result. */
export interface OpenCall {
  /** Id of the call. */
  correlation_id: string
  /** Rejects with the reply's error, or with `Refusal` `timeout`, `cancelled` or `closed`. */
  result: Promise<unknown>
}

/** The live correlator of calls and replies. */
export interface RpcCorrelator {
  /**
   * Opens a call and returns its id, which the reply must name, and the promise of its result.
   *
   * @throws Refusal `invalid_input`, `capacity_exceeded` (too many calls pending), `command_conflict` (a call with the
   * given correlation id is pending).
   */
  open(input: OpenCallInput): Promise<OpenCall>
  /**
   * Settles the call. Late, duplicate and foreign replies are counted and dropped.
   *
   * @returns whether this was the one reply.
   * @throws Refusal `invalid_input` for an invalid reply.
   */
  settle(correlationId: string, outcome: CallOutcome, from?: CallSender): Promise<boolean>
  /**
   * Records calls that a follower has seen in the traffic of the host. They take at most half of `maxPending`, and of
   * `maxPendingPerUser`; `settle` does not end them.
   *
   * @returns the number of open calls that were not recorded because of that.
   * @throws Refusal `invalid_input`, `closed`.
   */
  observe(input: ObserveCallsInput): Promise<number>
}

const Millis = z.int().min(0)

/** The input of `observe`: what a follower has seen since its last report. */
export const ObserveCallsInput = inputObject({
  /** Id of the follower, unique. */
  observer: Id,
  /** Number of the report, from 1: one that arrives again is ignored. */
  sequence: z.int().min(1),
  /** Calls that are open or have ended, at most 500. An open one that is not reported again in time ends as `unanswered`. */
  calls: z
    .array(
      inputObject({
        /** Id of the call. */
        correlation_id: Id,
        /** Name of the action. */
        action: Id,
        /** Id of the user of the connection. */
        user_id: Id,
        /** Id of the client of the connection. */
        client_id: Id,
        /** Id of the instance of the connection. */
        instance_id: Id,
        /** Which side has to reply. */
        direction: CallDirection,
        /** How long ago it was sent, in milliseconds. */
        age_ms: Millis,
        /** What its connection has answered since. */
        answered_since: AnsweredSince,
        /** W3C `traceparent` of its request. @default none */
        trace: Traceparent.optional(),
        /** How it ended. @default it is open */
        end: inputObject({
          /** The outcome. */
          outcome: CallOutcomeName.exclude(['timed_out']),
          /** How long ago it ended, in milliseconds. */
          ago_ms: Millis,
          /** Why its connection ended, if that ended the call. */
          connection_reason: z.string().max(64).nullable(),
        }).optional(),
      }),
    )
    .max(500),
  /** Calls that ended since the last report, by action and direction. */
  actions: z.array(ObservedAction).max(2 * COUNTED_ACTIONS_MAX + 2),
  /** Calls that left early since the last report, because too many were open. */
  evicted: Count,
  /** Calls since the last report that are counted and not in `calls`. */
  unrecorded: Count,
})
export type ObserveCallsInput = z.input<typeof ObserveCallsInput>

/** How long an observed call stays pending after its last report, in milliseconds. */
export const OBSERVED_LEASE_MS = 60_000

/** What both correlators take. In a shared store a bound on all is that of one shard. */
export const RpcOptions = defineOptions({
  /** Creates correlation ids; a client that knows an id can settle the call. @default 128 random bits in hexadecimal */
  newId: func<() => string>().optional(),
  /** Maximum pending calls; another one is refused with `capacity_exceeded`. @default 100000 */
  maxPending: count(100_000),
  /** Maximum pending calls per user. @default a tenth of `maxPending` */
  maxPendingPerUser: share('maxPending'),
  /** Timeout of calls without `timeout_ms`, in milliseconds. @default 3600000 */
  defaultTimeoutMs: timer(3_600_000),
  /**
   * Used by the inspector to check whether an instance is the current one. @default none; over a shared store the
   * connection registry of the deployment
   */
  connections: withMethods<Pick<ConnectionRegistry, 'currentInstance'>>('currentInstance').optional(),
})
export interface RpcOptions extends Input<typeof RpcOptions> {}

/**
 * Counters of calls and replies of this correlator since it was created; the inspector's `summary` has those of the
 * deployment.
 */
export interface RpcCounters {
  /** Calls that ended with a reply. */
  settled: number
  /** Calls that ended at their deadline. */
  timed_out: number
  /** By their caller, or because this correlator was closed. */
  cancelled: number
  /** Replies to a call that is not pending: too late, a second time, or never opened. */
  late: number
  /** Replies from another client than the called one. */
  foreign: number
}

/** Whether a list under `filter` shows `call`. */
export function admitsCall(filter: PendingCallFilter, call: PendingCallInput): boolean {
  const { overdue = false, ...fields } = call
  const values = { ...fields, overdue }
  return Object.entries(filter).every(
    ([name, value]) => value === undefined || values[name as keyof PendingCallFilter] === value,
  )
}

/** Adds a pending call to its user's observation. */
export function foldCall(part: FoldedPart, entry: Pick<PendingCall, 'client_id'>): void {
  part.pending_rpc = (part.pending_rpc ?? 0) + 1
  addNames(part, 'observed_client_ids', [entry.client_id])
}

/** Calls, for the table of families. */
export const RPC_FAMILY = {
  facility: 'rpc',
  capability: 'rpc',
  methods: { listPending: true, getPending: true },
  operations: { rpc_instance_check: 'checkInstance' },
  listed: { rpc_summary: 'summary', rpc_ended: 'listEnded' },
  components: {
    CallCounters: CallCountersAnswer,
    CallDirection,
    CallOutcomeName,
    EndedCall: EndedCallAnswer,
    ObservedCalls,
    PendingCall: PendingCallAnswer,
    RpcSummary: RpcSummaryAnswer,
  } as Family['components'],
  users: foldUsers('listPending', PendingCallAnswer, 'correlation_id', foldCall),
} as const satisfies Family<RpcInspector>
