/** The flight recorder: what a router answered over the last hour, in bounded memory. */
import { onAbort } from '../internal/async/abort.js'
import { guardErrorHook } from '../internal/async/hook.js'
import { anotherTurn, unref } from '../internal/async/timer.js'
import { inTurns } from '../internal/async/turns.js'
import { Deployment, INSPECTORS } from '../internal/contract/families.js'
import { toTimestamp } from '../internal/contract/ids.js'
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
import { boundedMissing, CaptureFailed, type Incident, type IncidentPart, missingOf } from './format.js'
import { CHUNK_CHARS, closeChunk, createPins, isBad, type MemorySegment, textUntil } from './memory-segments.js'
import { PART_BY_ROUTE, PARTS, type Part, type Row, rowIdOf } from './parts.js'
import { readerOf } from './reader.js'
import { asRecorded, pastOf, type RecordedSpan, replaySegment, snapshotLine } from './recording.js'
import { type CapturedRouter, describe, fetcherOf, nodeTime, offeredParts, recordedHeader } from './source.js'
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

/** The parts, with what ended badly and is older than the rows that a list that was cut has. */
function withPins({ parts, missing }: Incident, pinned: readonly IncidentPart[]): IncidentPart[] {
  return parts.map((part) => {
    const { route, rows } = part
    const own = pinned.find((one) => one.route === route)?.rows
    if (!rows || !own || !missing.some((one) => one.route === route && one.reason === 'not_followed')) return part
    const idOf = (row: Row) => rowIdOf(PART_BY_ROUTE.get(route) as Part, row)
    const ids = new Set(rows.map(idOf))
    return { ...part, rows: [...own.filter((row) => !ids.has(idOf(row))), ...rows] }
  })
}

/** Characters of a segment before it is compressed. */
const SEGMENT_CHARS = 8_388_608
const SEGMENT_MS = 600_000
/** The whole recording is at least so many segments: only whole ones leave. */
const SEGMENTS_MIN = 6
const RETRY_MS = 2_000
/** How far the clock of a caller may be ahead of what is taken for the time of the node. */
const CLOCK_SLACK_MS = 5_000
/** While a route takes longer, the next ones are read. */
const SLOW_MS = 250
/** A route may take as long as the time between two readings, and at least this. */
const LATE_MS = 2_000
/** A clock that was set differs at once by more. */
const CLOCK_JUMP_MS = 1_000

const NEVER = { signal: new AbortController().signal }

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
  const pins = createPins(maxBytes / 5, keepMs)
  const mostBytes = maxBytes - maxBytes / 5
  let segments: MemorySegment[] = []
  let header: Omit<Incident, 'parts'> | null = null
  const writer = createWriter(files, report)
  let lastAt = 0
  const lateMs = Math.max(LATE_MS, everyMs)
  /** Two readings are further apart only if the process stood still, or its clock was set. */
  const silenceMs = 2 * (everyMs + 2 * lateMs)
  /** By how much the node's clock is ahead of this machine's. */
  let ahead = 0
  /** The time of the node's clock. */
  const present = () => Math.round(now() + ahead)

  async function add(segment: MemorySegment, lines: readonly object[], at: number): Promise<void> {
    let text = ''
    for (const line of lines) {
      text += `${JSON.stringify({ ...line, at: toTimestamp(at) })}\n`
      if ('upsert' in line) await anotherTurn()
    }
    // In one step: a request meanwhile gets all of a reading, or nothing of it.
    if (segment.open === '') segment.openFrom = at
    segment.open += text
    segment.chars += text.length
    segment.to = at
    if (segment.open.length > Math.min(CHUNK_CHARS, mostBytes / 100)) await closeChunk(segment)
    await writer.append(text)
  }

  /** Begins a segment with the state of all routes. */
  async function beginSegment(
    made: Omit<Incident, 'parts'>,
    followed: readonly Followed[],
    at: number,
    continues: boolean,
  ): Promise<MemorySegment> {
    const last = segments.at(-1)
    if (last) await closeChunk(last)
    header = made
    const by = { from: toTimestamp(at), to: toTimestamp(at) }
    const observer = { from: toTimestamp(now()), to: toTimestamp(now()) }
    const first = `${snapshotLine({ ...made, clocks: { node: made.clocks.node && by, observer }, parts: [] }, continues, true)}\n`
    const segment: MemorySegment = {
      from: at,
      to: at,
      continues,
      chunks: [],
      open: first,
      openFrom: at,
      bytes: 0,
      chars: 0,
    }
    await writer.begin(now(), async () => first)
    for (const one of followed) for (const change of one.whole()) await add(segment, [change], at)
    await add(segment, [{ kind: 'seen' }], at)
    // Not before it is whole: its first instant can be asked for at once.
    segments.push(segment)
    return segment
  }

  function evict(at: number): void {
    pins.evict(at)
    let bytes = segments.reduce((sum, segment) => sum + segment.bytes + segment.open.length, 0)
    const kept = segments.findIndex((segment) => {
      const isKept = bytes <= mostBytes && segment.to >= at - keepMs
      if (!isKept) bytes -= segment.bytes + segment.open.length
      return isKept
    })
    if (kept > 0) segments = segments.slice(kept)
    else if (kept < 0 && segments.length > 0) {
      segments = []
      throw new CaptureFailed(`the state of the router takes more than the ${maxBytes} bytes of "maxBytes"`)
    }
  }

  function pinChanges({ part, row }: Followed, changes: readonly Change[], at: number): void {
    for (const change of changes) {
      if (change.kind !== 'rows') continue
      for (const added of change.upsert) if (isBad(added)) pins.add(part, added, at)
      for (const [id] of change.patch ?? []) {
        const changed = row(id)
        if (changed && isBad(changed)) pins.add(part, changed, at)
      }
    }
  }

  /** One pass over all routes. @throws CaptureFailed if none has an answer. */
  async function readAll(followed: readonly Followed[]): Promise<[Followed, readonly Change[]][]> {
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

  /** Records until nothing can be read. */
  async function session(started: () => void): Promise<void> {
    const described = await describe(fetchReply)
    /** The difference between the clock of this machine and a monotonic one. */
    const drift = () => now() - performance.now()
    let known = drift()
    async function readClock(): Promise<string | null> {
      const node = await nodeTime(fetchReply)
      known = drift()
      ahead = node === null ? 0 : Date.parse(node) - now()
      return node
    }
    const node = await readClock()
    // Lines are in the order of their times.
    const time = () => (lastAt = Math.max(lastAt, present()))
    /** Whether the clock was set back; then nothing is kept of the time that comes again. */
    async function isSetBack(): Promise<boolean> {
      if (Math.abs(drift() - known) > CLOCK_JUMP_MS) await readClock()
      const at = present()
      if (at >= lastAt - CLOCK_SLACK_MS) return false
      report(
        new CaptureFailed(`the clock was set back by ${lastAt - at} ms: what was recorded of that time is dropped`),
      )
      segments = segments.filter(({ to }) => to <= at)
      lastAt = at
      return true
    }
    const made = recordedHeader(described, node, now())
    const followed = offeredParts(described)
      .filter(({ keys }) => keys.length === 0)
      .map((part) => withinTime(follow(part, readReply, signal), lateMs))
    let changes = await readAll(followed)
    for (let continues = false; ; ) {
      const segment = await beginSegment(made, followed, time(), continues)
      const endsAt = performance.now() + Math.min(SEGMENT_MS, keepMs / SEGMENTS_MIN)
      do {
        for (const [one, some] of changes) pinChanges(one, some, lastAt)
        evict(lastAt)
        started()
        await waited(everyMs)
        changes = await readAll(followed)
        continues = !(await isSetBack()) && present() - segment.to <= silenceMs
        if (!continues) break
        const at = time()
        await add(segment, [...changes.flatMap(([, some]) => some), { kind: 'seen' }], at)
        if (!writer.isOpen()) await writer.begin(now(), () => textUntil(segment, Number.POSITIVE_INFINITY))
      } while (
        segment.chars < SEGMENT_CHARS &&
        segment.bytes + segment.open.length < mostBytes / SEGMENTS_MIN &&
        performance.now() < endsAt
      )
      await readClock()
    }
  }

  /** Keeps no process alive meanwhile. @throws the signal's reason. */
  async function waited(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = unref(
        setTimeout(() => {
          forget()
          resolve()
        }, ms),
      )
      const forget = onAbort(signal, () => {
        clearTimeout(timer)
        resolve()
      })
    })
    signal.throwIfAborted()
  }

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
        await session(() => {
          isReported = false
          resolveStarted()
        })
      } catch (error) {
        rejectStarted(error)
        if (signal.aborted) break
        if (!isReported) report(error)
        isReported = true
        await waited(RETRY_MS).catch(() => {})
      }
    }
    await writer.close()
  }
  const running = run()

  function span(): RecordedSpan | null {
    const [first] = segments
    if (!first) return null
    const gaps = segments.flatMap(({ from, continues }, i) => {
      const before = segments[i - 1]
      return before && !continues ? [[before.to, from] as const] : []
    })
    const { to } = segments.at(-1) as MemorySegment
    const from = Math.min(first.from, pins.first())
    // Nothing was recorded for so long that it is a gap, which has not ended.
    const end = present()
    return end - to > silenceMs ? { from, to: end, gaps: [...gaps, [to, end]] } : { from, to, gaps }
  }

  async function incidentAt(instant: number | null): Promise<Incident> {
    const known = span()
    if (!known || !header) throw new CaptureFailed('nothing is recorded yet')
    const wanted = Math.min(Math.max(instant ?? known.to, known.from), known.to)
    const segment = segments.findLast(({ from }) => from <= wanted)
    if (segment) {
      const text = await textUntil(segment, wanted)
      const replayed = replaySegment({ name: 'in memory', text, from: segment.from }, wanted, true)
      const { incident, readAt } = await inTurns(replayed, NEVER)
      return asRecorded({ ...incident, parts: withPins(incident, pins.partsAt(wanted)) }, known, wanted, readAt)
    }
    // Its minutes had to leave: what ended badly is left of them.
    const cut = 'only what ended badly is still kept of this time'
    const lacking = PARTS.filter(({ capability }) => header?.capabilities.includes(capability)).map(({ route }) =>
      missingOf(route, 'cut', cut),
    )
    const missing = boundedMissing([...lacking, ...header.missing.filter(({ reason }) => reason !== 'not_followed')])
    return asRecorded({ ...header, missing, parts: pins.partsAt(wanted) }, known, wanted, wanted)
  }

  return {
    started,
    span,
    incidentAt,
    async at(instant) {
      const known = span()
      if (!known) throw new CaptureFailed('nothing is recorded yet')
      // Between two readings, the last one is what is known.
      const isLatest = instant > known.to && instant <= present() + CLOCK_SLACK_MS
      return pastOf({ at: incidentAt }).at(isLatest ? known.to : instant)
    },
    async close() {
      ended.abort()
      await running
    },
  }
}
