/** What a recorder keeps in memory: compressed segments, and the rows that ended badly. */
import { anotherTurn } from '../internal/async/timer.js'
import { inTurns } from '../internal/async/turns.js'
import { toTimestamp } from '../internal/contract/ids.js'
import { isObject, isText } from '../internal/relay-client/wire.js'
import type { Change, Followed } from './follow.js'
import { boundedMissing, CaptureFailed, type Incident, type IncidentPart, missingOf } from './format.js'
import { PART_BY_ROUTE, PARTS, type Part, type Row, rowIdOf } from './parts.js'
import { asRecorded, type RecordedSpan, replaySegment, snapshotLine } from './recording.js'
import type { Writer } from './writer.js'

/** Characters that are compressed at once. */
const CHUNK_CHARS = 262_144

// A segment in memory: its text, compressed in chunks.

interface Chunk {
  readonly from: number
  readonly text: string | Uint8Array
}

/** A segment of a recording, as the recorder keeps it. */
interface MemorySegment {
  readonly from: number
  to: number
  readonly continues: boolean
  chunks: Chunk[]
  /** Lines that are not compressed yet, from `openFrom`. */
  open: string
  openFrom: number
  /** Bytes of the chunks. */
  bytes: number
  /** Characters before compression. */
  chars: number
}

const through = (text: string | Uint8Array, stream: CompressionStream | DecompressionStream) =>
  new Response(new Blob([text as string]).stream().pipeThrough(stream as never))

async function compressed(text: string): Promise<string | Uint8Array> {
  if (typeof CompressionStream === 'undefined') return text
  return new Uint8Array(await through(text, new CompressionStream('gzip')).arrayBuffer())
}

const expanded = (text: string | Uint8Array): Promise<string> | string =>
  typeof text === 'string' ? text : through(text, new DecompressionStream('gzip')).text()

/** Compresses the lines that are not compressed yet. */
async function closeChunk(segment: MemorySegment): Promise<void> {
  if (segment.open === '') return
  const text = await compressed(segment.open)
  segment.chunks.push({ from: segment.openFrom, text })
  segment.bytes += text.length
  segment.open = ''
}

/** The text of the segment up to `instant`, in epoch ms. */
async function textUntil({ chunks, open, openFrom }: MemorySegment, instant: number): Promise<string> {
  let text = ''
  // A copy: a chunk that is closed meanwhile is what is open here.
  for (const chunk of [...chunks]) if (chunk.from <= instant) text += await expanded(chunk.text)
  return openFrom <= instant ? text + open : text
}

// Rows that ended badly: kept for the whole time, whatever else happens.

const BAD = /^(?:failed|refused|rejected|expired|timed_out|unanswered|disconnected|crashed|browser_disconnected)$/
const BAD_FIELDS = ['state', 'status', 'status_reason', 'outcome'] as const

/** Whether a row says that something failed, was refused, expired, disconnected or crashed. */
function isBad({ acknowledgement, terminal, ...row }: Row): boolean {
  const states = [acknowledgement, terminal].map((one) => (isObject(one) ? one.state : undefined))
  return [...states, ...BAD_FIELDS.map((name) => row[name])].some((value) => isText(value) && BAD.test(value))
}

interface Pinned {
  readonly part: Part
  readonly text: string
  readonly at: number
}

/** Keeps rows for `keepMs`, within `maxChars`; the oldest leave first. */
function createPins(maxChars: number, keepMs: number) {
  const pins = new Map<string, Pinned>()
  let chars = 0
  function drop(key: string) {
    chars -= pins.get(key)?.text.length ?? 0
    pins.delete(key)
  }
  function add(part: Part, row: Row, at: number): void {
    const key = `${part.route} ${rowIdOf(part, row)}`
    const known = pins.get(key)
    const text = JSON.stringify(row)
    drop(key)
    // The first time counts: a row that is seen again has not ended again.
    pins.set(key, { part, text, at: known?.at ?? at })
    chars += text.length
  }
  return {
    /** Adds the changed rows that ended badly. */
    addChanges({ part, row }: Followed, changes: readonly Change[], at: number): void {
      for (const change of changes) {
        if (change.kind !== 'rows') continue
        for (const added of change.upsert) if (isBad(added)) add(part, added, at)
        for (const [id] of change.patch ?? []) {
          const changed = row(id)
          if (changed && isBad(changed)) add(part, changed, at)
        }
      }
    },
    evict(now: number): void {
      for (const [key, { at }] of pins) if (chars > maxChars || at < now - keepMs) drop(key)
    },
    first: () => [...pins.values()].reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY),
    /** The rows that had ended by `instant`. */
    partsAt(instant: number): IncidentPart[] {
      const rows = new Map<Part, Row[]>()
      for (const { part, text, at } of pins.values())
        if (at <= instant) {
          const list = rows.get(part) ?? []
          rows.set(part, list)
          list.push(JSON.parse(text))
        }
      return [...rows].map(([{ route }, list]) => ({ route, rows: list }))
    },
  }
}

// The recording: segments and rows, within the bounds of the recorder.

/** Characters of a segment before it is compressed. */
const SEGMENT_CHARS = 8_388_608
const SEGMENT_MS = 600_000
/** The whole recording is at least so many segments: only whole ones leave. */
const SEGMENTS_MIN = 6

type Header = Omit<Incident, 'parts'>

const momentOf = (at: number) => ({ from: toTimestamp(at), to: toTimestamp(at) })

const NEVER = { signal: new AbortController().signal }

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

/** The incident of a time whose minutes had to leave: what ended badly is left of them. */
function cutIncident(header: Header, parts: IncidentPart[], span: RecordedSpan, at: number): Incident {
  const cut = 'only what ended badly is still kept of this time'
  const lacking = PARTS.filter(({ capability }) => header.capabilities.includes(capability)).map(({ route }) =>
    missingOf(route, 'cut', cut),
  )
  const missing = boundedMissing([...lacking, ...header.missing.filter(({ reason }) => reason !== 'not_followed')])
  return asRecorded({ ...header, missing, parts }, span, at, at)
}

const sizeOf = ({ bytes, open }: MemorySegment) => bytes + open.length

/** The newest segments that end after `since`, within `mostBytes`. */
function newestOf(segments: MemorySegment[], mostBytes: number, since: number): MemorySegment[] {
  let bytes = segments.reduce((sum, segment) => sum + sizeOf(segment), 0)
  const kept = segments.findIndex((segment) => {
    const isKept = bytes <= mostBytes && segment.to >= since
    if (!isKept) bytes -= sizeOf(segment)
    return isKept
  })
  return kept < 0 ? [] : segments.slice(kept)
}

const gapsOf = (segments: readonly MemorySegment[]) =>
  segments.flatMap(({ from, continues }, i) => {
    const before = segments[i - 1]
    return before && !continues ? [[before.to, from] as const] : []
  })

/** The lines of a recording for what was read at `at`. */
async function linesText(lines: readonly object[], at: number): Promise<string> {
  let text = ''
  for (const line of lines) {
    text += `${JSON.stringify({ ...line, at: toTimestamp(at) })}\n`
    if ('upsert' in line) await anotherTurn()
  }
  return text
}

export type MemoryRecording = ReturnType<typeof createMemoryRecording>

/** @param writer Gets every segment too. */
export function createMemoryRecording(
  { maxBytes, keepMs, silenceMs }: { maxBytes: number; keepMs: number; silenceMs: number },
  { now, present }: { now: () => number; present: () => number },
  writer: Writer,
) {
  const pins = createPins(maxBytes / 5, keepMs)
  const mostBytes = maxBytes - maxBytes / 5
  let segments: MemorySegment[] = []
  let header: Header | null = null
  /** When the last segment ends at the latest. */
  let endsAt = 0

  async function write(segment: MemorySegment, lines: readonly object[], at: number): Promise<void> {
    const text = await linesText(lines, at)
    // In one step: a request meanwhile gets all of a reading, or nothing of it.
    if (segment.open === '') segment.openFrom = at
    segment.open += text
    segment.chars += text.length
    segment.to = at
    if (segment.open.length > Math.min(CHUNK_CHARS, mostBytes / 100)) await closeChunk(segment)
    await writer.append(text)
  }

  /** Begins a segment with the state of all routes. */
  async function begin(made: Header, followed: readonly Followed[], at: number, continues: boolean) {
    const last = segments.at(-1)
    if (last) await closeChunk(last)
    header = made
    const clocks = { node: made.clocks.node && momentOf(at), observer: momentOf(now()) }
    const first = `${snapshotLine({ ...made, clocks, parts: [] }, continues, true)}\n`
    const times = { from: at, to: at, openFrom: at }
    const segment: MemorySegment = { ...times, continues, chunks: [], open: first, bytes: 0, chars: 0 }
    await writer.begin(now(), async () => first)
    for (const one of followed) for (const change of one.whole()) await write(segment, [change], at)
    await write(segment, [{ kind: 'seen' }], at)
    // Not before it is whole: its first instant can be asked for at once.
    segments.push(segment)
    endsAt = performance.now() + Math.min(SEGMENT_MS, keepMs / SEGMENTS_MIN)
    return segment
  }

  /** Adds the changes of a reading. */
  async function add(segment: MemorySegment, lines: readonly object[], at: number): Promise<void> {
    await write(segment, lines, at)
    if (!writer.isOpen()) await writer.begin(now(), () => textUntil(segment, Number.POSITIVE_INFINITY))
  }

  function evict(at: number): void {
    pins.evict(at)
    const isEmpty = segments.length === 0
    segments = newestOf(segments, mostBytes, at - keepMs)
    if (!isEmpty && segments.length === 0)
      throw new CaptureFailed(`the state of the router takes more than the ${maxBytes} bytes of "maxBytes"`)
  }

  function span(): RecordedSpan | null {
    const [first, last] = [segments[0], segments.at(-1)]
    if (!first || !last) return null
    const { to } = last
    const from = Math.min(first.from, pins.first())
    const gaps = gapsOf(segments)
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
    return cutIncident(header, pins.partsAt(wanted), known, wanted)
  }

  return {
    begin,
    add,
    evict,
    pin: pins.addChanges,
    span,
    incidentAt,

    /** Whether the next reading begins another segment. */
    isFull: (segment: MemorySegment) =>
      segment.chars >= SEGMENT_CHARS || sizeOf(segment) >= mostBytes / SEGMENTS_MIN || performance.now() >= endsAt,

    /** Forgets the segments that end after `at`. */
    dropAfter(at: number): void {
      segments = segments.filter(({ to }) => to <= at)
    },
  }
}
