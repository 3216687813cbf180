/** Recordings: segments of lines, each a snapshot and what changed after it. Any prefix of a segment is a segment. */
import * as z from 'zod'
import { atOnce, type Steps } from '../internal/async/turns.js'
import { Timestamp, toTimestamp } from '../internal/contract/ids.js'
import type { Awaitable } from '../internal/contract/page.js'
import type { PastAnswers } from '../internal/diagnostics/instants.js'
import { createDiagnosticsRouter, type DiagnosticsRouter } from '../internal/diagnostics/router.js'
import { noopAuth } from '../internal/http/auth.js'
import { ProblemError } from '../internal/http/problem.js'
import {
  boundedMissing,
  INCIDENT_BYTES,
  type Incident,
  type IncidentPart,
  MISSING_MAX,
  type Missing,
  MissingReason,
  missingOf,
} from './format.js'
import { incidentComposition, instantOf } from './inspectors.js'
import { PART_BY_ROUTE, type Part, type Row, rowIdOf } from './parts.js'
import { IncidentRefused, parseBounded, readIncident, trusted } from './read.js'

/** What is replayed. */
export interface ReplaySource {
  /**
   * The incident at `instant` (epoch ms); `null` for the instant that is shown first.
   *
   * @throws IncidentRefused where the file is damaged: requests for that instant then answer 503.
   */
  at(instant: number | null): Awaitable<Incident>
}

/** What a router is built from for each instant of `source`. */
export const pastOf = (source: ReplaySource): PastAnswers => ({
  async at(instant) {
    const incident = await source.at(instant)
    const { recording, clocks } = incident
    const { from, to } = recording ?? clocks.node ?? clocks.observer
    if (instant >= Date.parse(from) && instant <= Date.parse(to)) return incidentComposition(incident)
    const reason = recording
      ? `must be within the recording, from ${from} to ${to}`
      : `must be left out: a capture shows one instant`
    throw new ProblemError('invalid_path', { errors: [{ in: 'path', name: 'instant', reason }] })
  },
})

/**
 * Builds the router over `source`. Below `/at/{epoch ms}` it answers as of that instant, and 422 outside the recording.
 * It requires no key: it is meant for the loopback interface or a browser tab.
 *
 * @throws what `source` throws for the instant that is shown first.
 * @example
 * const replay = await createReplay({ at: () => incident })
 * const server = await startNodeServer(replay, { host: '127.0.0.1' })
 */
export async function createReplay(source: ReplaySource): Promise<DiagnosticsRouter> {
  const first = incidentComposition(await source.at(null))
  return createDiagnosticsRouter({ ...first, auth: noopAuth(), onError: null, recorder: pastOf(source) })
}

/** Most bytes of one segment: its snapshot, and as much again of changes. */
export const SEGMENT_BYTES = 2 * INCIDENT_BYTES
/** Most segments of one recording that are opened; the oldest are left out. */
const SEGMENTS_MAX = 1_000
/** A recorder writes a line every few seconds. A longer gap means that nothing was recorded in between. */
const SILENCE_MS = 45_000

const Rows = z.array(z.record(z.string(), z.unknown()))

/** One line after the snapshot of a segment. `at` is by the clock of the node. */
export const RecordedLine = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('rows'),
    at: Timestamp,
    route: z.string(),
    upsert: Rows.describe('New and changed rows, complete.'),
    patch: z
      .array(z.tuple([z.string(), z.record(z.string(), z.unknown())]))
      .default([])
      .describe('Ids of changed rows, each with its fields that changed.'),
    remove: z.array(z.string()).describe('Ids of removed rows.'),
    order: z.array(z.string()).nullable().describe('Ids of all rows in order; `null` if new rows are appended.'),
    cut: z.boolean().describe('Whether only the newest rows of the list are followed.'),
  }),
  z.object({ kind: z.literal('answer'), at: Timestamp, route: z.string(), answer: z.record(z.string(), z.unknown()) }),
  z
    .object({ kind: z.literal('lost'), at: Timestamp, route: z.string(), reason: MissingReason, detail: z.string() })
    .describe('The route had no answer, until its next line.'),
  z.object({ kind: z.literal('seen'), at: Timestamp }).describe('Nothing else changed until then.'),
])
export type RecordedLine = z.infer<typeof RecordedLine>
/** Changes of one list, as a recorder writes them. */
export type RowsLine = z.input<typeof RecordedLine> & { kind: 'rows' }

const Snapshot = z.object({
  kind: z.literal('snapshot'),
  at: Timestamp,
  continues: z.boolean().describe('Whether the segment before was written up to this one without a gap.'),
  rows_follow: z.boolean().default(false).describe('Whether its rows are the lines up to the first `seen`.'),
  incident: z.looseObject({}),
})

/** The first line of a segment. */
export const snapshotLine = (incident: Incident, continues: boolean, rows_follow = false): string =>
  JSON.stringify({ kind: 'snapshot', at: toTimestamp(instantOf(incident)), continues, rows_follow, incident })

/** One segment as a directory or a page holds it. */
export interface Segment {
  /** Name of the file. */
  readonly name: string
  /** The text of it, whole or cut at any byte; empty where there is none. */
  read(): string
}

/** The rows of one list by their ids. */
export type ListState = Map<string, Row>

/** The list after a change: rows that stay keep their place, new ones come last, unless `order` says otherwise. */
function applyRows(
  list: ListState,
  part: Pick<Part, 'id'>,
  { upsert, patch = [], remove, order }: Pick<RowsLine, 'upsert' | 'patch' | 'remove' | 'order'>,
): ListState {
  for (const id of remove) list.delete(id)
  for (const row of upsert) list.set(rowIdOf(part, row), row)
  for (const [id, fields] of patch) list.set(id, { ...list.get(id), ...fields })
  if (order === null) return list
  return new Map(order.flatMap((id) => (list.has(id) ? [[id, list.get(id) as Row]] : [])))
}

/** The complete lines of a segment. What a crash left of the last one is not read. */
function* linesOf(text: string): Generator<string> {
  for (let from = 0; ; ) {
    const to = text.indexOf('\n', from)
    if (to < 0) return
    yield text.slice(from, to)
    from = to + 1
  }
}

/** The changes after the snapshot, up to the first invalid line. Those of this process need no check. */
function* changesOf(text: string, isOwn = false): Generator<RecordedLine> {
  let isFirst = true
  for (const line of linesOf(text)) {
    if (isFirst) {
      isFirst = false
      continue
    }
    if (isOwn) yield JSON.parse(line)
    else {
      const read = RecordedLine.safeParse(parsedOr(line))
      if (!read.success) return
      yield read.data
    }
  }
}

function parsedOr(line: string): unknown {
  try {
    return parseBounded(line)
  } catch {
    return undefined
  }
}

function snapshotOf(text: string) {
  const [line] = linesOf(text)
  const read = Snapshot.safeParse(line === undefined ? undefined : parsedOr(line))
  return read.success ? read.data : null
}

interface Indexed {
  readonly segment: Segment
  readonly from: number
  readonly to: number
  readonly continues: boolean
  /** The gaps within the segment in which nothing was recorded. */
  readonly silences: readonly (readonly [from: number, to: number])[]
  /** Number of the first line that is invalid, and not cut short by a crash; `null` for none. */
  readonly damagedLine: number | null
}

function indexOf(segment: Segment): Indexed | null {
  const text = segment.read()
  const snapshot = snapshotOf(text)
  if (snapshot === null) return null
  let from = Date.parse(snapshot.at)
  let isWhole = !snapshot.rows_follow
  const silences: [number, number][] = []
  let to = from
  let lines = 1
  for (const { at, kind } of changesOf(text)) {
    lines++
    const next = Math.max(to, Date.parse(at))
    if (isWhole && next - to > SILENCE_MS) silences.push([to, next])
    to = next
    if (isWhole || kind !== 'seen') continue
    isWhole = true
    from = next
  }
  const damagedLine = [...linesOf(text)].length > lines ? lines + 1 : null
  return isWhole ? { segment, from, to, continues: snapshot.continues, silences, damagedLine } : null
}

/** What a recording holds, and the incident of each of its instants. */
export interface Recording extends RecordedSpan, ReplaySource {
  /** The incident at `instant` (epoch ms); of the last one for `null`. @throws IncidentRefused where a segment is damaged. */
  at(instant: number | null): Incident
  /** Names of segments without a whole snapshot, and of the oldest ones beyond 1,000. */
  readonly skipped: readonly string[]
  /** Segments that are read up to an invalid line; the time until the next segment is a gap. */
  readonly damaged: readonly { readonly name: string; readonly line: number }[]
}

const notFollowed = (route: string, detail: string): Missing => missingOf(route, 'not_followed', detail)

/**
 * The incident of one segment at `instant`, line by line, and the time of the last reading up to then.
 *
 * @throws IncidentRefused for a deleted segment or an invalid row.
 */
export function* replaySegment(
  { name, text, from }: { name: string; text: string; from: number },
  instant: number,
  isOwn = false,
): Steps<{ incident: Incident; readAt: number }> {
  const snapshot = snapshotOf(text)
  // A recorder may have deleted it since the recording was opened.
  if (snapshot === null) throw new IncidentRefused('invalid', `the segment ${name} cannot be read any more`)
  const incident = readIncident(snapshot.incident)
  const lists = new Map<string, ListState>()
  const answers = new Map<string, Row>()
  const whole = new Map<string, readonly Row[]>()
  const lacking = new Map<string, Missing>()
  let seenAt = ''
  let readAt = from
  for (const { route, rows, answer } of incident.parts) {
    const part = PART_BY_ROUTE.get(route) as Part
    if (part.id !== null && rows) lists.set(route, new Map(rows.map((row) => [rowIdOf(part, row), row])))
    else if (rows) whole.set(route, rows)
    if (answer) answers.set(route, answer)
  }
  for (const line of changesOf(text, isOwn)) {
    yield
    if (Date.parse(line.at) > instant) break
    readAt = Math.max(readAt, Date.parse(line.at))
    if (line.kind === 'seen') {
      seenAt = line.at
      continue
    }
    const part = PART_BY_ROUTE.get(line.route)
    if (!part) continue
    const read = (row: unknown): Row => {
      if (isOwn) return row as Row
      const parsed = part.row.safeParse(row)
      if (!parsed.success) throw new IncidentRefused('invalid', `the segment has an invalid row of ${part.route}`)
      return parsed.data as Row
    }
    lacking.delete(line.route)
    if (line.kind === 'lost') {
      lists.delete(line.route)
      answers.delete(line.route)
      lacking.set(line.route, missingOf(line.route, line.reason, line.detail))
    } else if (line.kind === 'answer') answers.set(line.route, read(line.answer))
    else {
      const list = applyRows(lists.get(line.route) ?? new Map(), part, { ...line, upsert: line.upsert.map(read) })
      if (!isOwn) for (const [id] of line.patch) list.set(id, read(list.get(id)))
      lists.set(line.route, list)
      if (line.cut) lacking.set(line.route, notFollowed(line.route, 'only the newest rows were followed'))
    }
  }
  const parts = [...PART_BY_ROUTE.keys()].flatMap((route): IncidentPart[] => {
    const list = lists.get(route)
    const rows = list ? [...list.values()] : whole.get(route)
    const answer = answers.get(route)
    if (!rows && !answer) return []
    // A sum is recorded again only when more than its time has changed.
    const isSeen = typeof answer?.observed_at === 'string' && answer.observed_at < seenAt
    return [
      { route, ...(rows && { rows }), ...(answer && { answer: isSeen ? { ...answer, observed_at: seenAt } : answer }) },
    ]
  })
  const still = incident.parts.flatMap(({ route }) =>
    PART_BY_ROUTE.get(route)?.keys.length && instant > from
      ? [notFollowed(route, 'as of the snapshot of its segment')]
      : [],
  )
  const before = incident.missing.filter(({ reason }) => reason !== 'unsteady')
  return {
    incident: { ...incident, parts, missing: boundedMissing([...still, ...lacking.values(), ...before]) },
    readAt,
  }
}

/** When something was recorded, and when not: epoch ms. */
export interface RecordedSpan {
  /** The first instant. */
  readonly from: number
  /** The last instant. */
  readonly to: number
  /** Spans in which nothing was recorded. */
  readonly gaps: readonly (readonly [from: number, to: number])[]
}

/** `incident`, which was read at `readAt`, as what a recording of that span shows at `wanted`. */
export function asRecorded(
  incident: Incident,
  { from, to, gaps }: RecordedSpan,
  wanted: number,
  readAt: number,
): Incident {
  const spanOf = ([from, to]: readonly [number, number]) => ({ from: toTimestamp(from), to: toTimestamp(to) })
  const gap = gaps.find(([a, b]) => a < wanted && wanted < b)
  const { node, observer } = incident.clocks
  const apart = Date.parse(observer.to) - Date.parse((node ?? observer).to)
  const by = (ms: number) => ({ from: toTimestamp(ms), to: toTimestamp(ms) })
  const shown = gaps.slice(-MISSING_MAX).map(spanOf)
  return trusted({
    ...incident,
    // Between two readings, and in a gap, nothing is known but what was read last.
    clocks: { node: node && by(readAt), observer: by(readAt + apart) },
    recording: {
      from: toTimestamp(from),
      to: toTimestamp(to),
      at: toTimestamp(wanted),
      gaps: shown,
      gaps_omitted: gaps.length - shown.length,
      gap: gap ? spanOf(gap) : null,
    },
  })
}

/**
 * Opens the segments of a recording, in any order; the newest 1,000 of more. A segment without a whole snapshot is skipped,
 * and its time is a gap.
 *
 * @throws IncidentRefused where there is no segment that can be read.
 */
export function openRecording(segments: readonly Segment[]): Recording {
  const named = [...segments].sort((a, b) => (a.name < b.name ? -1 : 1))
  const skipped = named.slice(0, -SEGMENTS_MAX).map(({ name }) => name)
  const index = named
    .slice(-SEGMENTS_MAX)
    .flatMap((segment) => {
      const indexed = indexOf(segment)
      if (indexed === null) skipped.push(segment.name)
      return indexed ?? []
    })
    .sort((a, b) => a.from - b.from)
  const [first] = index
  if (!first) throw new IncidentRefused('invalid', 'the recording has no segment that can be read')
  const gaps: [number, number][] = []
  const damaged: { name: string; line: number }[] = []
  let reached = first.from
  let isDamaged = false
  for (const { segment, from, to, continues, silences, damagedLine } of index) {
    if (from > reached && (isDamaged || !continues)) gaps.push([reached, from])
    isDamaged = damagedLine !== null
    if (damagedLine !== null) damaged.push({ name: segment.name, line: damagedLine })
    gaps.push(...silences.map(([a, b]): [number, number] => [a, b]))
    reached = Math.max(reached, to)
  }
  const span: RecordedSpan = { from: first.from, to: reached, gaps }

  function at(instant: number | null): Incident {
    const wanted = Math.min(Math.max(instant ?? span.to, span.from), span.to)
    const { segment, from } = index.findLast(({ from }) => from <= wanted) as Indexed
    const { incident, readAt } = atOnce(replaySegment({ name: segment.name, text: segment.read(), from }, wanted))
    return asRecorded(incident, span, wanted, readAt)
  }

  return { ...span, skipped, damaged, at }
}
