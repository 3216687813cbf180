/**
 * The data of the page: one entry per route that the page shows, polled while it is shown. Every entry is polled.
 */
import type { IncidentBanner } from '../../incident/inspectors.js'
import { grow } from '../../internal/contract/ages.js'
import type { Capabilities, Completeness } from '../../internal/contract/capabilities.js'
import type { ServiceIndex } from '../../internal/diagnostics/route.js'
import type { SourceRow } from '../../internal/diagnostics/sources.js'
import { currentInstant, fetchRoute, isFixed, type Problem, setInstant } from './fetch-route.js'
import { dropKey } from './key.js'
import { isPinned, pinClock } from './words.js'

/** The latest state of one request. After a failure the last value stays and grows old. */
export interface Answer<T = unknown> {
  readonly value: T | null
  /** When the router last said so, by this browser's clock; `null` for never. */
  readonly asOf: number | null
  readonly problem: Problem | null
}

interface Entry {
  readonly path: string
  answer: Answer
  /** The value as it is compared with the next one. */
  text: string
  /** When the router last confirmed it, by the clock of the document. */
  confirmedAt: number
  etag: string | null
  /** Parts of the page that show it. */
  shown: number
  /** Of the question that is under way. */
  asking: AbortController | null
  /** By the clock of the document, which begins with it. */
  dueAt: number
}

const NOTHING: Answer = { value: null, asOf: null, problem: null }
const EVERY_MS = 2_000
/** The routes of a router change with its release. */
const INDEX_MS = 32_000
/** Interval at which requests that are due are sent; they are due at whole seconds. */
const TICK_MS = 1_000
/** What has not been confirmed for so long is shown as old. */
const LATE_MS = 4_500
/** Whether the router answers at all, whatever the view asks. */
const STATUS_PATH = '/capabilities'
/** Where a router says what is recorded, and what is missing of `instant`. */
export const recordedPath = (instant: number): string => `/at/${instant}${STATUS_PATH}`
/** The index of routes. Some hosts do not forward it; then the available routes are unknown. */
const INDEX = '/'

const entries = new Map<string, Entry>()
let beat = () => {}
/** Since when the page is paused: what it shows grows no older than it was then. */
let pausedAt: number | null = null
/** What is older than this was shown while the page was paused, and is asked for just now. */
let resumedAt = 0
let isRefused = false

const isStill = () => pausedAt !== null || isRefused || document.hidden

/** The next of the instants that all requests share, so that their answers are drawn at once. */
const next = (every: number) => Math.ceil(performance.now() / every + 0.5) * every

function settle(entry: Entry, answer: Answer): void {
  const { value, problem } = entry.answer
  entry.answer = answer
  if (answer.value !== value) {
    const { observed_at, ...rest } = (answer.value ?? {}) as { observed_at?: string }
    const text = JSON.stringify(rest)
    // The same data stays the same object: nothing is drawn for it but its ages.
    if (text === entry.text && answer.value && value) {
      if (observed_at !== undefined) Object.assign(value, { observed_at })
      entry.answer = { ...answer, value }
    } else entry.text = text
  }
  // How old it is is drawn each second.
  if (entry.answer.value !== value || answer.problem !== problem) beat()
}

/** The key is not the one, or there is none: nothing is asked until there is another. */
function refuse(): void {
  if (isRefused) return
  isRefused = true
  dropKey()
  rest()
  beat()
}

async function askFor(entry: Entry): Promise<void> {
  const asking = new AbortController()
  entry.asking = asking
  const reply = await fetchRoute(entry.path, entry.etag, asking.signal)
  if (entry.asking !== asking) return
  entry.asking = null
  const isIndex = entry.path === INDEX && reply.kind !== 'problem'
  const { status = 200 } = reply.kind === 'problem' ? reply.problem : {}
  // What was so at an instant stays so.
  const isFinal = isPast(entry.path) && status > 0 && status < 504
  entry.dueAt = isFinal ? Infinity : next(isIndex ? INDEX_MS : EVERY_MS)
  const since = entry.confirmedAt
  if (reply.kind !== 'problem') entry.confirmedAt = performance.now()
  if (reply.kind === 'same') {
    // An incident is at one instant, and nothing of it ages.
    if (!isPinned()) grow(entry.answer.value, Math.round(entry.confirmedAt - since))
    entry.text = ''
    settle(entry, { ...entry.answer, asOf: Date.now(), problem: null })
  } else if (reply.kind === 'answer') {
    entry.etag = reply.etag
    settle(entry, { value: reply.value, asOf: Date.now(), problem: null })
  } else if (reply.problem.status === 403 && reply.problem.code === 'forbidden' && entry.path.endsWith(STATUS_PATH))
    refuse()
  else settle(entry, { ...entry.answer, problem: reply.problem })
  if (isFixed(entry.path)) tick()
}

/** Whether the answer to `path` is that of a recorded instant. */
const isPast = (path: string) => currentInstant() !== null || path.startsWith('/at/')

/** Whether the instant that is shown was recorded, as far as is known. */
function isRecorded(): boolean {
  const instant = currentInstant()
  return instant === null || queryState(recordedPath(instant)).value !== null
}

/** Until the index has answered, only it and the capabilities: who may see little is not refused at each load. */
const isAskable = ({ path }: Entry) => isFixed(path) || (isIndexKnown() && !unavailableReason(path) && isRecorded())

/** Ends what is under way. */
function rest(): void {
  for (const entry of entries.values()) {
    entry.asking?.abort()
    entry.asking = null
  }
}

function tick(): void {
  if (isStill()) return
  for (const entry of [...entries.values()].filter(isAskable))
    if (!entry.asking && entry.dueAt <= performance.now()) void askFor(entry)
}

/** Polls `path` until the returned function is called. */
export function subscribe(path: string): () => void {
  const entry: Entry = entries.get(path) ?? {
    path,
    answer: NOTHING,
    text: '',
    confirmedAt: 0,
    etag: null,
    shown: 0,
    asking: null,
    dueAt: 0,
  }
  entries.set(path, entry)
  entry.shown++
  // Once the whole view has said what it asks.
  queueMicrotask(tick)
  return () => {
    if (--entry.shown > 0) return
    entry.asking?.abort()
    entries.delete(path)
  }
}

export const queryState = (path: string): Answer => entries.get(path)?.answer ?? NOTHING

/** How the page as a whole stands. */
export interface PollStatus {
  readonly capabilities: Capabilities | null
  readonly asOf: number | null
  readonly problem: Problem | null
  readonly isPaused: boolean
  readonly isRefused: boolean
  readonly isLate: boolean
  /** It has not answered since the page began, or went on after a pause. */
  readonly isLoading: boolean
  /** How many of the answers that the page shows are missing, old or without one of their sources. */
  readonly lacking: number
}

/** The route covers all users, and the caller may see some. */
export const NOT_SCOPABLE = 'not_narrowable'

const routeAt = (path: string) =>
  (queryState(INDEX) as Answer<ServiceIndex>).value?.routes.find((route) => route.path === path)
const isClosed = (path: string) => routeAt(path)?.available === false

/** What the capabilities at `path` say of the incident that they are of. */
export const incidentIn = (path: string): IncidentBanner | undefined =>
  (queryState(path) as Answer<Capabilities>).value?.extensions.incident as IncidentBanner | undefined

/** What `relayscope open` shows; `undefined` for a live router. */
export const openedIncident = (): IncidentBanner | undefined => incidentIn(STATUS_PATH)

/** Whether the router has a recorder: it answers for instants of the last hour. */
export function hasRecorder(): boolean {
  const { operations } = (queryState(STATUS_PATH) as Answer<Capabilities>).value?.extensions ?? {}
  return Array.isArray(operations) && operations.includes('instants')
}

/** Whether instants can be chosen: of a live router, or of an opened recording. */
export const hasInstants = (): boolean => hasRecorder() || !!openedIncident()?.recording

/** The page of what changed: it is a page only, not a route of the router. */
export const CHANGES = '/changes'

/** Why there is nothing to be asked at `path`; `null` where the index says no such thing. */
export function unavailableReason(path: string): Problem | null {
  const bare = path.replace(/^\/at\/\d+|\?.*/g, '')
  if (bare === CHANGES && !hasInstants()) return { status: 501, code: '', title: 'recorder' }
  if (!isClosed(bare)) return null
  return isClosed('/sources') && !isClosed('/users')
    ? { status: 403, code: NOT_SCOPABLE, title: '' }
    : { status: 501, code: '', title: routeAt(bare)?.capability ?? '' }
}

/** Whether the index of routes was read or cannot be read. */
export function isIndexKnown(): boolean {
  const { value, problem } = queryState(INDEX)
  return !!(value || problem)
}

/** Whether the index names `path` as one that can be asked: what it does not name is not asked for. */
export const offers = (path: string): boolean => routeAt(path)?.available ?? false

/** Whether it was not confirmed for a while; what is recorded needs no confirmation. */
function isLate(path: string): boolean {
  const { asOf } = queryState(path)
  return asOf !== null && !isPast(path) && (pausedAt ?? Date.now()) - Math.max(asOf, resumedAt) > LATE_MS
}

/** Whether an answer lacks a source altogether: it failed before it answered anything. */
export const lacksSource = (completeness: Completeness | undefined): boolean =>
  completeness?.truncated_sources.some((source) => !completeness.examined[source]) ?? false

/** Whether what the page shows of an answer is not what is so now. A refusal is an answer. */
function lacks({ path, answer: { value, problem } }: Entry): boolean {
  if (path === INDEX || path.startsWith('/at/')) return false
  if (problem) return problem.status === 0 || (problem.status >= 500 && problem.status !== 501)
  const { items, completeness } = (value ?? {}) as { items?: readonly SourceRow[]; completeness?: Completeness }
  const isUnreachable = path === '/sources' && items?.some(({ answered }) => !answered)
  return isUnreachable || isOld(path) || lacksSource(completeness)
}

export function pollStatus(): PollStatus {
  const { value, asOf, problem } = queryState(STATUS_PATH) as Answer<Capabilities>
  return {
    capabilities: value,
    asOf,
    problem,
    isPaused: pausedAt !== null,
    isRefused,
    isLate: isLate(STATUS_PATH),
    isLoading: asOf === null || asOf < resumedAt,
    lacking: [...entries.values()].filter(lacks).length,
  }
}

/** `listener` is called whenever the page may look different. */
export function followPollStatus(listener: () => void): void {
  beat = listener
}

/** Whether what is shown of `path` may have changed since; nothing is shown of `null`. */
export const isOld = (path: string | null): boolean =>
  path !== null && (queryState(path).problem !== null || (!isPast(path) && (isLate(STATUS_PATH) || isLate(path))))

export function setPaused(paused: boolean): void {
  pausedAt = paused ? Date.now() : null
  if (paused) rest()
  else resumedAt = Date.now()
  beat()
}

/** Forget what this tab saw of the answers so far. */
const forgetters: ((isOther: boolean) => unknown)[] = []

/** `forget` is called before other answers are shown: as of another instant, or of what may be another caller. */
export const onReset = (forget: (isOther: boolean) => unknown): void => void forgetters.push(forget)

/** Starts again; for the same caller, the answers about the router stay. */
function restart(isOther: boolean): void {
  rest()
  for (const forget of forgetters) forget(isOther)
  for (const entry of entries.values()) {
    entry.dueAt = 0
    if (!isOther && isFixed(entry.path)) continue
    entry.etag = null
    settle(entry, NOTHING)
  }
  beat()
  tick()
}

/** Starts again with another key, which may have other access. */
export function resetAuth(): void {
  isRefused = false
  restart(true)
}

/** Shows what was recorded at `instant`, in epoch ms; `null` shows the present. */
export function showInstant(instant: number | null): void {
  if (Object.is(instant, currentInstant())) return
  setInstant(instant)
  pinClock(instant)
  pausedAt = null
  restart(false)
}

/** Begins to ask. */
export function startPolling(): void {
  subscribe(STATUS_PATH)
  subscribe(INDEX)
  document.addEventListener('visibilitychange', () => (document.hidden ? rest() : tick()))
  setInterval(tick, TICK_MS)
  tick()
}
