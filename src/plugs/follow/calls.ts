/**
 * The calls that a follower sees in the traffic of a host: one bounded table in the process. Nothing is made per message
 * but an entry: no promise, no timer, no random id. Only what is open after a second or ends badly is written to a
 * correlator; everything is counted.
 */
import type { CloseResult } from '../../internal/async/deadline.js'
import { createTicker } from '../../internal/async/timer.js'
import {
  boundRules,
  defineBounds,
  FLAG,
  resolveBounds,
  type Shape,
  TIMER_MAX_MS,
  withMethods,
} from '../../internal/contract/checks.js'
import type { CallDirection } from '../../internal/contract/rpc.js'
import {
  type CallId,
  type CallLink,
  createCallCounts,
  createCallReports,
  createOpenCalls,
  type FollowedCalls,
  newLink,
  now,
  type OpenCall,
  type Outcome,
  oldestOf,
  SWEEP_MS,
} from './call-records.js'
import type { PlugErrorPlace } from './writer.js'

/** Maximum number of open calls of one follower, and of one connection of it. The oldest leave first. */
const OPEN_MAX = 10_000
const OPEN_PER_LINK_MAX = 200
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

interface Parts {
  calls: FollowedCalls
  keepMs: number
  /** Guarded. */
  report(error: unknown, place: PlugErrorPlace): void
}

export type ObservedCallTable = ReturnType<typeof createObservedCalls>

/** `direction` says who has to reply to the request that a message sends or is about. */
export function createObservedCalls({ calls, keepMs, report }: Parts) {
  const links = new Set<CallLink>()
  const open = createOpenCalls()
  const counts = createCallCounts()
  const reports = createCallReports(calls, open, counts, (error) => report(error, { step: 'write' }))
  let isClosed = false
  const ticker = createTicker(sweep, SWEEP_MS)

  /** Removes `call`, counts it, and queues what is written of it. */
  function finish(call: OpenCall, outcome: Outcome, reason: string | null = null): void {
    open.remove(call)
    // The connection may turn out to be none that is followed.
    if (!call.link.owner && outcome === 'unanswered') return
    const at = now()
    counts.ended(call, outcome, at)
    reports.ended(call, outcome, at, reason)
  }

  function evict(call: OpenCall): void {
    reports.evicted()
    finish(call, 'unanswered')
  }

  function sweep(): void {
    const at = now()
    for (let call = open.oldest(); call && at - call.sentAt >= keepMs; call = call.newer)
      if (at - call.aliveAt >= keepMs) finish(call, 'unanswered')
    void reports.flush()
  }

  /** The connection has ended for `reason`, or is not observed any longer (`null`). */
  function end(link: CallLink, reason: string | null): void {
    if (!links.delete(link)) return
    for (const side of [link.to_client, link.to_server])
      for (const call of side.open.values()) finish(call, 'unanswered', reason)
  }

  return {
    /** Begins to observe a connection. */
    link(): CallLink {
      const link = newLink()
      if (isClosed) return link
      links.add(link)
      ticker.start()
      return link
    },
    request(link: CallLink, direction: CallDirection, id: CallId, given: string, trace?: unknown): void {
      if (!links.has(link) || (typeof id === 'string' && id.length > ID_CHARS)) return
      const same = link[direction].open.get(id)
      if (same) finish(same, 'unanswered')
      if (link.to_client.open.size + link.to_server.open.size >= OPEN_PER_LINK_MAX) evict(oldestOf(link))
      if (open.size() >= OPEN_MAX) evict(open.oldest() as OpenCall)
      const raw = given.length > ACTION_CHARS ? given.slice(0, ACTION_CHARS) : given
      open.add(link, id, raw, counts.of(direction, raw), trace)
    },
    reply(link: CallLink, direction: CallDirection, id: CallId, isOk: boolean): void {
      const call = link[direction].open.get(id)
      if (!call) return
      open.answered(call)
      finish(call, isOk ? 'succeeded' : 'failed')
    },
    /** The request is worked on. */
    progress(link: CallLink, direction: CallDirection, id: CallId): void {
      const call = link[direction].open.get(id)
      if (call) open.progressed(call)
    },
    /** The sender of the request does not wait for its reply any longer. */
    cancel(link: CallLink, direction: CallDirection, id: CallId): void {
      const call = link[direction].open.get(id)
      if (call) finish(call, 'cancelled')
    },
    /** A message that asks for no reply. */
    notify(link: CallLink, direction: CallDirection, action: string): void {
      if (!links.has(link)) return
      counts.notified(counts.of(direction, action.length > ACTION_CHARS ? action.slice(0, ACTION_CHARS) : action))
    },
    end,
    /** Ends all calls, writes what waits within 5 s, and observes nothing any more. `aborted`: calls not written. */
    close(): Promise<CloseResult> {
      for (const link of links) end(link, null)
      isClosed = true
      ticker.stop()
      return reports.close()
    },
  }
}
