/** Rules shared by all dispatchers: addressing, timeouts and staleness. */
import { DEADLINE_MS, withTimeout } from '../async/deadline.js'
import { Refusal } from '../refusal.js'
import type { ConnectionRegistry } from './connections.js'
import {
  ATTEMPTS_KEPT,
  type Attempt,
  type CommandFilter,
  type CommandKey,
  type DeliveryCommand,
  type DeliveryCommandInput,
  type DeliveryInspector,
  type DeliveryStatusInput,
  LATENCY_STEPS,
  type Latency,
  type LatencyHistograms,
  type LatencyStep,
  NO_REASON,
  TerminalState,
  type WaitsFor,
} from './delivery.js'
import { DEADLINE_MAX_MS } from './delivery-dispatch.js'
import { checkSegment } from './ids.js'
import type { JsonObject } from './json.js'
import { bucketOf, emptyBuckets, LATENCY_BOUNDS_MS } from './latency.js'
import {
  count,
  custom,
  defineOptions,
  duration,
  type Input,
  object,
  readParts,
  text,
  timer,
  whole,
  withMethods,
} from './options.js'
import { type InspectionContext, matcherOf } from './page.js'

/** @throws Refusal `invalid_identity` for ids that no command can have, because they are not one path segment. */
export function requireIdentity(ids: { client_id: string; command_id?: string }): void {
  for (const name of ['client_id', 'command_id'] as const) {
    const reason = checkSegment(ids[name] ?? '')
    if (reason) throw new Refusal('invalid_identity', `${name}: ${reason}, without "/"`)
  }
}

type CurrentInstances = Pick<ConnectionRegistry, 'currentInstance'>

/** Adds a time limit to `registry`: a lookup without a response would block a mailbox indefinitely. */
export function withDeadline(registry: CurrentInstances | undefined): CurrentInstances | undefined {
  if (!registry) return undefined
  const limit = { ms: DEADLINE_MS, code: 'unavailable' } as const
  return {
    currentInstance: ({ user_id, client_id }) =>
      withTimeout(() => registry.currentInstance({ user_id, client_id }), limit),
  }
}

/** Returns `delivery` with this deployment id in a summary without one, so that responses are consistent. */
export function withDeployment(delivery: DeliveryInspector, deployment_id: string | null): DeliveryInspector {
  if (deployment_id === null) return delivery
  const summary = async (ctx: InspectionContext) => {
    const read = await delivery.summary(ctx)
    return { ...read, deployment_id: read?.deployment_id ?? deployment_id }
  }
  // All other members are forwarded: a custom inspector may be an instance of a class.
  return new Proxy(delivery, {
    get(target, name) {
      if (name === 'summary') return summary
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Facts about a command outside its record: its delivery step, and whether its client is attached. */
export interface DeliveryStep {
  /** `ready` for an attempt, `attempted`, or in a pause before the next attempt; `null` if only the record is known. */
  step: 'ready' | 'attempted' | 'pause' | null
  /** Whether a connection of its client is attached to the mailbox; `null` if unknown. */
  isAttached: boolean | null
}

/** What an unfinished command waits for. */
function waitsFor({ acknowledgement, attempts }: DeliveryStatusInput, { step, isAttached }: DeliveryStep): WaitsFor {
  if ((acknowledgement?.state ?? 'none') !== 'none') return 'outcome'
  if (step === 'pause') return 'retry_pause'
  if (step === 'ready') return isAttached === null ? 'unknown' : isAttached ? 'turn' : 'client_not_attached'
  const { count, last_outcome } = attempts ?? {}
  if (count && last_outcome === null) return 'delivery'
  return last_outcome === 'handed_over' ? 'acknowledgement' : 'unknown'
}

const NO_STEP: DeliveryStep = { step: null, isAttached: null }

/** `status` in the list of commands. */
export function toDeliveryCommand<Status extends DeliveryStatusInput>(
  status: Status,
  action: string | null,
  step: DeliveryStep = NO_STEP,
): Status & Pick<DeliveryCommand, 'state' | 'waits_for' | 'action'> {
  const { terminal, overdue, acknowledgement, attempts } = status
  const isTaken = (acknowledgement?.state ?? 'none') !== 'none'
  const open = isTaken ? 'acknowledged' : attempts?.count ? 'attempted' : 'waiting'
  const waits_for = terminal ? null : overdue ? 'expiry' : waitsFor(status, step)
  return { ...status, state: terminal?.state ?? open, waits_for, action }
}

/** Whether `filter` admits `command`. */
export function admitsCommand(filter: CommandFilter, command: DeliveryCommandInput): boolean {
  if (Object.values(filter).every((value) => value === undefined)) return true
  const { overdue, user_id, client_id, command_id, admission, action, trace_id, terminal } = command
  const ids = { user_id, client_id, command_id, scope_id: admission?.scope_id, action, trace_id }
  const state = filter.state === 'open' && !terminal ? 'open' : command.state
  const reason = terminal && (terminal.reason ?? NO_REASON)
  return matcherOf(filter)({ ...ids, state, overdue, reason, admission, terminal })
}

/** Addresses an id that is not known. */
const UNKNOWN_ID = '-'

/** The key for reading this command's status; its scope replaces an unknown user or client. */
export function addressOf(command: DeliveryStatusInput): CommandKey {
  const { user_id, client_id, command_id, admission } = command
  const scope = admission?.scope_id ?? UNKNOWN_ID
  return { user_id: user_id ?? scope, client_id: client_id ?? scope, command_id }
}

/** The attempts that a record shows one by one, of `kept`, the latest of `count`, oldest first. */
export function shownAttempts(kept: readonly Attempt[], count: number): { items: Attempt[]; omitted: number } {
  const items = kept.slice(-Math.min(ATTEMPTS_KEPT, count))
  return { items, omitted: count - items.length }
}

/** How long each step of a command took, in ms; `undefined` for a step that it did not make. */
export type StepTimes = { readonly [Step in LatencyStep]?: number | undefined }

/** When the steps of a command were made, in epoch ms; `null` for a step that was not made. */
export interface StepInstants {
  readonly admitted: number | null
  readonly handedOver: number | null
  readonly acknowledged: number | null
  readonly ended: number | null
}

const msBetween = (from: number | null, to: number | null) =>
  from !== null && to !== null && Number.isFinite(to - from) ? Math.max(0, Math.round(to - from)) : undefined

/** The times between the steps of a command. A clock that went back counts as no time. */
export function stepTimes({ admitted, handedOver, acknowledged, ended }: StepInstants): StepTimes {
  return {
    handover: msBetween(admitted, handedOver),
    acknowledgement: msBetween(handedOver, acknowledged),
    outcome: msBetween(acknowledged, ended),
    total: msBetween(admitted, ended),
  }
}

const instantOf = (text: string | null | undefined) => (text ? Date.parse(text) : null)

/** The times of one ended command, by its record. */
export const stepTimesOf = ({ admission, attempts, acknowledgement, terminal }: DeliveryStatusInput): StepTimes =>
  stepTimes({
    admitted: instantOf(admission?.at),
    handedOver: instantOf(attempts?.handed_over_at),
    acknowledged: instantOf(acknowledgement?.at),
    ended: instantOf(terminal?.at),
  })

/** The times of one ended command as scripts report them: its instants in epoch ms, `''` for a step not made. */
export function reportedTimes(texts: readonly string[]): StepTimes {
  const [admitted = null, handedOver = null, acknowledged = null, ended = null] = texts.map((text) =>
    text === '' ? null : Number(text),
  )
  return stepTimes({ admitted, handedOver, acknowledged, ended })
}

/** The smallest of the sorted `times` that at least `share` of them do not exceed. */
const quantile = (times: readonly number[], share: number): number | null =>
  times[Math.max(0, Math.ceil(times.length * share) - 1)] ?? null

/** The latencies of a sample of commands. */
export function latencyOf(sample: readonly StepTimes[]): Latency {
  const quantiles = LATENCY_STEPS.map((step) => {
    const times = sample.flatMap((one) => one[step] ?? []).sort((a, b) => a - b)
    const [p50_ms, p95_ms, p99_ms] = [0.5, 0.95, 0.99].map((share) => quantile(times, share)) as [
      number | null,
      number | null,
      number | null,
    ]
    return [step, { p50_ms, p95_ms, p99_ms, sample_size: times.length }]
  })
  return Object.fromEntries(quantiles) as Latency
}

/** A count of 0 for each way a command can end. */
export const noEnds = () =>
  Object.fromEntries(TerminalState.options.map((state) => [state, 0])) as Record<TerminalState, number>

/** Histograms without a measured time. */
export function emptyHistograms(): LatencyHistograms {
  const steps = LATENCY_STEPS.map((step) => [step, { counts: emptyBuckets(), sum_ms: 0 }])
  return { bounds_ms: [...LATENCY_BOUNDS_MS], ...Object.fromEntries(steps) } as LatencyHistograms
}

/** Adds the times of a command that ended, or of several with equal times. */
export function measure(histograms: LatencyHistograms, times: StepTimes, commands = 1): void {
  for (const step of LATENCY_STEPS) {
    const ms = times[step]
    if (ms === undefined) continue
    const { counts } = histograms[step]
    const bucket = bucketOf(ms)
    counts[bucket] = (counts[bucket] as number) + commands
    histograms[step].sum_ms += ms * commands
  }
}

/** Converts a capacity returned by a host's function to whole commands. An invalid value is 0. */
function toCapacity(value: unknown): number {
  return typeof value === 'number' && !Number.isNaN(value) ? Math.floor(value) : 0
}

/** A capacity as it is shown: `null` without a bound. */
export function shownCapacity(capacity: number): number | null {
  const whole = Math.max(0, Math.floor(capacity))
  return whole < Number.MAX_SAFE_INTEGER ? whole : null
}

/** First pause before another attempt, doubled each time: five attempts of 5 s and their pauses end within 30 s. */
const BACKOFF_MS = 200
/** Longest pause between two attempts: a client that comes back is served within it. */
const BACKOFF_MAX_MS = 5_000

/** The pause after the attempt numbered `attempts`, from 1. */
export const backoffMs = (attempts: number) => Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (attempts - 1))

/** Longest sleep of a reconciliation loop: its sign of life. */
export const HEARTBEAT_MS = 1_000
/** A loop without a pass for this long is not alive: five times its longest sleep. */
export const STALE_MS = 5_000
/** Commands that the oldest queued age is sampled from. */
export const AGE_SAMPLE = 100

const isCapacity = (value: unknown) => typeof value === 'function' || whole().safeParse(value).success

/** What both dispatchers take. Bounds are whole numbers from 1; in a shared store they are those of one shard or node. */
export const DispatcherOptions = defineOptions({
  /** Name of this node in the records, unique in a deployment. @default 'local', over a shared store random */
  nodeId: text().optional(),
  /** Who is current. Without it the instance that attached last is. */
  connections: withMethods<Pick<ConnectionRegistry, 'currentInstance'>>('currentInstance').optional(),
  /** Timeout for `deliver()`, then again for the acknowledgement, in milliseconds. @default 5000 */
  ackTimeoutMs: timer(5_000),
  /** Attempts of a command that names none. @default 5 */
  maxAttempts: count(5),
  /** Time to the terminal state of a command that names none, at most 24 h. @default 30000 */
  deadlineMs: duration(30_000, DEADLINE_MAX_MS),
  /** Most commands of one scope that are not terminal. @default 1000 */
  capacity: custom<number | ((scope_id: string) => number)>('an integer from 1, or a function', isCapacity).default(
    1_000,
  ),
  /** Most commands in all that are not terminal. @default 100000 */
  // About 1 KiB each without payloads, 1.5 KiB in a shared store: fits in a 0.5 GB process.
  maxTracked: count(100_000),
  /** Maximum unfinished commands per user, in all scopes. @default 10000 */
  maxTrackedPerUser: count(10_000),
  /** Maximum consumers attached at this node. @default 100000 */
  maxWaiters: count(100_000),
  /** Maximum attached consumers per user. @default 10000 */
  maxWaitersPerUser: count(10_000),
  /**
   * Maximum concurrent `deliver` calls per client; its other commands wait. A call that timed out does not count. With
   * 1, commands are delivered one after another. @default 8
   */
  maxDeliveriesPerClient: count(8),
  /** How long an ended record is retained, in milliseconds; in a store up to a second longer. @default 3600000 */
  retentionMs: duration(3_600_000),
  /** Maximum ended records retained, and as many records of rejected admissions. @default 50000 */
  // 14 commands a second for the whole hour.
  maxRetained: count(50_000),
  /** Metadata of this node for the list of nodes: JSON of at most 4 KiB. */
  metadata: object<JsonObject>().optional(),
})
export interface DispatcherOptions extends Input<typeof DispatcherOptions> {}

/** The bounds of a dispatcher, each as `given` sets it, and the capacity of a scope. */
export function readDeliveryBounds(given: DispatcherOptions) {
  const { capacity, ...bounds } = readParts(DispatcherOptions, given)
  const capacityOf =
    typeof capacity === 'function' ? (scope_id: string) => toCapacity(capacity(scope_id)) : () => capacity
  return { ...bounds, capacityOf }
}
