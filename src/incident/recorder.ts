/** The flight recorder: what a router answered over the last hour, in bounded memory. */
import { guardErrorHook } from '../internal/async/hook.js'
import { anotherTurn, sleep } from '../internal/async/timer.js'
import { Deployment, INSPECTORS } from '../internal/contract/families.js'
import {
  count,
  custom,
  defineOptions,
  duration,
  func,
  hook,
  type Input,
  readOptions,
  timer,
  withMethods,
} from '../internal/contract/options.js'
import type { PastAnswers } from '../internal/diagnostics/instants.js'
import { createDiagnosticsRouter } from '../internal/diagnostics/router.js'
import { noopAuth } from '../internal/http/auth.js'
import { isObject } from '../internal/relay-client/wire.js'
import { type Change, type Followed, follow, limited, withinTime } from './follow.js'
import { CaptureFailed, type Incident } from './format.js'
import { createMemoryRecording, type MemoryRecording } from './memory-segments.js'
import { readerOf } from './reader.js'
import { pastOf, type RecordedSpan } from './recording.js'
import {
  type CapturedRouter,
  describe,
  type FetchReply,
  fetcherOf,
  nodeTime,
  offeredParts,
  recordedHeader,
} from './source.js'
import { createWriter, type RecordingFiles } from './writer.js'

/** Options of `createFlightRecorder`. */
export const FlightRecorderOptions = defineOptions({
  /** What is recorded: the inspectors of this process, as its router has them; or pass `router`. */
  inspectors: INSPECTORS.optional(),
  /** Deployment of the inspectors; a composition returns it. @default { id: null, mode: 'direct' } */
  deployment: Deployment.prefault({ id: null, mode: 'direct' }),
  /** What is recorded instead of `inspectors`: a router, also one reached through `fetch`. @default none */
  router: withMethods<CapturedRouter>('fetch').optional(),
  /** Headers of every request to `router`, with the key of the caller. Never recorded. @default none */
  headers: custom<Readonly<Record<string, string>>>('an object of header fields', isObject).optional(),
  /** How far back the recording reaches in ms. @default 3600000 (one hour) */
  keepMs: duration(3_600_000),
  /**
   * Maximum bytes of the recording in memory; the oldest minutes leave first. A fifth is for rows that ended badly, which
   * stay for the whole of `keepMs`. @default 16777216 (16 MiB)
   */
  maxBytes: count(16_777_216),
  /** Time between two readings in ms. @default 5000 */
  everyMs: timer(5_000),
  /** Where the recording is also written. @default none */
  files: withMethods<RecordingFiles>('append').optional(),
  /**
   * Called when nothing can be read, once until something can be; and when `files` fails, once until it can be written again.
   * `null` disables it.
   * @default console.error, with the stack
   */
  onError: hook<(error: unknown) => void>(),
  /** Epoch ms by the clock of this machine. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface FlightRecorderOptions extends Input<typeof FlightRecorderOptions> {}

/** A recording of the last hour. Pass it to `createDiagnosticsRouter` as `recorder`, or to `createReplay`. */
export interface FlightRecorder extends PastAnswers {
  /** Resolves when the first reading is recorded. Rejects with `CaptureFailed` if there was nothing to read. */
  readonly started: Promise<void>
  /** What is recorded; `null` while nothing is. */
  span(): RecordedSpan | null
  /** The incident of one instant in epoch ms; of the latest one for `null`. @throws CaptureFailed while nothing is recorded. */
  incidentAt(instant: number | null): Promise<Incident>
  /** Ends it, also where `files` does not settle: within ten seconds. What is recorded can still be read. */
  close(): Promise<void>
}

const RETRY_MS = 2_000
/** How far the clock of a caller may be ahead of what is taken for the time of the node. */
const CLOCK_SLACK_MS = 5_000
/** While a route takes longer, the next ones are read. */
const SLOW_MS = 250
/** A route may take as long as the time between two readings, and at least this. */
const LATE_MS = 2_000
/** A clock that was set differs at once by more. */
const CLOCK_JUMP_MS = 1_000

/** The clock of the node, by the clock of this machine. */
function createNodeClock(now: () => number, fetchReply: FetchReply, report: (error: unknown) => void) {
  /** By how much the node's clock is ahead of this machine's. */
  let ahead = 0
  let lastAt = 0
  /** The difference between the clock of this machine and a monotonic one. */
  const drift = () => now() - performance.now()
  let known = 0
  const present = () => Math.round(now() + ahead)

  async function read(): Promise<string | null> {
    const node = await nodeTime(fetchReply)
    known = drift()
    ahead = node === null ? 0 : Date.parse(node) - now()
    return node
  }

  return {
    now,
    /** The time of the node's clock. */
    present,
    read,
    /** The time of the next line: lines are in the order of their times. */
    next: () => (lastAt = Math.max(lastAt, present())),
    last: () => lastAt,
    /** Returns the time to which the clock was set back, if it was: nothing is kept of the time that comes again. */
    async setBackTo(): Promise<number | null> {
      if (Math.abs(drift() - known) > CLOCK_JUMP_MS) await read()
      const at = present()
      if (at >= lastAt - CLOCK_SLACK_MS) return null
      const text = `the clock was set back by ${lastAt - at} ms: what was recorded of that time is dropped`
      report(new CaptureFailed(text))
      lastAt = at
      return at
    },
  }
}

/** One pass over all routes. @throws CaptureFailed if none has an answer. */
async function readAll(followed: readonly Followed[], signal: AbortSignal): Promise<[Followed, readonly Change[]][]> {
  const readings: Promise<[Followed, readonly Change[]]>[] = []
  for (const one of followed) {
    const reading = one.read().then((changes): [Followed, readonly Change[]] => [one, changes])
    readings.push(reading)
    // One after the other, unless one is slow.
    await limited(reading, SLOW_MS)
    await anotherTurn()
  }
  const changes = await Promise.all(readings)
  signal.throwIfAborted()
  if (followed.every((one) => one.isLost())) throw new CaptureFailed('nothing is recorded: no route has an answer')
  return changes
}

interface Session {
  fetchReply: FetchReply
  readReply: FetchReply
  everyMs: number
  lateMs: number
  silenceMs: number
  signal: AbortSignal
  clock: ReturnType<typeof createNodeClock>
  recording: MemoryRecording
}

/** Records until nothing can be read. @param started Called when a reading is recorded. */
async function recordSession(session: Session, started: () => void): Promise<void> {
  const { fetchReply, readReply, everyMs, lateMs, silenceMs, signal, clock, recording } = session
  const described = await describe(fetchReply)
  const made = recordedHeader(described, await clock.read(), clock.now())
  const followed = offeredParts(described)
    .filter(({ keys }) => keys.length === 0)
    .map((part) => withinTime(follow(part, readReply, signal), lateMs))
  let changes = await readAll(followed, signal)
  for (let continues = false; ; ) {
    const segment = await recording.begin(made, followed, clock.next(), continues)
    do {
      for (const [one, some] of changes) recording.pin(one, some, clock.last())
      recording.evict(clock.last())
      started()
      await sleep(everyMs, signal, false)
      signal.throwIfAborted()
      changes = await readAll(followed, signal)
      const back = await clock.setBackTo()
      if (back !== null) recording.dropAfter(back)
      continues = back === null && clock.present() - segment.to <= silenceMs
      if (!continues) break
      await recording.add(segment, [...changes.flatMap(([, some]) => some), { kind: 'seen' }], clock.next())
    } while (!recording.isFull(segment))
    await clock.read()
  }
}

/**
 * Starts to record what `inspectors` or `router` answer: their lists, within 2,000 rows each, and their sums, every
 * `everyMs`. Payloads and histories are not read. Its timers keep no process alive.
 *
 * @throws TypeError or RangeError that names the option. Errors of reading go to `onError`.
 * @example
 * const recorder = createFlightRecorder({ inspectors })
 * const diagnostics = createDiagnosticsRouter({ inspectors, recorder, auth: apiKeyAuth(key) })
 */
export function createFlightRecorder(options: FlightRecorderOptions): FlightRecorder {
  const {
    inspectors,
    deployment,
    headers = {},
    keepMs,
    maxBytes,
    everyMs,
    files,
    onError,
    now,
    ...read
  } = readOptions(FlightRecorderOptions, options)
  if ((inspectors === undefined) === (read.router === undefined))
    throw new TypeError('Pass one of the options "inspectors" and "router"')
  const router =
    read.router ??
    createDiagnosticsRouter({ inspectors: inspectors ?? {}, deployment, auth: noopAuth(), onError: null, now })
  const report = guardErrorHook(onError)
  const ended = new AbortController()
  const { signal } = ended
  const fetchReply = fetcherOf(router, headers, signal)
  const readReply = inspectors ? readerOf({ inspectors, deployment }, signal) : fetchReply
  const lateMs = Math.max(LATE_MS, everyMs)
  /** Two readings are further apart only if the process stood still, or its clock was set. */
  const silenceMs = 2 * (everyMs + 2 * lateMs)
  const clock = createNodeClock(now, fetchReply, report)
  const writer = createWriter(files, report)
  const recording = createMemoryRecording({ maxBytes, keepMs, silenceMs }, clock, writer)
  const session = { fetchReply, readReply, everyMs, lateMs, silenceMs, signal, clock, recording }

  let resolveStarted: () => void = () => {}
  let rejectStarted: (error: unknown) => void = () => {}
  const started = new Promise<void>((resolve, reject) => {
    resolveStarted = resolve
    rejectStarted = reject
  })
  started.catch(() => {})

  async function run(): Promise<void> {
    let isReported = false
    while (!signal.aborted) {
      try {
        await recordSession(session, () => {
          isReported = false
          resolveStarted()
        })
      } catch (error) {
        rejectStarted(error)
        if (signal.aborted) break
        if (!isReported) report(error)
        isReported = true
        await sleep(RETRY_MS, signal, false)
      }
    }
    await writer.close()
  }
  const running = run()

  const { span, incidentAt } = recording
  return {
    started,
    span,
    incidentAt,
    async at(instant) {
      const known = span()
      if (!known) throw new CaptureFailed('nothing is recorded yet')
      // Between two readings, the last one is what is known.
      const isLatest = instant > known.to && instant <= clock.present() + CLOCK_SLACK_MS
      return pastOf({ at: incidentAt }).at(isLatest ? known.to : instant)
    },
    async close() {
      ended.abort()
      await running
    },
  }
}
