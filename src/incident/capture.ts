/** Captures what a diagnostics router answers as an incident: every list to its end within bounds, and what is missing by name. */
import * as z from 'zod'
import { toTimestamp, utf8Length } from '../internal/contract/ids.js'
import {
  count,
  custom,
  defineOptions,
  flag,
  func,
  type Input,
  readOptions,
  text,
  whole,
  withMethods,
} from '../internal/contract/options.js'
import { isObject, isText } from '../internal/relay-client/wire.js'
import {
  boundedMissing,
  CaptureFailed,
  fitted,
  INCIDENT_BYTES,
  type Incident,
  type IncidentPart,
  type Missing,
  type MissingReason,
  missingOf,
  withoutPrototypes,
} from './format.js'
import { PART_BY_ROUTE, type Part, type Row, rowIdOf } from './parts.js'
import { IncidentRefused, readIncident } from './read.js'
import { redactIncident } from './redact.js'
import {
  absentParts,
  type CapturedRouter,
  describe,
  type FetchReply,
  fetcherOf,
  headerOf,
  nodeTime,
  offeredParts,
} from './source.js'

/** How much a capture has read. */
export interface CaptureProgress {
  /** Routes whose answers were read, each once. */
  readonly routes: number
  /** Rows that were read. Lists are walked two or three times. */
  readonly rows: number
  /** Bytes of the answers, after decompression. */
  readonly bytes: number
}

/** Options of `captureIncident`. */
export const CaptureOptions = defineOptions({
  /** Headers of every request, with the key of the caller. Never written to the incident. @default none */
  headers: custom<Readonly<Record<string, string>>>('an object of header fields', isObject).optional(),
  /** Captures only rows of this user. @default all users */
  user: text().optional(),
  /** Leaves out what ended before this instant (epoch ms): ended connections, commands and sessions, and older messages. @default nothing */
  since: whole().optional(),
  /** Replaces every id by a pseudonym, and drops metadata, payloads, titles and descriptions. @default false */
  redact: flag().default(false),
  /** Most bytes of the incident as JSON text. @default 67108864 (64 MiB), which is also the most */
  maxBytes: count(INCIDENT_BYTES, INCIDENT_BYTES),
  /** Called after each page, with what was read since the capture began. */
  onProgress: func<(progress: CaptureProgress) => void>().default(() => () => {}),
  /** Cancels the capture. */
  signal: withMethods<AbortSignal>('addEventListener').optional(),
  /** Epoch ms by the clock of this machine. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface CaptureOptions extends Input<typeof CaptureOptions> {}

/** Bytes reserved for everything but rows, before rows are dropped. */
const HEADER_BYTES = 65_536
const PAGES_MAX = 10_000
/** Requests for one route that is asked for key by key. */
const KEYS_MAX = 1_000
/** Walks of all lists, at most: until two in a row agree. */
const WALKS_MAX = 3

/** What one walk may still take. */
interface Budget {
  remaining: number
}

/** The rows of one list, or one answer, and what is missing of it. */
interface Captured {
  rows: Map<string, Row>
  answer: Row | null
  missing: Missing[]
}

/** One route under some key. */
function pathOf(
  { path: route, keys }: Part,
  key: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
) {
  const path = route.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(key[name] as string))
  const search = new URLSearchParams(query)
  for (const name of keys) if (!route.includes(`{${name}}`)) search.set(name, key[name] as string)
  return { path, search }
}

/** Walks one list to its end. */
async function walk(
  fetchReply: FetchReply,
  part: Part,
  budget: Budget,
  into: Captured,
  key: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string>> = {},
) {
  const { route, paged } = part
  const of = part.keys.length > 0 ? { ...key } : null
  const say = (reason: MissingReason, detail: string, count: number | null = null) =>
    void into.missing.push(missingOf(route, reason, detail, { of, count }))
  const { path, search } = pathOf(part, key, query)
  const most = paged ? 500 : 1_000
  search.set('limit', String(most))
  if (part.ordered) search.set('order', 'newest')
  let share = budget.remaining / 4
  for (let pages = 0, cursor: string | null = null; pages < PAGES_MAX; pages++) {
    if (cursor !== null) search.set('cursor', cursor)
    let { value, refused } = await fetchReply(`${path}?${search}`)
    if (refused?.status === 422 && search.has('limit')) {
      // A host may allow smaller pages only.
      search.delete('limit')
      ;({ value, refused } = await fetchReply(`${path}?${search}`))
    }
    if (refused?.status === 404 && of !== null) return
    if (refused || !Array.isArray(value?.items))
      return say(refused?.reason ?? 'unreachable', refused?.detail ?? 'the answer is not a list')
    const { items, has_more, next_cursor, omitted, completeness } = value
    let unread = typeof omitted === 'number' ? omitted : 0
    for (const item of items) {
      const read = part.row.safeParse({ ...item, ...key })
      if (!read.success) {
        unread += 1
        continue
      }
      const row = read.data as Row
      const bytes = utf8Length(JSON.stringify(row)) + 1
      share -= bytes
      budget.remaining -= bytes
      if (Math.min(share, budget.remaining) < 0) return say('cut', 'the bound on the bytes of the file was reached')
      into.rows.set(part.id === null ? String(into.rows.size) : rowIdOf(part, row), row)
    }
    if (unread > 0) say('unreadable', 'records that cannot be shown', unread)
    if (isObject(completeness) && completeness.complete === false) say('sampled', 'the router answered with a sample')
    if (!paged) {
      const limit = Number(search.get('limit') ?? 100)
      return items.length < limit ? undefined : say('cut', `only the newest ${items.length} were asked for`)
    }
    if (has_more !== true) return
    if (!isText(next_cursor) || next_cursor === cursor)
      return say('unreachable', 'the list has no next page to ask for')
    cursor = next_cursor
  }
  say('cut', `more than ${PAGES_MAX} pages`)
}

/** One answer that is not a list; under a key it is a row. */
async function readAnswer(
  fetchReply: FetchReply,
  part: Part,
  budget: Budget,
  into: Captured,
  key: Readonly<Record<string, string>> = {},
) {
  const { path, search } = pathOf(part, key, {})
  const of = part.keys.length > 0 ? { ...key } : null
  const { value, refused } = await fetchReply(search.size > 0 ? `${path}?${search}` : path)
  if (refused?.status === 404 && of !== null) return
  const read = value && part.row.safeParse({ ...value, ...key })
  if (!read?.success)
    return void into.missing.push(
      missingOf(part.route, refused?.reason ?? 'unreadable', refused?.detail ?? 'this version cannot read the answer', {
        of,
      }),
    )
  budget.remaining -= utf8Length(JSON.stringify(read.data))
  if (of === null) into.answer = read.data as Row
  else into.rows.set(String(into.rows.size), read.data as Row)
}

const emptyPart = (): Captured => ({ rows: new Map(), answer: null, missing: [] })

const CLOCKED = /_(?:at|ms)$/

/** What of a row says in which state it is: neither counts, nor instants that pass by the clock alone. */
function stateOf(part: Part, row: Row): string {
  return JSON.stringify(part.compared(row), (name, value) =>
    typeof value === 'number' || CLOCKED.test(name) ? null : value,
  )
}

/** How many rows of one list are new, gone or in another state in the second of two walks. */
function differing(part: Part, before: Captured, after: Captured): number {
  let different = [...before.rows.keys()].filter((id) => !after.rows.has(id)).length
  for (const [id, row] of after.rows) {
    const was = before.rows.get(id)
    if (!was || stateOf(part, was) !== stateOf(part, row)) different += 1
  }
  return different
}

const OVER = /^(?:disconnected|closed|expired)$/

/** Whether a row describes something that ended, or happened, before `since`. */
function isOlder(row: Row, since: number): boolean {
  const isOver = row.terminal ? true : OVER.test(String(row.status ?? row.state))
  const isRecord =
    row.status === undefined && row.state === undefined && ('at' in row || 'recorded_at' in row || 'ended_at' in row)
  if (!isOver && !isRecord) return false
  const instants: number[] = []
  JSON.stringify(row, (name, value) => {
    if (/(?:^|_)at$/.test(name) && isText(value) && name !== 'deadline_at') instants.push(Date.parse(value))
    return value
  })
  return instants.length > 0 && Math.max(...instants) < since
}

const userOf = (row: Row): unknown => ('user_id' in row ? row.user_id : 'owner' in row ? row.owner : undefined)

const isRefusedWhole = ({ missing }: Captured): boolean =>
  missing.some(({ of, reason }) => of === null && (reason === 'forbidden' || reason === 'unreachable'))

/** Whether its rows depend on the users that the caller may see. */
const isOfUsers = ({ kind, keys }: Part): boolean => kind === 'list' || keys.includes('user_id')

/** Names what may lack rows of other users, for a caller who may see some users only. */
function markOthersMissing(captured: ReadonlyMap<Part, Captured>): void {
  for (const [part, into] of captured)
    if (isOfUsers(part) && !isRefusedWhole(into))
      into.missing.push(missingOf(part.route, 'other_users', 'the caller may see some users only'))
}

/** Takes out the rows of other users, and what is older than asked for. */
function select(captured: ReadonlyMap<Part, Captured>, user: string | undefined, since: number | undefined): void {
  const scopes = new Set<unknown>([user])
  for (const { rows } of captured.values())
    for (const { admission } of rows.values()) if (isObject(admission)) scopes.add(admission.scope_id)
  for (const [part, { rows, missing }] of captured) {
    let [others, older] = [0, 0]
    for (const [id, row] of rows) {
      const owner = userOf(row)
      const isOther = owner === undefined ? 'scope_id' in row && !scopes.has(row.scope_id) : owner !== user
      if (user !== undefined && isOther) others += Number(rows.delete(id))
      else if (since !== undefined && isOlder(row, since)) older += Number(rows.delete(id))
    }
    const mayLack = isOfUsers(part) && (part.userFilter !== null || part.keys.length > 0 || others > 0)
    if (user !== undefined && mayLack)
      missing.push(missingOf(part.route, 'other_users', 'only the rows of one user were captured'))
    if (older > 0) missing.push(missingOf(part.route, 'older', 'what ended earlier was left out', { count: older }))
  }
}

/** Each combination of the values that the filters of a part can have: those of an enum, and those of captured rows. */
function filtersFor({ keys, row }: Part, captured: ReadonlyMap<Part, Captured>, user: string | undefined): Row[] {
  const rows = [...captured.values()].flatMap(({ rows }) => [...rows.values()])
  const valuesOf = (name: string): Iterable<unknown> => {
    const schema = (row as z.ZodObject).shape[name]
    if (schema instanceof z.ZodEnum) return schema.options
    if (name !== 'user_id') return new Set(rows.map((row) => row[name]).filter(isText))
    return user === undefined ? new Set(rows.map(userOf).filter(isText)) : [user]
  }
  return keys.reduce<Row[]>(
    (all, name) => all.flatMap((one) => [...valuesOf(name)].map((value) => ({ ...one, [name]: value }))),
    [{}],
  )
}

/** The values that captured rows have for the keys of a part, each combination once. */
function keysFor(part: Part, captured: ReadonlyMap<Part, Captured>, user: string | undefined): Row[] {
  if (part.route !== part.path) return filtersFor(part, captured, user)
  const seen = new Map<string, Row>()
  const add = (values: unknown[]) => {
    if (!values.every(isText)) return
    seen.set(JSON.stringify(values), Object.fromEntries(part.keys.map((name, i) => [name, values[i]])))
  }
  const isOfUser = user !== undefined && part.keys.includes('user_id')
  if (isOfUser && part.keys.length === 1) add([user])
  for (const { rows } of captured.values())
    for (const row of rows.values())
      if (!isOfUser || userOf(row) === user)
        add(part.keys.map((name) => (name === 'user_id' ? userOf(row) : row[name])))
  return [...seen.values()]
}

/** Walks all lists and answers without keys, once. */
async function walkAll(
  fetchReply: FetchReply,
  parts: readonly Part[],
  user: string | undefined,
  budget: Budget,
): Promise<Map<Part, Captured>> {
  const captured = new Map<Part, Captured>()
  for (const part of parts) {
    const into = emptyPart()
    captured.set(part, into)
    if (part.kind === 'answer') await readAnswer(fetchReply, part, budget, into)
    else {
      const query: Record<string, string> =
        user !== undefined && part.userFilter !== null ? { [part.userFilter]: user } : {}
      await walk(fetchReply, part, budget, into, {}, query)
    }
  }
  return captured
}

/** Walks until two walks in a row agree. */
async function walkUntilSteady(
  fetchReply: FetchReply,
  parts: readonly Part[],
  user: string | undefined,
  maxBytes: number,
) {
  let before = await walkAll(fetchReply, parts, user, { remaining: maxBytes })
  for (let walks = 2; ; walks++) {
    const budget = { remaining: maxBytes }
    const after = await walkAll(fetchReply, parts, user, budget)
    const unsteady = [...after].map(
      ([part, now]) => [now, part, differing(part, before.get(part) as Captured, now)] as const,
    )
    const consistent = unsteady.every(([, , count]) => count === 0)
    if (consistent || walks === WALKS_MAX) {
      for (const [now, { route }, count] of unsteady)
        if (count > 0)
          now.missing.push(
            missingOf(route, 'unsteady', 'rows that were new, gone or in another state in the second walk', { count }),
          )
      return { captured: after, consistent, budget }
    }
    before = after
  }
}

/** Reads the parts that are asked for key by key. */
async function readKeyed(
  fetchReply: FetchReply,
  parts: readonly Part[],
  captured: Map<Part, Captured>,
  user: string | undefined,
  budget: Budget,
): Promise<void> {
  for (const part of parts) {
    const into = emptyPart()
    captured.set(part, into)
    const whole = captured.get(PART_BY_ROUTE.get(part.path) as Part)
    const refused = whole?.missing.find(({ of, reason }) => of === null && reason === 'forbidden')
    if (refused) {
      into.missing.push({ ...refused, route: part.route })
      continue
    }
    const keys = keysFor(part, captured, user) as Readonly<Record<string, string>>[]
    for (const key of keys.slice(0, KEYS_MAX)) {
      if (budget.remaining < 0) break
      if (part.kind === 'answer') await readAnswer(fetchReply, part, budget, into, key)
      else await walk(fetchReply, part, budget, into, key)
    }
    const remaining = keys.length - KEYS_MAX
    if (remaining > 0 || budget.remaining < 0)
      into.missing.push(
        missingOf(part.route, 'cut', `asked for at most ${KEYS_MAX} keys`, { count: remaining > 0 ? remaining : null }),
      )
  }
}

/**
 * Captures what `router` answers now. All lists are walked by their cursors, until two walks in a row find the same rows
 * in the same states, at most three times. A source that fails, is forbidden or is cut by a bound is named in `missing`.
 *
 * @throws CaptureFailed where the router refuses the caller or does not answer at all, `maxBytes` is too small, or the file
 * could not be opened again; the reason of `signal` when cancelled.
 * @example
 * const incident = await captureIncident(router, { headers: { 'x-admin-key': key }, redact: true })
 * await writeFile('incident.json', JSON.stringify(incident))
 */
export async function captureIncident(router: CapturedRouter, options: CaptureOptions = {}): Promise<Incident> {
  const { headers = {}, user, since, redact, maxBytes, onProgress, signal, now } = readOptions(CaptureOptions, options)
  const routes = new Set<string>()
  let [rows, bytes] = [0, 0]
  const fetched = fetcherOf(router, headers, signal, (length) => {
    bytes += length
  })
  let [limited, isNarrowed] = [false, false]
  const fetchReply: FetchReply = async (path) => {
    const reply = await fetched(path)
    if (reply.value) {
      routes.add(path.split('?')[0] as string)
      rows += Array.isArray(reply.value.items) ? reply.value.items.length : 1
      onProgress({ routes: routes.size, rows, bytes })
    }
    limited ||= reply.refused?.reason === 'forbidden'
    isNarrowed ||= reply.refused?.isNarrowed === true
    return reply
  }
  const observer = { from: toTimestamp(now()) }
  const described = await describe(fetchReply)
  const from = await nodeTime(fetchReply)
  const parts = offeredParts(described)
  const keyless = parts.filter(({ keys }) => keys.length === 0)
  const { captured, consistent, budget } = await walkUntilSteady(fetchReply, keyless, user, maxBytes - HEADER_BYTES)
  await readKeyed(
    fetchReply,
    parts.filter(({ keys }) => keys.length > 0),
    captured,
    user,
    budget,
  )
  if (user !== undefined || since !== undefined) select(captured, user, since)
  const to = await nodeTime(fetchReply)
  if (isNarrowed) markOthersMissing(captured)
  const node = from !== null && to !== null ? { from, to } : null
  const incident: Incident = {
    ...headerOf(described, { node, observer: { ...observer, to: toTimestamp(now()) } }),
    user: user ?? null,
    since: since === undefined ? null : toTimestamp(since),
    limited,
    consistent,
    missing: boundedMissing([
      ...[...captured.values()].flatMap(({ missing }) => missing),
      ...absentParts(described, new Set(captured.keys())),
    ]),
    parts: [...captured].flatMap(([part, kept]) => partsOf(part, kept)),
  }
  return readBack(fitted(withoutPrototypes(redact ? redactIncident(incident) : incident), maxBytes))
}

/** The incident as a reader of the file gets it. @throws CaptureFailed for one that would be refused. */
function readBack(incident: Incident): Incident {
  try {
    return readIncident(JSON.stringify(incident))
  } catch (cause) {
    if (!(cause instanceof IncidentRefused)) throw cause
    throw new CaptureFailed(`the capture could not be opened again: ${cause.message}`, { cause })
  }
}

/** The part as the file has it. A list that was refused before its first page has none. */
function partsOf({ route, kind, keys, ordered }: Part, into: Captured): IncidentPart[] {
  const { rows, answer } = into
  if (kind === 'answer' && keys.length === 0) return answer === null ? [] : [{ route, answer }]
  const kept = [...rows.values()]
  return rows.size === 0 && isRefusedWhole(into) ? [] : [{ route, rows: ordered ? kept.reverse() : kept }]
}
