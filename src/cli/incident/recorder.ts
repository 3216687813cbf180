/** Writes a recording: a snapshot, what the lists and the sums tell after it, and a new snapshot every few minutes. */
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { sleep } from '../../async/timer.js'
import { toTimestamp } from '../../contract/ids.js'
import type { Incident } from '../../incident/format.js'
import { PART_BY_ROUTE, PARTS, type Part, type Row, rowIdOf } from '../../incident/parts.js'
import { applyRows, type ListState, type RecordedLine, type Segment, snapshotLine } from '../../incident/recording.js'
import { createReader } from '../reader/reader.js'
import { captureFrom } from './capture.js'
import { lockDirectory, readSegment } from './files.js'

export interface RecorderOptions {
  url: string
  key: string | null
  directory: string
  /** How far back the recording reaches. */
  keepMs: number
  /** Most bytes of all segments. */
  maxBytes: number
  signal: AbortSignal
  /** Called with each sentence about a lost connection or a refusal. */
  tell(sentence: string): void
}

const NAME = /^segment-(\d{15})-\d+\.ndjson$/
const SEGMENT_MS = 600_000
/** Bytes of changes after which a new segment begins. */
const CHANGES_BYTES = 8_388_608
/** Interval at which the sums are read, and at which a line confirms that the recorder is running. */
const EVERY_MS = 5_000
const RETRY_MS = 2_000

/** The segments of a directory, the oldest first. @throws an Error that names a directory that cannot be read. */
export function segmentsIn(directory: string): Segment[] {
  const names = readdirSync(directory).filter((name) => NAME.test(name))
  return names.sort().map((name) => ({ name, read: () => readSegment(join(directory, name)) }))
}

/** Deletes segments that end before `keepMs`, and the oldest ones beyond `maxBytes`; never the one that is being written. */
function prune({ directory, keepMs, maxBytes }: RecorderOptions, now: number): void {
  const names = readdirSync(directory)
    .filter((name) => NAME.test(name))
    .sort()
  let bytes = names.reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
  for (const [i, name] of names.slice(0, -1).entries()) {
    const endedAt = Number(NAME.exec(names[i + 1] as string)?.[1])
    if (endedAt >= now - keepMs && bytes <= maxBytes) return
    bytes -= statSync(join(directory, name)).size
    rmSync(join(directory, name))
  }
}

/** When the snapshot was complete, by the clock of the router. */
const takenAt = ({ clocks }: Incident) => Date.parse((clocks.node ?? clocks.observer).to)

/** One file. Each line is written whole, in one call: a crash leaves at most the beginning of the last one. */
function openSegment(directory: string, incident: Incident, continues: boolean) {
  const name = `segment-${String(Date.now()).padStart(15, '0')}-${process.pid}.ndjson`
  const file = openSync(join(directory, name), 'wx', 0o600)
  const openedAt = Date.now()
  let bytes = 0
  let latest = takenAt(incident)
  writeSync(file, `${snapshotLine(incident, continues)}\n`)
  return {
    /** Whether a new one is due. */
    isFull: () => bytes > CHANGES_BYTES || Date.now() - openedAt > SEGMENT_MS,
    /** `at` of a line never goes back. */
    write(at: string | null, line: Record<string, unknown>) {
      latest = Math.max(latest, at === null ? latest : Date.parse(at))
      bytes += writeSync(file, `${JSON.stringify({ ...line, at: toTimestamp(latest) })}\n`)
    },
    close: () => closeSync(file),
  }
}

type OpenSegment = ReturnType<typeof openSegment>

/** One page of a list, and when it was read. */
interface ListPage {
  readonly items: readonly Row[]
  readonly has_more: boolean
  readonly asOf: string
}

/** The lists of an incident by their routes, and its sums. */
function stateOf({ parts }: Incident) {
  const lists = new Map<string, ListState>()
  const answers = new Map<string, Row>()
  for (const { route, rows, answer } of parts) {
    const part = PART_BY_ROUTE.get(route) as Part
    if (part.watched && rows) lists.set(route, new Map(rows.map((row) => [rowIdOf(part, row), row])))
    if (answer) answers.set(route, answer)
  }
  return { lists, answers }
}

/** The line that makes `before` of what a list shows now; `null` where nothing changed. `before` is changed with it. */
function changeOf(
  part: Part,
  before: ListState,
  { items, has_more: cut }: ListPage,
): { list: ListState; line: Omit<RecordedLine & { kind: 'rows' }, 'at'> } | null {
  const shown = part.ordered ? items.toReversed() : items
  const now = new Map(shown.map((row) => [rowIdOf(part, row), row]))
  const upsert = [...now].flatMap(([id, row]) => (JSON.stringify(before.get(id)) === JSON.stringify(row) ? [] : [row]))
  // What left the newest page may only be older than those now.
  const remove = cut ? [] : [...before.keys()].filter((id) => !now.has(id))
  const kept = [...before.keys()].filter((id) => !now.has(id) && !remove.includes(id))
  const wanted = [...kept, ...now.keys()]
  if (upsert.length === 0 && remove.length === 0 && wanted.join('\n') === [...before.keys()].join('\n')) return null
  const list = applyRows(new Map(before), part, { upsert, remove, order: null })
  const order = [...list.keys()].join('\n') === wanted.join('\n') ? null : wanted
  const ordered = order === null ? list : applyRows(list, part, { upsert: [], remove: [], order })
  return { list: ordered, line: { kind: 'rows', route: part.route, upsert, remove, order, cut } }
}

const viewOf = ({ route, ordered }: Part): string =>
  `${route}?${new URLSearchParams({ limit: '500', ...(ordered && { order: 'newest' }) })}`

/**
 * One session: from a snapshot until the connection is lost, or a list is refused.
 *
 * @param started Called with the time of the snapshot, once it is written.
 */
async function session(options: RecorderOptions, started: (at: string) => void): Promise<void> {
  const { url, key, directory, signal } = options
  const reader = createReader(url, key)
  const ended = new AbortController()
  const end = () => ended.abort()
  signal.addEventListener('abort', end)
  let incident = await captureFrom(url, key, { signal })
  // Lists have no time of their own: they are read this much later than the snapshot, whose clock may not be ours.
  let offset = takenAt(incident) - performance.now()
  let state = stateOf(incident)
  let segment: OpenSegment = openSegment(directory, incident, false)
  prune(options, Date.now())
  started(toTimestamp(takenAt(incident)))
  const latest = new Map<string, ListPage>()
  const followed = PARTS.filter(({ route, watched }) => watched && state.lists.has(route))
  const views = followed.map(viewOf)

  /** Writes what the lists show now. */
  function follow(): void {
    for (const part of followed) {
      const page = latest.get(viewOf(part))
      const change = page && changeOf(part, state.lists.get(part.route) ?? new Map(), page)
      if (!change) continue
      state.lists.set(part.route, change.list)
      segment.write(page.asOf, change.line)
    }
  }

  async function fetchAnswer(route: string): Promise<Row | undefined> {
    const answer = await reader.fetchRoute(route, ended.signal)
    return answer.problem === undefined && !ended.signal.aborted ? (answer.value as Row) : undefined
  }

  /** Reads every list. A lost connection ends the session: what happens until it is back needs a new snapshot. */
  async function readLists(): Promise<void> {
    for (const view of views) {
      const read = await reader.fetchRoute(view, ended.signal)
      if (ended.signal.aborted) return
      if (read.problem !== undefined) return end()
      latest.set(view, { ...(read.value as ListPage), asOf: toTimestamp(Math.round(offset + performance.now())) })
    }
    follow()
  }

  async function readSums(): Promise<void> {
    for (const [route, before] of state.answers) {
      const answer = await fetchAnswer(route)
      if (answer === undefined) continue
      const { observed_at: _, ...fresh } = answer
      const { observed_at: __, ...known } = before
      if (JSON.stringify(fresh) === JSON.stringify(known)) continue
      state.answers.set(route, answer)
      segment.write(null, { kind: 'answer', route, answer })
    }
  }

  async function beat(): Promise<void> {
    while (!ended.signal.aborted) {
      await sleep(EVERY_MS, ended.signal)
      if (ended.signal.aborted) return
      await readLists()
      await readSums()
      // The lists were read until then, changed or not.
      const read = [...latest.values()]
        .map(({ asOf }) => asOf)
        .sort()
        .at(-1)
      if (read) segment.write(read, { kind: 'seen' })
      if (!segment.isFull()) continue
      incident = await captureFrom(url, key, { signal: ended.signal })
      offset = takenAt(incident) - performance.now()
      segment.close()
      segment = openSegment(directory, incident, true)
      state = stateOf(incident)
      follow()
      prune(options, Date.now())
    }
  }

  try {
    await beat()
  } catch (error) {
    if (!ended.signal.aborted) throw error
  } finally {
    end()
    signal.removeEventListener('abort', end)
    segment.close()
  }
}

/**
 * Records until `signal` aborts. A lost connection ends a segment; the next one begins with a snapshot, once the router
 * answers again.
 *
 * @throws what the first snapshot throws, and an Error if another process records to the directory.
 */
export async function record(options: RecorderOptions): Promise<void> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const unlock = lockDirectory(options.directory)
  try {
    await recordUntilAborted(options)
  } finally {
    unlock()
  }
}

async function recordUntilAborted(options: RecorderOptions): Promise<void> {
  let isFirst = true
  while (!options.signal.aborted) {
    try {
      await session(options, (at) => {
        if (!isFirst) options.tell(`recording again, since ${at}`)
      })
      if (!options.signal.aborted)
        options.tell('the connection was lost: nothing is recorded until the router answers again')
    } catch (error) {
      if (options.signal.aborted) return
      if (isFirst) throw error
      options.tell(error instanceof Error ? error.message : String(error))
    }
    isFirst = false
    await sleep(RETRY_MS, options.signal)
  }
}
