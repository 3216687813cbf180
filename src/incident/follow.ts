/** Follows a router: reads its lists and sums again and again, and says what has changed. */
import { anotherTurn, unref } from '../internal/async/timer.js'
import { isObject, isText } from '../internal/relay-client/wire.js'
import type { Part, Row } from './parts.js'
import { rowIdOf } from './parts.js'
import type { ListState, RecordedLine, RowsLine } from './recording.js'
import type { FetchReply, Refused } from './source.js'

/** Rows of one request, and of one line: what is read and written without a break. */
const PAGE_ROWS = 250
/** Most rows of one list that are followed: the newest, and a page of each of `BAD_FILTERS`. */
const FOLLOWED_ROWS = 2_000
/** Filters for rows that ended badly, by `isBad` of `memory-segments.ts`. A list that is longer than what is followed is also read with each of them. */
const BAD_FILTERS: Readonly<Record<string, readonly Row[]>> = {
  '/connections': [{ status: 'disconnected' }],
  '/delivery/commands': [{ state: 'failed' }, { state: 'expired' }, { state: 'rejected' }],
}

type WithoutTime<Line> = Line extends unknown ? Omit<Line, 'at'> : never
/** A change, before it has its time. */
export type Change = WithoutTime<Exclude<RecordedLine, { kind: 'rows' | 'seen' }>> | Omit<RowsLine, 'at'>

interface ListPage {
  readonly path: string
  readonly etag: string | null
  readonly rows: readonly Row[]
  /** The cursor of the next page; `null` for the last one. */
  readonly next: string | null
  /** Whether the router answered with a sample, or could not show all of its records. */
  readonly isPartial: boolean
}

/** One route that is followed. */
export interface Followed {
  readonly part: Part
  /** Reads it. Returns what has changed. @throws the signal's reason if cancelled. */
  read(): Promise<readonly Change[]>
  /** Whether it had no answer. */
  isLost(): boolean
  /** The changes that make what was read last from nothing. */
  whole(): readonly Change[]
  /** The row with this id, as it was read last. */
  row(id: string): Row | undefined
}

function toListPage(path: string, etag: string | null, value: Readonly<Record<string, unknown>>): ListPage | null {
  const { items, has_more, next_cursor, omitted, completeness } = value
  if (!Array.isArray(items)) return null
  const isSample = isObject(completeness) && completeness.complete === false
  return {
    path,
    etag,
    rows: items,
    next: has_more === true && isText(next_cursor) ? next_cursor : null,
    isPartial: isSample || (typeof omitted === 'number' && omitted > 0),
  }
}

/** Lists as lines of at most `PAGE_ROWS` new and `PAGE_ROWS` changed rows each. */
function* linesOf(line: Omit<RowsLine, 'at'>): Generator<Change> {
  const { upsert, patch = [], remove, order } = line
  const last = Math.max(upsert.length, patch.length) - PAGE_ROWS
  for (let i = 0; i === 0 || i < last + PAGE_ROWS; i += PAGE_ROWS) {
    const some = { upsert: upsert.slice(i, i + PAGE_ROWS), patch: patch.slice(i, i + PAGE_ROWS) }
    yield { ...line, ...some, remove: i === 0 ? remove : [], order: i >= last ? order : null }
  }
}

/** The fields that changed; `null` if none did. */
function changedFields(before: Row, after: Row): Row | null {
  const changed: Record<string, unknown> = {}
  let isChanged = false
  for (const name of Object.keys(after)) {
    const [was, is] = [before[name], after[name]]
    if (was === is || (typeof is === 'object' && JSON.stringify(was) === JSON.stringify(is))) continue
    changed[name] = is
    isChanged = true
  }
  return isChanged ? changed : null
}

/**
 * What makes `before` of `after`; `null` if nothing has changed. Rows that did not change become those of `before`, which the
 * next comparison sees at once.
 */
function changeOf(route: string, before: ListState, after: ListState, cut: boolean): Omit<RowsLine, 'at'> | null {
  const upsert: Row[] = []
  const patch: [string, Row][] = []
  for (const [key, row] of after) {
    const was = before.get(key)
    if (was === row) continue
    if (!was || Object.keys(was).some((name) => !(name in row))) upsert.push(row)
    else {
      const fields = changedFields(was, row)
      if (fields) patch.push([key, fields])
      else after.set(key, was)
    }
  }
  const remove: string[] = []
  // In order: what stays as it was, and then what is new.
  const keys = after.keys()
  let isInOrder = true
  for (const key of before.keys())
    if (!after.has(key)) remove.push(key)
    else if (isInOrder) isInOrder = keys.next().value === key
  for (const key of keys) if (before.has(key)) isInOrder = false
  if (isInOrder && upsert.length + patch.length + remove.length === 0) return null
  return { kind: 'rows', route, upsert, patch, remove, order: isInOrder ? null : [...after.keys()], cut }
}

function followList(part: Part, fetchReply: FetchReply, signal: AbortSignal): Omit<Followed, 'part'> {
  const { route, ordered } = part
  let limit: string | null = String(PAGE_ROWS)
  let pages: readonly ListPage[] = []
  let bad: readonly ListPage[] = []
  let listed: Row[] = []
  let rows: ListState = new Map()
  let cut = false
  let lost: Change | null = null
  const ids = new WeakMap<Row, string>()

  /** Its id, which is made once for a row that stays the same object. */
  function idOf(row: Row): string {
    const id = ids.get(row) ?? rowIdOf(part, row)
    ids.set(row, id)
    return id
  }

  async function readPage(
    cursor: string | null,
    known: ListPage | undefined,
    filter: Row = {},
  ): Promise<ListPage | Refused> {
    const search = new URLSearchParams({ ...(limit && { limit }), ...(ordered && { order: 'newest' }), ...filter })
    if (cursor !== null) search.set('cursor', cursor)
    const path = `${part.path}?${search}`
    const same = known?.path === path ? known : undefined
    const reply = await fetchReply(path, same?.etag)
    const { value, refused } = reply
    if (same && refused?.status === 304) return same
    if (limit && refused?.status === 422) {
      // A host may allow smaller pages only.
      limit = null
      return readPage(cursor, undefined, filter)
    }
    const page = value ? toListPage(path, reply.etag, value) : null
    const unreadable = {
      status: 0,
      isNarrowed: false,
      reason: 'unreachable',
      detail: 'the answer is not a list',
    } as const
    return page ?? refused ?? unreadable
  }

  /** The newest rows that ended badly, if `read` may not have them. */
  async function readBad(read: readonly ListPage[]): Promise<ListPage[] | Refused> {
    if (!read.at(-1)?.next) return []
    const found: ListPage[] = []
    for (const [i, filter] of (BAD_FILTERS[route] ?? []).entries()) {
      await anotherTurn()
      signal.throwIfAborted()
      const page = await readPage(null, bad[i], filter)
      if ('status' in page) return page
      found.push(page)
    }
    return found
  }

  /** The pages as they are now; those that have not changed are the same objects as before. */
  async function readPages(): Promise<ListPage[] | Refused> {
    const read: ListPage[] = []
    let count = 0
    for (let cursor: string | null = null; ; ) {
      const page: ListPage | Refused = await readPage(cursor, pages[read.length])
      if ('status' in page) return page
      read.push(page)
      count += page.rows.length
      cursor = page.next
      if (cursor === null || count >= FOLLOWED_ROWS) return read
      await anotherTurn()
      signal.throwIfAborted()
    }
  }

  return {
    async read() {
      const read = await readPages()
      const found = 'status' in read ? read : await readBad(read)
      if ('status' in read || 'status' in found) {
        const { reason, detail } = found as Refused
        const was = lost
        lost = { kind: 'lost', route, reason, detail }
        pages = []
        bad = []
        listed = []
        rows = new Map()
        return was ? [] : [lost]
      }
      const areSame = (some: readonly ListPage[], known: readonly ListPage[]) =>
        some.length === known.length && some.every((page, i) => page === known[i])
      if (lost === null && areSame(read, pages) && areSame(found, bad)) return []
      const before = rows
      const wasListed = listed
      const wasLost = lost !== null
      const wasCut = cut
      listed = read.flatMap((page) => page.rows)
      if (found.length > 0) {
        const ids = new Set(listed.map(idOf))
        listed.push(...found.flatMap((page) => page.rows.filter((row) => !ids.has(idOf(row)))))
      }
      if (ordered) listed.reverse()
      lost = null
      pages = read
      bad = found
      cut = read.at(-1)?.next != null || read.some(({ isPartial }) => isPartial)
      const isListed = listed.length === wasListed.length && listed.every((row, i) => row === wasListed[i])
      if (!isListed) rows = new Map(listed.map((row) => [idOf(row), row]))
      const change = isListed ? null : changeOf(route, before, rows, cut)
      if (change) return [...linesOf(change)]
      const isNews = wasLost || wasCut !== cut
      return isNews ? [{ kind: 'rows', route, upsert: [], patch: [], remove: [], order: null, cut }] : []
    },
    whole: () =>
      lost
        ? [lost]
        : [...linesOf({ kind: 'rows', route, upsert: [...rows.values()], patch: [], remove: [], order: null, cut })],
    isLost: () => lost !== null,
    row: (id) => rows.get(id),
  }
}

function followAnswer({ route }: Part, fetchReply: FetchReply): Omit<Followed, 'part'> {
  let etag: string | null = null
  let answer: Row = {}
  let lost: Change | null = null
  return {
    async read() {
      const reply = await fetchReply(route, etag)
      const { value, refused } = reply
      if (refused?.status === 304) return []
      if (!value) {
        const was = lost
        lost = { kind: 'lost', route, reason: refused?.reason ?? 'unreachable', detail: refused?.detail ?? 'no answer' }
        etag = null
        return was ? [] : [lost]
      }
      const fields = lost ? value : changedFields(answer, value)
      lost = null
      etag = reply.etag
      answer = value
      return fields === null || Object.keys(fields).every((name) => name === 'observed_at')
        ? []
        : [{ kind: 'answer', route, answer: value }]
    },
    whole: () => [lost ?? { kind: 'answer', route, answer }],
    isLost: () => lost !== null,
    row: () => undefined,
  }
}

/** `one`, whose `read` waits for at most twice `ms`: one source must not delay what is recorded of the others. */
export function withinTime(one: Followed, ms: number): Followed {
  const { route } = one.part
  const detail = `no answer within ${ms} ms`
  const lost: Change = { kind: 'lost', route, reason: 'unreachable', detail }
  let reading: Promise<readonly Change[]> | null = null
  let isLate = false

  function begin(): Promise<readonly Change[]> {
    const begun = one.read()
    reading = begun
    const end = () => {
      if (reading === begun) reading = null
    }
    begun.then(end, end)
    return begun
  }

  return {
    ...one,
    async read() {
      const ended = reading?.then(
        () => true,
        () => true,
      )
      // The answer to an earlier reading would be too old for this one.
      const isFree = ended === undefined || (await limited(ended, ms))
      const changes = isFree ? await limited(begin(), ms) : null
      const was = isLate
      isLate = changes === null
      if (changes === null) return was ? [] : [lost]
      // What is recorded of it ended with `lost`.
      return was ? one.whole() : changes
    },
    isLost: () => isLate || one.isLost(),
    whole: () => (isLate ? [lost] : one.whole()),
  }
}

/** What `work` resolves to; `null` after `ms`. */
export async function limited<T>(work: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<null>((resolve) => {
    timer = unref(setTimeout(() => resolve(null), ms))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Follows `part` over `fetchReply`. */
export const follow = (part: Part, fetchReply: FetchReply, signal: AbortSignal): Followed => ({
  part,
  ...(part.kind === 'list' ? followList(part, fetchReply, signal) : followAnswer(part, fetchReply)),
})
