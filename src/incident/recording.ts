/** Recordings: segments of lines, each a snapshot and what changed after it. Any prefix of a segment is a segment. */
import * as z from 'zod'
import { Timestamp, toTimestamp } from '../contract/ids.js'
import { createDiagnosticsRouter, type DiagnosticsRouter } from '../diagnostics/router.js'
import { noopAuth } from '../http/auth.js'
import { type Mountable, toHandler } from '../http/engine.js'
import { ProblemError } from '../http/problem.js'
import { type HttpReply, problemReply } from '../http/respond.js'
import {
  boundedMissing,
  INCIDENT_BYTES,
  type Incident,
  type IncidentPart,
  MISSING_MAX,
  type Missing,
  missingOf,
} from './format.js'
import { incidentComposition, instantOf } from './inspectors.js'
import { PART_BY_ROUTE, type Part, type Row, rowIdOf } from './parts.js'
import { IncidentRefused, parseBounded, readIncident } from './read.js'

// The routers over an incident or a recording: one for the instant that was asked for, and one for each other instant.

/** What is replayed. */
export interface ReplaySource {
  /**
   * The incident at `instant` (epoch ms); `null` for the instant that is shown first.
   *
   * @throws IncidentRefused where the file is damaged: requests for that instant then answer 503.
   */
  at(instant: number | null): Incident
}

/** A router that serves files. It requires no key: it is meant for the loopback interface or a browser tab. */
export interface Replay extends Mountable {
  /** Path below which it answers. */
  readonly prefix: string
  /** Whether a path is below the prefix. */
  owns(pathname: string): boolean
}

/** Throws a problem for an instant that `incident` was not recorded at. */
function requireWithin({ recording, clocks }: Incident, instant: number): void {
  const { from, to } = recording ?? clocks.node ?? clocks.observer
  if (instant >= Date.parse(from) && instant <= Date.parse(to)) return
  const reason = recording
    ? `must be within the recording, from ${from} to ${to}`
    : `must be left out: a capture shows one instant`
  throw new ProblemError('invalid_path', { errors: [{ in: 'path', name: 'instant', reason }] })
}

/** Instants whose routers are kept: more than a slider passes in one movement. */
const KEPT = 8
const INSTANT = /^\/at\/(\d{1,15})(?:\/|$)/

/**
 * Builds the router over `source`. Below `/at/{epoch ms}` it answers as of that instant, and 422 outside the recording.
 *
 * @throws what `source` throws for the instant that is shown first.
 * @example
 * const replay = createReplay({ at: () => incident })
 * const server = await startNodeServer(replay, { host: '127.0.0.1' })
 */
export function createReplay(source: ReplaySource): Replay {
  const routers = new Map<number | null, DiagnosticsRouter>()

  function routerAt(instant: number | null): DiagnosticsRouter {
    const known = routers.get(instant)
    if (known) return known
    const prefix = instant === null ? '' : `/at/${instant}`
    const incident = source.at(instant)
    if (instant !== null) requireWithin(incident, instant)
    const router = createDiagnosticsRouter({
      ...incidentComposition(incident),
      auth: noopAuth(),
      prefix,
      onError: null,
    })
    const [oldest] = [...routers.keys()].filter((kept) => kept !== null)
    if (routers.size > KEPT && oldest !== undefined) routers.delete(oldest)
    routers.set(instant, router)
    return router
  }

  const first = routerAt(null)
  const handler = toHandler<HttpReply>(async (request, info) => {
    const [, instant] = INSTANT.exec(new URL(request.url).pathname) ?? []
    try {
      return await (instant === undefined ? first : routerAt(Number(instant))).reply(request, info)
    } catch (error) {
      if (error instanceof ProblemError) return problemReply(error.code, error.extra)
      if (error instanceof IncidentRefused) return problemReply('inspector_unavailable')
      throw error
    }
  })
  return Object.assign(handler, { prefix: '', owns: () => true })
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
    remove: z.array(z.string()).describe('Ids of removed rows.'),
    order: z.array(z.string()).nullable().describe('Ids of all rows in order; `null` if new rows are appended.'),
    cut: z.boolean().describe('Whether only the newest rows of the list are followed.'),
  }),
  z.object({ kind: z.literal('answer'), at: Timestamp, route: z.string(), answer: z.record(z.string(), z.unknown()) }),
  z.object({ kind: z.literal('seen'), at: Timestamp }).describe('Nothing else changed until then.'),
])
export type RecordedLine = z.infer<typeof RecordedLine>

const Snapshot = z.object({
  kind: z.literal('snapshot'),
  at: Timestamp,
  continues: z.boolean().describe('Whether the segment before was written up to this one without a gap.'),
  incident: z.looseObject({}),
})

/** The first line of a segment. */
export const snapshotLine = (incident: Incident, continues: boolean): string =>
  JSON.stringify({ kind: 'snapshot', at: toTimestamp(instantOf(incident)), continues, incident })

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
export function applyRows(
  list: ListState,
  part: Pick<Part, 'id'>,
  { upsert, remove, order }: Pick<RecordedLine & { kind: 'rows' }, 'upsert' | 'remove' | 'order'>,
): ListState {
  for (const id of remove) list.delete(id)
  for (const row of upsert) list.set(rowIdOf(part, row), row)
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

/** The changes after the snapshot, up to the first invalid line. */
function* changesOf(text: string): Generator<RecordedLine> {
  let isFirst = true
  for (const line of linesOf(text)) {
    if (isFirst) {
      isFirst = false
      continue
    }
    const read = RecordedLine.safeParse(parsedOr(line))
    if (!read.success) return
    yield read.data
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
}

function indexOf(segment: Segment): Indexed | null {
  const text = segment.read()
  const snapshot = snapshotOf(text)
  if (snapshot === null) return null
  const from = Date.parse(snapshot.at)
  const silences: [number, number][] = []
  let to = from
  for (const { at } of changesOf(text)) {
    const next = Math.max(to, Date.parse(at))
    if (next - to > SILENCE_MS) silences.push([to, next])
    to = next
  }
  return { segment, from, to, continues: snapshot.continues, silences }
}

/** What a recording holds, and the incident of each of its instants. */
export interface Recording extends ReplaySource {
  /** Epoch ms of the first and the last instant. */
  readonly from: number
  /** Epoch ms of the last instant. */
  readonly to: number
  /** Spans in epoch ms in which nothing was recorded. */
  readonly gaps: readonly (readonly [from: number, to: number])[]
  /** Names of segments without a whole snapshot, and of the oldest ones beyond 1,000. */
  readonly skipped: readonly string[]
}

const notFollowed = (route: string, detail: string): Missing => missingOf(route, 'not_followed', detail)

/** The incident of one segment at `instant`. @throws IncidentRefused for a deleted segment or an invalid row. */
function replaySegment({ segment, from }: Indexed, instant: number): Incident {
  const text = segment.read()
  const snapshot = snapshotOf(text)
  // A recorder may have deleted it since the recording was opened.
  if (snapshot === null) throw new IncidentRefused('invalid', `the segment ${segment.name} cannot be read any more`)
  const incident = readIncident(snapshot.incident)
  const lists = new Map<string, ListState>()
  const answers = new Map<string, Row>()
  const cut = new Set<string>()
  let seenAt = ''
  for (const { route, rows, answer } of incident.parts) {
    const part = PART_BY_ROUTE.get(route) as Part
    if (part.id !== null && rows) lists.set(route, new Map(rows.map((row) => [rowIdOf(part, row), row])))
    if (answer) answers.set(route, answer)
  }
  for (const line of changesOf(text)) {
    if (Date.parse(line.at) > instant) break
    if (line.kind === 'seen') {
      seenAt = line.at
      continue
    }
    const part = PART_BY_ROUTE.get(line.route)
    if (!part) continue
    const read = (row: unknown): Row => {
      const parsed = part.row.safeParse(row)
      if (!parsed.success) throw new IncidentRefused('invalid', `the segment has an invalid row of ${part.route}`)
      return parsed.data as Row
    }
    if (line.kind === 'answer') answers.set(line.route, read(line.answer))
    else {
      const list = lists.get(line.route) ?? new Map()
      lists.set(line.route, applyRows(list, part, { ...line, upsert: line.upsert.map(read) as never }))
      if (line.cut) cut.add(line.route)
    }
  }
  const parts = incident.parts.map(({ route, rows, answer }): IncidentPart => {
    const list = lists.get(route)
    if (list) return { route, rows: [...list.values()] }
    const latest = answers.get(route) ?? answer
    // A sum is recorded again only when more than its time has changed.
    const isSeen = typeof latest?.observed_at === 'string' && latest.observed_at < seenAt
    return {
      route,
      ...(rows && { rows }),
      ...(latest && { answer: isSeen ? { ...latest, observed_at: seenAt } : latest }),
    }
  })
  const still = incident.parts.flatMap(({ route }) => {
    const part = PART_BY_ROUTE.get(route)
    if (cut.has(route)) return [notFollowed(route, 'only the newest rows were followed')]
    return part?.keys.length && instant > from ? [notFollowed(route, 'as of the snapshot of its segment')] : []
  })
  const missing = boundedMissing([...still, ...incident.missing.filter(({ reason }) => reason !== 'unsteady')])
  return { ...incident, parts, missing }
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
  let reached = first.from
  for (const { from, to, continues, silences } of index) {
    if (from > reached && !continues) gaps.push([reached, from])
    gaps.push(...silences.map(([a, b]): [number, number] => [a, b]))
    reached = Math.max(reached, to)
  }
  const spanOf = ([from, to]: [number, number]) => ({ from: toTimestamp(from), to: toTimestamp(to) })
  const shown = gaps.slice(-MISSING_MAX).map(spanOf)

  function at(instant: number | null): Incident {
    const wanted = Math.min(Math.max(instant ?? reached, (first as Indexed).from), reached)
    const indexed = index.findLast(({ from }) => from <= wanted) as Indexed
    const incident = replaySegment(indexed, wanted)
    // Of an instant within a gap, nothing is known but what was last observed before it.
    const gap = gaps.find(([a, b]) => a < wanted && wanted < b)
    const observed = gap?.[0] ?? wanted
    const { node, observer } = incident.clocks
    const apart = Date.parse(observer.to) - Date.parse((node ?? observer).to)
    const by = (ms: number) => ({ from: toTimestamp(ms), to: toTimestamp(ms) })
    return {
      ...incident,
      clocks: { node: node && by(observed), observer: by(observed + apart) },
      recording: {
        from: toTimestamp((first as Indexed).from),
        to: toTimestamp(reached),
        at: toTimestamp(wanted),
        gaps: shown,
        gaps_omitted: gaps.length - shown.length,
        gap: gap ? spanOf(gap) : null,
      },
    }
  }

  return { from: first.from, to: reached, gaps, skipped, at }
}
