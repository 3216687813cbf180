/**
 * The calls that a follower sees in the traffic of a host: one bounded table in the process. Nothing is made per message
 * but an entry: no promise, no timer, no random id. Only what is open after a second or ends badly is written to a
 * correlator; everything is counted.
 */
import { CLOSE_TIMEOUT_MS, type CloseResult, endWithin } from '../../internal/async/deadline.js'
import { createTicker } from '../../internal/async/timer.js'
import { addDuration, COUNTED_ACTIONS_MAX, emptyAction, OTHER_ACTION } from '../../internal/contract/call-counts.js'
import {
  boundRules,
  defineBounds,
  FLAG,
  resolveBounds,
  type Shape,
  TIMER_MAX_MS,
  TRACEPARENT,
  withMethods,
} from '../../internal/contract/checks.js'
import type {
  AnsweredSince,
  CallDirection,
  ObserveCallsInput,
  ObservedAction,
  RpcCorrelator,
} from '../../internal/contract/rpc.js'
import { Refusal } from '../../internal/refusal.js'
import type { PlugErrorPlace } from './writer.js'

/** The correlator that the follower writes to. */
export type FollowedCalls = Pick<RpcCorrelator, 'observe'>

/** An id of a call in its protocol: `1` and `'1'` are two. */
export type CallId = string | number

type Outcome = NonNullable<ObserveCallsInput['calls'][number]['end']>['outcome']
type Owner = Pick<ObserveCallsInput['calls'][number], 'user_id' | 'client_id' | 'instance_id'>

/** Maximum number of open calls of one follower, and of one connection of it. The oldest leave first. */
const OPEN_MAX = 10_000
const OPEN_PER_LINK_MAX = 200
/** Interval of the sweep, and the age from which an open call is written. */
const SWEEP_MS = 1_000
/** Counts are written at least this often while there are new ones, with the next report of calls or alone. */
const COUNTS_MS = 5_000
/** An open call is reported again after this time: a third of its lease. */
const RENEW_MS = 20_000
/** Maximum number of calls in a report, and of ended ones that wait for one. */
const REPORT_MAX = 500
const ENDED_MAX = 1_000
/** Length at which the name of an action is cut, and maximum length of an id: longer ones are not followed. */
const ACTION_CHARS = 64
const ID_CHARS = 128

const KEEP_BOUNDS = defineBounds({ keepMs: [3_600_000, TIMER_MAX_MS] })

/** Options of plugs that follow calls. */
export interface FollowCallsOptions {
  /** The correlator that observed calls are written to, of either composition. @default none: calls are not observed */
  calls?: FollowedCalls | undefined
  /** How long a call without a reply is kept, in milliseconds; then it ends as `unanswered`. @default 3600000 */
  keepMs?: number | undefined
  /** Whether messages of a client are signs of life, besides pongs. @default false */
  aliveOnMessage?: boolean | undefined
}

export const CALL_OPTIONS: Shape<FollowCallsOptions> = {
  calls: withMethods('observe'),
  ...boundRules(KEEP_BOUNDS),
  aliveOnMessage: FLAG,
}

interface Emitter {
  on(event: 'connection', listener: never): unknown
  prependListener?(event: 'connection', listener: never): unknown
}

/** Adds a listener before those of the host: they may call the client at once, and that is seen too. */
export function listenFirst(emitter: Emitter, listener: unknown): void {
  const method = emitter.prependListener ? 'prependListener' : 'on'
  emitter[method]?.('connection', listener as never)
}

/** Defers `identify` until the listeners of the host have run, which may learn whose the connection is. */
export const identifyLater = async <T>(identify: () => T): Promise<Awaited<T>> => {
  await null
  return await identify()
}

/** Returns the table for the option `calls`; `undefined` without it. @throws RangeError for an invalid `keepMs`. */
export function followCalls(options: FollowCallsOptions, report: Parts['report']): ObservedCallTable | undefined {
  const bounds = resolveBounds(options, KEEP_BOUNDS)
  return options.calls && createObservedCalls({ ...bounds, calls: options.calls, report })
}

/** How far a call is written. */
interface Written {
  readonly correlation_id: string
  /** When it was reported last; 0 before. */
  reportedAt: number
  answered: AnsweredSince | undefined
}

/** What the peer of one direction has answered: numbers of calls. */
interface Side {
  readonly open: Map<CallId, Open>
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
interface Open {
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
  older: Open | undefined
  newer: Open | undefined
}

/** A line of a report, with times of this process. */
interface Line {
  readonly call: Omit<ObserveCallsInput['calls'][number], 'age_ms' | 'end'>
  readonly sentAt: number
  readonly end?: { readonly outcome: Outcome; readonly at: number; readonly reason: string | null } | undefined
}

interface Parts {
  calls: FollowedCalls
  keepMs: number
  /** Guarded. */
  report(error: unknown, place: PlugErrorPlace): void
}

/** `direction` says who has to reply to the request that a message sends or is about. */
export interface ObservedCallTable {
  /** Begins to observe a connection. */
  link(): CallLink
  request(link: CallLink, direction: CallDirection, id: CallId, action: string, trace?: unknown): void
  reply(link: CallLink, direction: CallDirection, id: CallId, isOk: boolean): void
  /** The request is worked on. */
  progress(link: CallLink, direction: CallDirection, id: CallId): void
  /** The sender of the request does not wait for its reply any longer. */
  cancel(link: CallLink, direction: CallDirection, id: CallId): void
  /** A message that asks for no reply. */
  notify(link: CallLink, direction: CallDirection, action: string): void
  /** The connection has ended for `reason`, or is not observed any longer (`null`). */
  end(link: CallLink, reason: string | null): void
  /** Ends all calls, writes what waits within 5 s, and observes nothing any more. `aborted`: calls not written. */
  close(): Promise<CloseResult>
}

const newSide = (): Side => ({ open: new Map(), latest: 0, before: 0 })
const FORBIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A part of a message would keep all of it in memory. */
const copy = (text: string): string => JSON.parse(JSON.stringify(text))

/** A name that a record may have. */
function nameOf(action: string): string {
  const name = copy(action.replace(FORBIDDEN, '?'))
  return /^(\.{1,2}|\s*)$/.test(name) ? 'unknown' : name
}

export function createObservedCalls({ calls, keepMs, report }: Parts): ObservedCallTable {
  const now = () => Math.floor(performance.now())
  const observer = crypto.randomUUID()
  const links = new Set<CallLink>()
  const named = { to_client: new Map<string, ObservedAction>(), to_server: new Map<string, ObservedAction>() }
  const others = {
    to_client: emptyAction(OTHER_ACTION, 'to_client'),
    to_server: emptyAction(OTHER_ACTION, 'to_server'),
  }
  const changed = new Set<ObservedAction>()
  let oldest: Open | undefined
  let newest: Open | undefined
  let size = 0
  let orders = 0
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
  const ticker = createTicker(sweep, SWEEP_MS)

  function countsOf(direction: CallDirection, action: string): ObservedAction {
    const known = named[direction].get(action)
    if (known) return known
    if (named.to_client.size + named.to_server.size >= COUNTED_ACTIONS_MAX) return others[direction]
    const counts = emptyAction(nameOf(action), direction)
    named[direction].set(counts.action === action ? counts.action : copy(action), counts)
    return counts
  }

  function unlink(call: Open): void {
    if (call.older) call.older.newer = call.newer
    else oldest = call.newer
    if (call.newer) call.newer.older = call.older
    else newest = call.older
    size--
  }

  function lineOf({ link, action, counts, sentAt, trace }: Open, record: Written, end?: Line['end']): Line | undefined {
    const { owner } = link
    if (!owner) return undefined
    const { correlation_id, answered: answered_since = 'none' } = record
    const { user_id, client_id, instance_id } = owner
    const { direction } = counts
    const call = { correlation_id, action, user_id, client_id, instance_id, direction, answered_since, trace }
    return { call, sentAt, end }
  }

  const recordOf = (call: Open): Written => {
    call.record ??= { correlation_id: crypto.randomUUID(), reportedAt: 0, answered: undefined }
    return call.record
  }

  /** Removes `call`, counts it, and queues what is written of it. */
  function finish(call: Open, outcome: Outcome, reason: string | null = null): void {
    const side = call.link[call.counts.direction]
    if (side.open.get(call.id) === call) side.open.delete(call.id)
    unlink(call)
    const { counts } = call
    // The connection may turn out to be none that is followed.
    if (!call.link.owner && outcome === 'unanswered') return
    const at = now()
    counts[outcome]++
    changed.add(counts)
    const isAnswer = outcome === 'succeeded' || outcome === 'failed'
    if (isAnswer) addDuration(counts, at - call.sentAt)
    if (outcome === 'succeeded' && !call.record && at - call.sentAt < SWEEP_MS) return
    if (!call.record && ended.length >= ENDED_MAX) {
      unrecorded++
      return
    }
    const line = lineOf(call, recordOf(call), { outcome, at, reason })
    if (line) ended.push(line)
  }

  function evict(call: Open): void {
    evicted++
    finish(call, 'unanswered')
  }

  function answeredSince({ link, counts, order }: Open): AnsweredSince {
    const { latest, before } = link[counts.direction]
    if (latest > order) return 'later'
    return before >= order ? 'earlier' : 'none'
  }

  /** Lines of open calls that were not reported, have changed, or must be reported again. */
  function openLines(at: number, most: number): { line: Line; record: Written }[] {
    const found: { line: Line; record: Written }[] = []
    for (let call = oldest; call && at - call.sentAt >= SWEEP_MS && found.length < most; call = call.newer) {
      const answered = answeredSince(call)
      const record = recordOf(call)
      if (record.reportedAt > 0 && record.answered === answered && at - record.reportedAt < RENEW_MS) continue
      record.answered = answered
      const line = lineOf(call, record)
      if (line) found.push({ line, record })
    }
    return found
  }

  function takeCounts(at: number): ObservedAction[] {
    countedAt = at
    const taken = [...changed].map((counts) => {
      const copy = { ...counts }
      Object.assign(counts, emptyAction(counts.action, counts.direction))
      return copy
    })
    changed.clear()
    return taken
  }

  function nextReport(at: number): typeof sending {
    const lines = ended.slice(0, REPORT_MAX)
    const open = openLines(at, REPORT_MAX - lines.length)
    const isDue = changed.size + evicted + unrecorded > 0 && (at - countedAt >= COUNTS_MS || isClosed)
    if (lines.length + open.length === 0 && !isDue) return undefined
    ended = ended.slice(REPORT_MAX)
    for (const { line, record } of open) {
      record.reportedAt = at
      lines.push(line)
    }
    const rest = { observer, sequence: ++sequence, actions: takeCounts(at), evicted, unrecorded }
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
        if (refused > 0 && !isFull) report(new Refusal('capacity_exceeded', `${refused} open calls`), { step: 'write' })
        isFull = refused > 0
      } catch (error) {
        if (!hasFailed) report(error, { step: 'write' })
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

  function sweep(): void {
    const at = now()
    for (let call = oldest; call && at - call.sentAt >= keepMs; call = call.newer)
      if (at - call.aliveAt >= keepMs) finish(call, 'unanswered')
    void flush()
  }

  function end(link: CallLink, reason: string | null): void {
    if (!links.delete(link)) return
    for (const { open } of [link.to_client, link.to_server])
      for (const call of open.values()) finish(call, 'unanswered', reason)
  }

  return {
    link() {
      const link = { owner: undefined, to_client: newSide(), to_server: newSide() }
      if (isClosed) return link
      links.add(link)
      ticker.start()
      return link
    },
    request(link, direction, id, given, trace) {
      if (!links.has(link) || (typeof id === 'string' && id.length > ID_CHARS)) return
      const { open } = link[direction]
      const same = open.get(id)
      if (same) finish(same, 'unanswered')
      if (link.to_client.open.size + link.to_server.open.size >= OPEN_PER_LINK_MAX) evict(oldestOf(link))
      if (size >= OPEN_MAX) evict(oldest as Open)
      const raw = given.length > ACTION_CHARS ? given.slice(0, ACTION_CHARS) : given
      const counts = countsOf(direction, raw)
      const action = counts.action === OTHER_ACTION ? nameOf(raw) : counts.action
      const sentAt = now()
      const order = ++orders
      const call: Open = {
        link,
        id,
        action,
        counts,
        order,
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
      open.set(id, call)
    },
    reply(link, direction, id, isOk) {
      const side = link[direction]
      const call = side.open.get(id)
      if (!call) return
      side.before = orders
      if (call.order > side.latest) side.latest = call.order
      finish(call, isOk ? 'succeeded' : 'failed')
    },
    progress(link, direction, id) {
      const call = link[direction].open.get(id)
      if (!call) return
      link[direction].before = orders
      call.aliveAt = now()
    },
    cancel(link, direction, id) {
      const call = link[direction].open.get(id)
      if (call) finish(call, 'cancelled')
    },
    notify(link, direction, action) {
      if (!links.has(link)) return
      const counts = countsOf(direction, action.length > ACTION_CHARS ? action.slice(0, ACTION_CHARS) : action)
      counts.notifications++
      changed.add(counts)
    },
    end,
    async close() {
      for (const link of links) end(link, null)
      isClosed = true
      ticker.stop()
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

function oldestOf({ to_client, to_server }: CallLink): Open {
  const [a] = to_client.open.values()
  const [b] = to_server.open.values()
  return (a && b ? (a.order < b.order ? a : b) : (a ?? b)) as Open
}
