/** Follows responses that stay open, such as server-sent events, and writes them to the connection registry. */
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import { createTicker } from '../../internal/async/timer.js'
import { checkOptions, checkParts, required, resolveBounds, type Shape } from '../../internal/contract/checks.js'
import {
  CONNECTION_OPTIONS,
  createConnectionFollower,
  type FollowConnectionsOptions,
  UNKNOWN,
} from '../follow/connections.js'
import { FOLLOW_BOUNDS, type Follower, type Identity } from '../follow/writer.js'

/** The used part of a `ServerResponse` of `node:http` or a compatible one. */
export interface FollowedResponse {
  /** Bytes that were written and not yet taken by the operating system. */
  readonly writableLength: number
  /** Whether all that was written has been sent. */
  readonly writableFinished: boolean
  readonly destroyed?: boolean | undefined
  on(event: 'close', listener: (this: never) => void): unknown
  off(event: 'close', listener: (this: never) => void): unknown
}

/** Options of `followEventStreams` and `followEventStream`. */
export interface FollowEventStreamOptions<S> extends FollowConnectionsOptions<S> {
  /**
   * Returns the owner of a response: use what you have authenticated, never what the client claims. `null` is not
   * followed.
   */
  identify: (response: S) => Identity | null | PromiseLike<Identity | null>
}

const OPTIONS: Shape<FollowEventStreamOptions<unknown>> = {
  ...CONNECTION_OPTIONS,
}

const RESPONSE: Shape<{ response: unknown }> = {
  response: required({
    expected: 'a response of node:http (on, off, writableLength)',
    test(value) {
      const { on, off, writableLength } = (value ?? {}) as Record<string, unknown>
      return typeof on === 'function' && typeof off === 'function' && typeof writableLength === 'number'
    },
  }),
}

/** Interval at which open responses are looked at, in milliseconds: half of `heartbeatMs` if that is less. */
const LOOK_MS = 5_000

const isOver = ({ destroyed, writableFinished }: FollowedResponse) => destroyed === true || writableFinished

/** A running follower of responses. */
export interface EventStreamFollower<S> extends Follower {
  /** Follows a response. One that is followed already, or has ended, is left as it is. @throws TypeError */
  add(response: S): void
}

/**
 * Follows each response that is passed to `add`: connected once `identify` has returned its owner, alive while it is
 * open, disconnected with it. The metadata `waiting_bytes` has the bytes that the client has not taken, as of the last 5 s.
 * It only listens. Store failures never reach the host: a state that cannot be written now is written later, as it is then.
 *
 * @throws TypeError, RangeError for an invalid option.
 *
 * @example
 * const streams = followEventStreams({ connections, identify: (response) => userOf(response.req) })
 * streams.add(response)
 */
export function followEventStreams<S extends FollowedResponse>(
  options: FollowEventStreamOptions<S>,
): EventStreamFollower<S> {
  checkOptions(options, OPTIONS)
  const { connections, identify, onConnected, onSuperseded, onError } = options
  const bounds = resolveBounds(options, FOLLOW_BOUNDS)
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'hook' })
  /** The open responses, with the bytes that their metadata has. */
  const shown = new Map<S, number>()
  // One shared listener that uses `this`: a closure per response would be most of its cost.
  function onClose(this: S): void {
    follower.leave(this, this.writableFinished ? 'response_ended' : 'connection_closed')
  }
  const follower = createConnectionFollower<S>({
    ...bounds,
    connections,
    metadataOf(response) {
      const { writableLength: waiting_bytes } = response
      if (shown.has(response)) shown.set(response, waiting_bytes)
      return { transport: 'event_stream', waiting_bytes }
    },
    // `look` does it, more often.
    probe() {},
    release(response) {
      response.off('close', onClose)
      shown.delete(response)
    },
    report,
    connected: guardHook(onConnected, failed),
    superseded: guardHook(onSuperseded, failed),
  })
  const look = guardHook((response: S) => {
    // A host that takes all listeners off a response has taken ours, too.
    if (isOver(response)) return follower.leave(response, UNKNOWN)
    follower.seen(response)
    if (response.writableLength !== shown.get(response)) follower.changed(response)
  }, failed)
  const ticker = createTicker(
    () => {
      for (const response of shown.keys()) look(response)
    },
    Math.min(LOOK_MS, Math.ceil(bounds.heartbeatMs / 2)),
  )
  ticker.start()
  let isClosed = false
  return {
    add(response) {
      checkParts({ response }, RESPONSE)
      if (isClosed || shown.has(response) || isOver(response)) return
      response.on('close', onClose)
      shown.set(response, 0)
      follower.follow(response, () => identify(response))
    },
    close() {
      isClosed = true
      ticker.stop()
      return follower.close()
    },
  }
}

/**
 * Follows one response as `followEventStreams` does, until it closes. With many responses, one `followEventStreams` costs
 * less: each follower has timers of its own.
 *
 * @throws TypeError, RangeError for an invalid response or option.
 *
 * @example
 * followEventStream(response, { connections, identify: () => userOf(request) })
 */
export function followEventStream<S extends FollowedResponse>(
  response: S,
  options: FollowEventStreamOptions<S>,
): Follower {
  checkParts({ response }, RESPONSE)
  const follower = followEventStreams(options)
  follower.add(response)
  const close = () => {
    response.off('close', close)
    return follower.close()
  }
  if (isOver(response)) void close()
  else response.on('close', close)
  return { close }
}
