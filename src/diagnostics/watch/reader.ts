/** One reader for all who watch the same view: reads it while someone does, at most once a second, and sends what changed. */
import { unref } from '../../async/timer.js'
import { toTimestamp } from '../../contract/ids.js'
import type { Awaitable } from '../../contract/page.js'
import type { Encoded } from '../../http/encode.js'
import type { Compared } from '../../http/etag.js'
import { jsonFrame } from '../../http/respond.js'
import { type Change, changeOf, type ListSnapshot, readingOf } from './rows.js'

// How often watched views are read: reader time is divided fairly between principals, and within one between its views.

/** The shortest interval between two readings of one view. */
const READ_MS = 1_000
/** A reading that costs less counts as free. */
const LEAST_MS = 0.05
/** Reader time of one principal, and of all together, in each interval. */
const PRINCIPAL_MS = 250
const TOTAL_MS = 500

/** A view that is read again and again. */
interface Paced {
  /** What one reading costs, in ms of reader time. */
  readonly costMs: number
  /** The names of those who watch it. They share the cost in equal parts. */
  readonly principals: { readonly size: number; keys(): Iterable<string> }
}

interface Pace {
  add(view: Paced): void
  delete(view: Paced): void
  /** Recomputes the shares before the next interval is returned: someone began or ended watching. */
  change(): void
  /** Ms from one reading of `view` to the next; at least `READ_MS`. */
  intervalOf(view: Paced): number
  /** Starts to measure a reading. Returns what ends the measurement and returns the cost in ms. */
  measure(): () => number
}

/** The most that each demand may take, so that all fit into `capacity` and the small ones are met (max-min fairness). */
function fairShare(demands: readonly number[], capacity: number): number {
  let left = capacity
  for (const [i, demand] of demands.toSorted((a, b) => a - b).entries()) {
    const share = left / (demands.length - i)
    if (demand > share) return share
    left -= demand
  }
  return Number.POSITIVE_INFINITY
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** @param now A clock that never goes back, in ms. */
export function createPace(now: () => number): Pace {
  const views = new Set<Paced>()
  /** The most reader time that one reading may cost and still be repeated each interval, by principal. */
  let shares = new Map<string, number>()
  let computedAt = Number.NEGATIVE_INFINITY
  /** Reader time so far: time that several readings have in common counts once, in equal parts. */
  let spent = 0
  let spentAt = now()
  let underWay = 0

  function spend(): number {
    const at = now()
    spent += (at - spentAt) / Math.max(1, underWay)
    spentAt = at
    return spent
  }

  function compute(): void {
    computedAt = now()
    const demands = new Map<string, number[]>()
    for (const { costMs, principals } of views)
      for (const name of principals.keys()) {
        const own = demands.get(name)
        const part = costMs / principals.size
        if (own) own.push(part)
        else demands.set(name, [part])
      }
    const totals = Array.from(demands.values(), (own) => Math.min(PRINCIPAL_MS, sum(own)))
    const most = Math.min(PRINCIPAL_MS, fairShare(totals, TOTAL_MS))
    shares = new Map(Array.from(demands, ([name, own]) => [name, fairShare(own, most)]))
  }

  return {
    add: (view) => void views.add(view),
    delete: (view) => void views.delete(view),
    change() {
      computedAt = Number.NEGATIVE_INFINITY
    },
    intervalOf({ costMs, principals }) {
      if (costMs === 0) return READ_MS
      if (now() - computedAt >= READ_MS) compute()
      const share = Math.max(...Array.from(principals.keys(), (name) => shares.get(name) ?? Number.POSITIVE_INFINITY))
      return READ_MS * Math.max(1, costMs / principals.size / share)
    },
    measure() {
      const from = spend()
      underWay++
      return () => {
        const cost = spend() - from
        underWay--
        return cost
      }
    },
  }
}

/** Maximum time without a frame for a view that is read less often; half of what the feed allows. */
const WAIT_MS = 5_000

/** A watched view and how it is read. */
export interface View {
  readonly fields: readonly string[]
  compared: Compared | undefined
  /** Reads the response, and whether it is complete. Throws if it cannot be read. */
  read(): Promise<{ encoded: Encoded; isWhole: boolean }>
  /** The version of its sources; `null` if unknown. */
  version(): Awaitable<string | null>
  now(): number
}

/** A frame as it is sent. */
export type Frame = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

/** A frame for watchers who may spell the view differently. It is encoded once for all who spell it as the first one does. */
export class ViewFrame {
  #name: string | undefined
  #bytes: Frame | undefined

  constructor(
    readonly event: string,
    readonly members: readonly string[],
  ) {}

  /** The frame for watchers that spell the view as `name`. */
  as(name: string): Frame {
    if (this.#bytes && this.#name === name) return this.#bytes
    const json = `{${[`"view":${JSON.stringify(name)}`, ...this.members].join(',')}}`
    const bytes = encoder.encode(jsonFrame(this.event, json))
    if (!this.#bytes) [this.#name, this.#bytes] = [name, bytes]
    return bytes
  }
}

/** Receives the frames for one watcher. */
export interface Listener {
  /** The name of the principal, who pays for the readings. */
  readonly principal: string
  /** Called with a change to the state that the listener has. */
  changed(reader: ViewReader, frame: ViewFrame): void
  /** Called if nothing has changed or the next read is not due yet: `sync` contains the time of the last read. */
  unchanged(reader: ViewReader): void
}

/** The shared state of one view. */
export class ViewReader {
  readonly #view: View
  readonly #listeners = new Set<Listener>()
  readonly #pace: Pace
  readonly #onEmpty: () => void
  readonly #payers = new Map<string, number>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #costMs: number | null = null
  /** Ms until the next reading is due, and between two readings by now. */
  #dueIn = READ_MS
  #interval = READ_MS
  #looking: Promise<void> | undefined
  #reading: ListSnapshot | undefined
  /** Whether the latest read failed, so that the current state is unknown. */
  #hasFailed = false
  /** `null` also if the read was incomplete: no version reports when the missing part is available again. */
  #sourceVersion: string | null = null
  #version = 0
  #observedAt = 0
  /** Frames of the state that was read last. */
  #snapshot: ViewFrame | undefined
  #sync: ViewFrame | undefined

  constructor(view: View, pace: Pace, onEmpty: () => void) {
    this.#view = view
    this.#pace = pace
    this.#onEmpty = onEmpty
  }

  /** What one reading costs, in ms of reader time. A reading that costs less than the one before counts half. */
  get costMs(): number {
    return this.#costMs ?? 0
  }

  /** The names of those who watch, with the number of their watches. */
  get principals(): ReadonlyMap<string, number> {
    return this.#payers
  }

  add(listener: Listener): void {
    this.#listeners.add(listener)
    this.#payers.set(listener.principal, (this.#payers.get(listener.principal) ?? 0) + 1)
    this.#pace.add(this)
    this.#pace.change()
    if (this.#timer === undefined) this.#schedule()
  }

  remove(listener: Listener): void {
    if (!this.#listeners.delete(listener)) return
    const watches = (this.#payers.get(listener.principal) ?? 1) - 1
    if (watches > 0) this.#payers.set(listener.principal, watches)
    else this.#payers.delete(listener.principal)
    this.#pace.change()
    this.leaveIdle()
  }

  /** Stops reading if there are no listeners. */
  leaveIdle(): void {
    if (this.#listeners.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#pace.delete(this)
    this.#onEmpty()
  }

  /** Sets the timer of the next read. Less frequent reads are spread out, so that they do not all start at once. */
  #schedule(): void {
    const interval = this.#pace.intervalOf(this)
    if (Math.round(interval) !== this.#interval) {
      this.#interval = Math.round(interval)
      this.#snapshot = undefined
      this.#sync = undefined
    }
    this.#dueIn = interval > READ_MS ? Math.max(READ_MS, interval * (0.5 + Math.random())) : READ_MS
    this.#wait()
  }

  #wait(): void {
    const ms = Math.min(this.#dueIn, WAIT_MS)
    this.#dueIn -= ms
    this.#timer = unref(setTimeout(() => this.#wake(), ms))
  }

  #wake(): void {
    if (this.#dueIn > 0) {
      // Nothing was read: `sync` keeps its `observed_at` and contains how long to wait.
      for (const listener of this.#listeners) listener.unchanged(this)
      this.#wait()
      return
    }
    const timer = this.#timer
    const next = () => {
      // Another timer means that all listeners left meanwhile, and a new one came.
      if (this.#timer === timer && this.#listeners.size > 0) this.#schedule()
    }
    const read = this.#tick()
    if (read) void read.then(next)
    else next()
  }

  /** The current state, for watchers that have none. */
  get snapshot(): ViewFrame {
    if (this.#snapshot) return this.#snapshot
    const { page, rows } = this.#reading as ListSnapshot
    const items = rows.map(({ text }) => text)
    this.#snapshot = new ViewFrame('snapshot', [
      this.#state,
      `"row_id":${JSON.stringify(this.#view.fields)}`,
      `"page":{${[...page, `"items":[${items.join(',')}]`].join(',')}}`,
    ])
    return this.#snapshot
  }

  /** When the view was read last, and how often it is. */
  get sync(): ViewFrame {
    this.#sync ??= new ViewFrame('sync', [this.#state])
    return this.#sync
  }

  get reset(): ViewFrame {
    return new ViewFrame('reset', [])
  }

  get #state(): string {
    const observed = `"observed_at":"${toTimestamp(this.#observedAt)}"`
    return `"version":${this.#version},${observed},"refresh_ms":${this.#interval}`
  }

  #delta(from: number, { upsert, remove, order, newRows }: Change): ViewFrame {
    return new ViewFrame('delta', [
      `"from":${from}`,
      this.#state,
      `"upsert":[${upsert.join(',')}]`,
      `"remove":${JSON.stringify(remove)}`,
      `"order":${JSON.stringify(order)}`,
      `"new_rows":"${newRows}"`,
      `"page":{${this.#reading?.page.join(',')}}`,
    ])
  }

  /**
   * Reads the view and notifies the listeners. Concurrent calls share one read. @throws what the first read throws.
   *
   * @param version The version before the read: a change during the read leads to another version.
   */
  detect(version = this.#view.version()): Promise<void> {
    if (this.#looking) return this.#looking
    const measured = this.#pace.measure()
    this.#looking = this.#look(version)
      .catch((error) => {
        this.#hasFailed = true
        throw error
      })
      .finally(() => {
        this.#costs(measured())
        this.#looking = undefined
      })
    return this.#looking
  }

  #costs(ms: number): void {
    const cost = this.#costMs !== null && ms < this.#costMs ? (this.#costMs + ms) / 2 : ms
    this.#costMs = cost < LEAST_MS ? 0 : cost
  }

  /** Reads the view unless the latest read succeeded, so that a new watcher is never sent an outdated state. */
  async begin(): Promise<void> {
    if (!this.#reading || this.#hasFailed) await this.detect()
  }

  /** A version at hand that is the one before costs no promise: a second in which nothing happens is to cost nothing. */
  #tick(): Promise<void> | undefined {
    if (this.#looking) return
    const version = this.#reading && this.#view.version()
    if (typeof version === 'string' && version === this.#sourceVersion) {
      this.#costs(0)
      this.#unchanged()
      return
    }
    return this.detect(version).catch(() => {})
  }

  async #look(asked: Awaitable<string | null>): Promise<void> {
    const { fields, compared, read, now } = this.#view
    const before = this.#reading
    const version = await asked
    if (before && version !== null && version === this.#sourceVersion) return this.#unchanged()
    const { encoded, isWhole } = await read()
    const after = readingOf(encoded, fields, compared, before)
    const change = before ? changeOf(before, after) : null
    this.#sourceVersion = isWhole ? version : null
    this.#reading = after
    if (before && !change) return this.#unchanged()
    this.#observed(now())
    const from = this.#version++
    if (!change || this.#listeners.size === 0) return
    const frame = this.#delta(from, change)
    for (const listener of this.#listeners) listener.changed(this, frame)
  }

  #unchanged(): void {
    this.#observed(this.#view.now())
    for (const listener of this.#listeners) listener.unchanged(this)
  }

  /** Sets the time of the last read. */
  #observed(at: number): void {
    this.#observedAt = at
    this.#hasFailed = false
    this.#snapshot = undefined
    this.#sync = undefined
  }
}
