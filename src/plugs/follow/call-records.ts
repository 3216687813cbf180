/** What a follower knows of calls: open ones, counts by action, and the reports that write both to a correlator. */
import { CLOSE_TIMEOUT_MS, type CloseResult, endWithin } from '../../internal/async/deadline.js'
import { addDuration, COUNTED_ACTIONS_MAX, emptyAction, OTHER_ACTION } from '../../internal/contract/call-counts.js'
import { TRACEPARENT } from '../../internal/contract/checks.js'
import type {
  AnsweredSince,
  CallDirection,
  ObserveCallsInput,
  ObservedAction,
  RpcCorrelator,
} from '../../internal/contract/rpc.js'
import { Refusal } from '../../internal/refusal.js'

/** The correlator that the follower writes to. */
export type FollowedCalls = Pick<RpcCorrelator, 'observe'>

/** An id of a call in its protocol: `1` and `'1'` are two. */
export type CallId = string | number

export type Outcome = NonNullable<ObserveCallsInput['calls'][number]['end']>['outcome']
type Owner = Pick<ObserveCallsInput['calls'][number], 'user_id' | 'client_id' | 'instance_id'>

/** Interval of the sweep, and the age from which an open call is written. */
export const SWEEP_MS = 1_000
/** Counts are written at least this often while there are new ones, with the next report of calls or alone. */
const COUNTS_MS = 5_000
/** An open call is reported again after this time: a third of its lease. */
const RENEW_MS = 20_000
/** Maximum number of calls in a report, and of ended ones that wait for one. */
const REPORT_MAX = 500
const ENDED_MAX = 1_000

/** How far a call is written. */
interface Written {
  readonly correlation_id: string
  /** When it was reported last; 0 before. */
  reportedAt: number
  answered: AnsweredSince | undefined
}

/** What the peer of one direction has answered: numbers of calls. */
interface Side {
  readonly open: Map<CallId, OpenCall>
  /** The latest call that was answered. */
  latest: number
  /** The latest call that was sent before the last sign of the peer that has to answer. */
  before: number
}

/** One connection. */
export interface CallLink {
  /** Set once it is known: before, nothing of the connection is written. */
  owner: Owner | undefined
  readonly to_client: Side
  readonly to_server: Side
}

/** One open call, in the list of all from the oldest to the newest. */
export interface OpenCall {
  readonly link: CallLink
  readonly id: CallId
  readonly action: string
  readonly counts: ObservedAction
  /** Number of the call: a later call has a higher one. */
  readonly order: number
  readonly sentAt: number
  readonly trace: string | undefined
  /** When it was sent, or its latest progress. */
  aliveAt: number
  record: Written | undefined
  older: OpenCall | undefined
  newer: OpenCall | undefined
}

export const now = () => Math.floor(performance.now())
const newSide = (): Side => ({ open: new Map(), latest: 0, before: 0 })
export const newLink = (): CallLink => ({ owner: undefined, to_client: newSide(), to_server: newSide() })

const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A part of a message would keep all of it in memory. */
const copy = (text: string): string => JSON.parse(JSON.stringify(text))

/** A name that a record may have. */
function nameOf(action: string): string {
  const name = copy(action.replace(FORBIDDEN, '?'))
  return /^(\.{1,2}|\s*)$/.test(name) ? 'unknown' : name
}

/** A line of a report, with times of this process. */
interface Line {
  readonly call: Omit<ObserveCallsInput['calls'][number], 'age_ms' | 'end'>
  readonly sentAt: number
  readonly end?: { readonly outcome: Outcome; readonly at: number; readonly reason: string | null } | undefined
}

export function oldestOf({ to_client, to_server }: CallLink): OpenCall {
  const [a] = to_client.open.values()
  const [b] = to_server.open.values()
  return (a && b ? (a.order < b.order ? a : b) : (a ?? b)) as OpenCall
}

function answeredSince({ link, counts, order }: OpenCall): AnsweredSince {
  const { latest, before } = link[counts.direction]
  if (latest > order) return 'later'
  return before >= order ? 'earlier' : 'none'
}

/** The open calls of all connections, from the oldest to the newest. */
export function createOpenCalls() {
  let oldest: OpenCall | undefined
  let newest: OpenCall | undefined
  let size = 0
  let orders = 0
  return {
    oldest: () => oldest,
    size: () => size,
    add(link: CallLink, id: CallId, name: string, counts: ObservedAction, trace: unknown): void {
      const sentAt = now()
      const call: OpenCall = {
        link,
        id,
        action: counts.action === OTHER_ACTION ? nameOf(name) : counts.action,
        counts,
        order: ++orders,
        sentAt,
        aliveAt: sentAt,
        trace: typeof trace === 'string' && TRACEPARENT.test(trace) ? copy(trace) : undefined,
        record: undefined,
        older: newest,
        newer: undefined,
      }
      if (newest) newest.newer = call
      else oldest = call
      newest = call
      size++
      link[counts.direction].open.set(id, call)
    },
    remove(call: OpenCall): void {
      const { open } = call.link[call.counts.direction]
      if (open.get(call.id) === call) open.delete(call.id)
      if (call.older) call.older.newer = call.newer
      else oldest = call.newer
      if (call.newer) call.newer.older = call.older
      else newest = call.older
      size--
    },
    answered({ link, counts, order }: OpenCall): void {
      const side = link[counts.direction]
      side.before = orders
      if (order > side.latest) side.latest = order
    },
    progressed(call: OpenCall): void {
      call.link[call.counts.direction].before = orders
      call.aliveAt = now()
    },
  }
}

/** Counts of calls by action and direction, since they were written last. */
export function createCallCounts() {
  const named = { to_client: new Map<string, ObservedAction>(), to_server: new Map<string, ObservedAction>() }
  const others = {
    to_client: emptyAction(OTHER_ACTION, 'to_client'),
    to_server: emptyAction(OTHER_ACTION, 'to_server'),
  }
  const changed = new Set<ObservedAction>()
  return {
    of(direction: CallDirection, action: string): ObservedAction {
      const known = named[direction].get(action)
      if (known) return known
      if (named.to_client.size + named.to_server.size >= COUNTED_ACTIONS_MAX) return others[direction]
      const counts = emptyAction(nameOf(action), direction)
      named[direction].set(counts.action === action ? counts.action : copy(action), counts)
      return counts
    },
    ended({ counts, sentAt }: OpenCall, outcome: Outcome, at: number): void {
      counts[outcome]++
      changed.add(counts)
      if (outcome === 'succeeded' || outcome === 'failed') addDuration(counts, at - sentAt)
    },
    notified(counts: ObservedAction): void {
      counts.notifications++
      changed.add(counts)
    },
    hasChanged: () => changed.size > 0,
    take(): ObservedAction[] {
      const taken = [...changed].map((counts) => {
        const copy = { ...counts }
        Object.assign(counts, emptyAction(counts.action, counts.direction))
        return copy
      })
      changed.clear()
      return taken
    },
  }
}

function recordOf(call: OpenCall): Written {
  call.record ??= { correlation_id: crypto.randomUUID(), reportedAt: 0, answered: undefined }
  return call.record
}

function lineOf(
  { link, action, counts, sentAt, trace }: OpenCall,
  record: Written,
  end?: Line['end'],
): Line | undefined {
  const { owner } = link
  if (!owner) return undefined
  const { correlation_id, answered: answered_since = 'none' } = record
  const { user_id, client_id, instance_id } = owner
  const { direction } = counts
  const call = { correlation_id, action, user_id, client_id, instance_id, direction, answered_since, trace }
  return { call, sentAt, end }
}

/** Lines of open calls that were not reported, have changed, or must be reported again: at most `most`. */
function openLines(oldest: OpenCall | undefined, at: number, most: number): Line[] {
  const lines: Line[] = []
  for (let call = oldest; call && at - call.sentAt >= SWEEP_MS && lines.length < most; call = call.newer) {
    const answered = answeredSince(call)
    const record = recordOf(call)
    if (record.reportedAt > 0 && record.answered === answered && at - record.reportedAt < RENEW_MS) continue
    record.answered = answered
    const line = lineOf(call, record)
    if (!line) continue
    record.reportedAt = at
    lines.push(line)
  }
  return lines
}

/** Writes calls and counts to a correlator, one report at a time. @param report Guarded. */
export function createCallReports(
  calls: FollowedCalls,
  open: ReturnType<typeof createOpenCalls>,
  counts: ReturnType<typeof createCallCounts>,
  report: (error: unknown) => void,
) {
  const observer = crypto.randomUUID()
  let ended: Line[] = []
  let evicted = 0
  let unrecorded = 0
  let countedAt = now()
  let sequence = 0
  /** The report under way, or the one that failed and is sent again. */
  let sending: { readonly lines: Line[]; readonly rest: Omit<ObserveCallsInput, 'calls'> } | undefined
  let isUnderWay: Promise<void> | undefined
  let hasFailed = false
  let isFull = false
  let isClosed = false

  function nextReport(at: number): typeof sending {
    const lines = ended.slice(0, REPORT_MAX)
    lines.push(...openLines(open.oldest(), at, REPORT_MAX - lines.length))
    const isDue = (counts.hasChanged() || evicted + unrecorded > 0) && (at - countedAt >= COUNTS_MS || isClosed)
    if (lines.length === 0 && !isDue) return undefined
    ended = ended.slice(REPORT_MAX)
    countedAt = at
    const rest = { observer, sequence: ++sequence, actions: counts.take(), evicted, unrecorded }
    evicted = unrecorded = 0
    return { lines, rest }
  }

  async function send(): Promise<void> {
    for (sending ??= nextReport(now()); sending; sending = nextReport(now())) {
      const at = now()
      const lines = sending.lines.map(({ call, sentAt, end }) => ({
        ...call,
        age_ms: at - sentAt,
        ...(end && { end: { outcome: end.outcome, ago_ms: at - end.at, connection_reason: end.reason } }),
      }))
      try {
        const refused = await calls.observe({ ...sending.rest, calls: lines })
        hasFailed = false
        if (refused > 0 && !isFull) report(new Refusal('capacity_exceeded', `${refused} open calls`))
        isFull = refused > 0
      } catch (error) {
        if (!hasFailed) report(error)
        hasFailed = true
        // Input that will never be accepted would block all later reports.
        if (!(error instanceof Refusal && error.code === 'invalid_input')) return
      }
    }
  }

  function flush(): Promise<void> {
    isUnderWay ??= send().finally(() => {
      isUnderWay = undefined
    })
    return isUnderWay
  }

  return {
    flush,
    evicted: () => void evicted++,
    ended(call: OpenCall, outcome: Outcome, at: number, reason: string | null): void {
      if (outcome === 'succeeded' && !call.record && at - call.sentAt < SWEEP_MS) return
      if (!call.record && ended.length >= ENDED_MAX) {
        unrecorded++
        return
      }
      const line = lineOf(call, recordOf(call), { outcome, at, reason })
      if (line) ended.push(line)
    },
    async close(): Promise<CloseResult> {
      isClosed = true
      const hasStopped = async () => {
        // The report under way may be followed by one more.
        await flush()
        await flush()
      }
      await endWithin([hasStopped()], CLOSE_TIMEOUT_MS)
      return { aborted: ended.length + (sending?.lines.length ?? 0) }
    },
  }
}
