/** One reader for all who watch the same: it reads while somebody does, at most once a second, and says what has changed. */
import { createTicker } from '../../async/timer.js'
import { toTimestamp } from '../../contract/ids.js'
import type { Awaitable } from '../../contract/page.js'
import type { Encoded } from '../../http/encode.js'
import type { Compared } from '../../http/etag.js'
import { jsonFrame } from '../../http/event-stream.js'
import { type Change, changeOf, type Reading, readingOf } from './rows.js'

/** Between two readings. */
const READ_MS = 1_000

/** What is watched, and how it is read. */
export interface View {
  /** As whoever watches has named it. */
  readonly name: string
  readonly fields: readonly string[]
  compared: Compared | undefined
  /** The answer to the question, and whether nothing is left out of it. Throws what keeps it from being one. */
  read(): Promise<{ encoded: Encoded; isWhole: boolean }>
  /** What its sources say of their changes; `null` where they do not. */
  version(): Awaitable<string | null>
  now(): number
}

/** A frame as it is sent, one for all who are sent it. */
export type Frame = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

/** Who is told. */
export interface Listener {
  /** Something has changed: what to add to what the listener has. */
  changed(reader: ViewReader, frame: Frame): void
  /** Nothing has, and somebody looked. */
  unchanged(reader: ViewReader): void
}

/** The shared state of one view. */
export class ViewReader {
  readonly #view: View
  readonly #listeners = new Set<Listener>()
  readonly #onEmpty: () => void
  readonly #ticker = createTicker(() => this.#tick(), READ_MS)
  #looking: Promise<void> | undefined
  #reading: Reading | undefined
  /** Of whoever looked last, nobody knows what there is now. */
  #hasFailed = false
  /** `null` where a part of what was read is left out, too: no version says when that is back. */
  #sourceVersion: string | null = null
  #version = 0
  #observedAt = 0
  /** Frames of the state that was read last. */
  #snapshot: Frame | undefined
  #sync: Frame | undefined

  constructor(view: View, onEmpty: () => void) {
    this.#view = view
    this.#onEmpty = onEmpty
  }

  add(listener: Listener): void {
    this.#listeners.add(listener)
    this.#ticker.start()
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener)
    this.leaveIdle()
  }

  /** Is left to itself where nobody listens. */
  leaveIdle(): void {
    if (this.#listeners.size > 0) return
    this.#ticker.stop()
    this.#onEmpty()
  }

  /** What there is, for whoever has nothing. */
  get snapshot(): Frame {
    if (this.#snapshot) return this.#snapshot
    const { page, rows } = this.#reading as Reading
    const items = Array.from(rows.values(), ({ text }) => text)
    this.#snapshot = this.#frame('snapshot', [
      this.#state,
      `"row_id":${JSON.stringify(this.#view.fields)}`,
      `"page":{${[...page, `"items":[${items.join(',')}]`].join(',')}}`,
    ])
    return this.#snapshot
  }

  /** That somebody looked just now. */
  get sync(): Frame {
    this.#sync ??= this.#frame('sync', [this.#state])
    return this.#sync
  }

  get reset(): Frame {
    return this.#frame('reset', [])
  }

  get #state(): string {
    return `"version":${this.#version},"observed_at":"${toTimestamp(this.#observedAt)}"`
  }

  #frame(event: string, members: readonly string[]): Frame {
    const view = `"view":${JSON.stringify(this.#view.name)}`
    return encoder.encode(jsonFrame(event, `{${[view, ...members].join(',')}}`))
  }

  #delta(from: number, { upsert, remove, order }: Change): Frame {
    return this.#frame('delta', [
      `"from":${from}`,
      this.#state,
      `"upsert":[${upsert.join(',')}]`,
      `"remove":${JSON.stringify(remove)}`,
      `"order":${JSON.stringify(order)}`,
      `"page":{${this.#reading?.page.join(',')}}`,
    ])
  }

  /**
   * Reads, and tells who listens. Several at once are one. @throws what the first reading throws.
   *
   * @param version Asked for before: what changes while the list is read makes another version of it.
   */
  look(version = this.#view.version()): Promise<void> {
    this.#looking ??= this.#look(version)
      .catch((error) => {
        this.#hasFailed = true
        throw error
      })
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** As `look`, where the last one did not say what there is: whoever begins is shown nothing older as if it were now. */
  async begin(): Promise<void> {
    if (!this.#reading || this.#hasFailed) await this.look()
  }

  /** A version at hand that is the one before costs no promise: a second in which nothing happens is to cost nothing. */
  #tick(): Awaitable<void> {
    if (this.#looking) return
    const version = this.#reading && this.#view.version()
    if (typeof version === 'string' && version === this.#sourceVersion) return this.#unchanged()
    return this.look(version).catch(() => {})
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

  /** What is said from now on is of this instant. */
  #observed(at: number): void {
    this.#observedAt = at
    this.#hasFailed = false
    this.#snapshot = undefined
    this.#sync = undefined
  }
}
