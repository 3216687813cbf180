/** One reader for all who watch the same: it reads while somebody does, at most once a second, and says what has changed. */
import { createTicker } from '../../async/timer.js'
import { toTimestamp } from '../../contract/ids.js'
import { encodeFrame } from '../../http/event-stream.js'
import { changeOf, type Reading, readingOf } from './rows.js'

/** Between two readings. */
const READ_MS = 1_000

/** What is watched, and how it is read. */
export interface View {
  /** As whoever watches has named it. */
  readonly name: string
  readonly fields: readonly string[]
  compared: ((row: object) => object) | undefined
  /** The answer to the question, as text. Throws what keeps it from being one. */
  read(): Promise<string>
  /** What its sources say of their changes; `null` where they do not. */
  version(): Promise<string | null>
  now(): number
}

/** Who is told. */
export interface Listener {
  /** Something has changed: what to add to what the listener has. The text is shared. */
  changed(reader: ViewReader, frame: string): void
  /** Nothing has, and somebody looked. */
  unchanged(reader: ViewReader): void
}

/** The shared state of one view. */
export class ViewReader {
  readonly #view: View
  readonly #listeners = new Set<Listener>()
  readonly #onEmpty: () => void
  readonly #ticker = createTicker(() => this.look().catch(() => {}), READ_MS)
  #looking: Promise<void> | undefined
  #reading: Reading | undefined
  #sourceVersion: string | null = null
  #version = 0
  #observedAt = ''
  #snapshot: string | undefined

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

  /** What there is, for whoever has nothing: one text for all of them. */
  get snapshot(): string {
    const { name, fields } = this.#view
    const { page, rows } = this.#reading as Reading
    this.#snapshot ??= encodeFrame({
      event: 'snapshot',
      data: {
        view: name,
        version: this.#version,
        observed_at: this.#observedAt,
        row_id: fields,
        page: { ...page, items: [...rows.values()].map(({ row }) => row) },
      },
    })
    return this.#snapshot
  }

  /** That somebody looked just now. */
  get sync(): string {
    return encodeFrame({
      event: 'sync',
      data: { view: this.#view.name, version: this.#version, observed_at: this.#observedAt },
    })
  }

  get reset(): string {
    return encodeFrame({ event: 'reset', data: { view: this.#view.name } })
  }

  /** Reads, and tells who listens. Several at once are one. @throws what the first reading throws. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** As `look`, where nothing has been read yet. */
  async begin(): Promise<void> {
    if (!this.#reading) await this.look()
  }

  async #look(): Promise<void> {
    const { name, fields, compared, read, version, now } = this.#view
    const before = this.#reading
    const sourceVersion = await version()
    const isKnown = before !== undefined && sourceVersion !== null && sourceVersion === this.#sourceVersion
    const after = isKnown ? before : readingOf(await read(), fields, compared)
    const change = isKnown || !before ? null : changeOf(before, after)
    this.#sourceVersion = sourceVersion
    this.#observedAt = toTimestamp(now())
    this.#snapshot = undefined
    this.#reading = after
    if (before && !change) {
      for (const listener of this.#listeners) listener.unchanged(this)
      return
    }
    const from = this.#version++
    if (!change) return
    const data = {
      view: name,
      from,
      version: this.#version,
      observed_at: this.#observedAt,
      ...change,
      page: after.page,
    }
    const frame = encodeFrame({ event: 'delta', data })
    for (const listener of this.#listeners) listener.changed(this, frame)
  }
}
