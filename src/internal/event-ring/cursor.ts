/** One subscription: a cursor into the ring that all readers of a topic share. */
import type {
  BusItem,
  EventGap,
  EventRun,
  SiteEvent,
  StreamPosition,
  SubscribeOptions,
  Subscription,
  TakeEvents,
} from '../contract/event-bus.js'

/** An event in the ring with its iterator result: created once and shared by all readers. */
export interface Slot {
  readonly event: SiteEvent
  readonly result: IteratorResult<BusItem>
  resolved: Promise<IteratorResult<BusItem>> | undefined
}

/** The view of a topic that a cursor reads. */
export interface Ring {
  readonly size: number
  readonly epoch: string
  /** The newest position of the epoch. */
  readonly head: number
  /** The sequence number at which a new subscriber starts reading. */
  readonly start: number
  /** The first position of the epoch. */
  readonly first: number
  readonly closed: boolean
  /** What stops the readers that listen to a signal from listening to it. */
  readonly releases: Set<() => void>
  /** The event at `seq`, or `undefined` if it was skipped or dropped. */
  at(seq: number): Slot | undefined
  /** The events from `from`, which is not a hole, to the head or the next hole. Level readers get the very same run. */
  run(from: number): EventRun
  /** A run that may begin before `from`: readers that are not level get the very same one. */
  around(from: number): EventRun
  /** Wakes the cursor when there is more. */
  park(cursor: Cursor): void
  leave(cursor: Cursor): void
}

type Resolve = (result: IteratorResult<BusItem>) => void

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined }
const RESOLVED_DONE = Promise.resolve(DONE)

// One executor for all promises: a closure for each would cost more than the delivery itself.
let captured: Resolve
const capture = (resolve: Resolve) => {
  captured = resolve
}

/** The `place` of a cursor that has ended. */
export const CLOSED = -2

/** What few subscriptions have. */
interface Rare {
  wake?: (() => void) | undefined
  /** Stops listening to the signal. */
  release?: () => void
  /** Calls of `next()` queued after the first pending one. */
  queue?: Resolve[]
}

/** One reader. Few fields and a prototype, not closures: ten thousand idle ones are ten thousand small objects. */
export class Cursor implements Subscription {
  /** Its index among the parked, -1 when it is not, `CLOSED` when it has ended. */
  place = -1
  private readonly ring: Ring
  private epoch: string
  /** The position it reads next. */
  private ahead: number
  private lost = 0
  /** The call of `next()` that waits. */
  private resolve: Resolve | undefined
  private rare: Rare | undefined

  constructor(ring: Ring, { signal, wake }: SubscribeOptions) {
    this.ring = ring
    this.epoch = ring.epoch
    this.ahead = ring.start
    this.resolve = undefined
    this.rare = wake && { wake }
    if (ring.closed || signal?.aborted) this.place = CLOSED
    else if (signal) {
      const stop = () => this.close()
      signal.addEventListener('abort', stop, { once: true })
      const release = () => {
        ring.releases.delete(release)
        signal.removeEventListener('abort', stop)
      }
      ring.releases.add(release)
      this.rare = { wake, release }
    }
  }

  get closed(): boolean {
    return this.place === CLOSED || this.ring.closed
  }

  /** Sets the start position when it becomes known after subscribing; the end may be known already. */
  begin({ epoch, first }: Ring): void {
    this.ahead = this.epoch === epoch ? Math.max(this.ahead, first) : first
    this.epoch = epoch
  }

  get position(): StreamPosition {
    return { epoch: this.epoch, seq: this.ahead - 1 }
  }

  get pending(): number {
    return this.closed ? 0 : Math.max(0, this.ring.head + 1 - this.oldest())
  }

  get dropped(): number {
    return this.lost + (this.place === CLOSED ? 0 : this.oldest() - this.ahead)
  }

  take(portion?: TakeEvents): EventGap | EventRun | undefined {
    if (!this.isOpen()) return undefined
    const gap = this.gap()
    if (gap) return gap
    if (this.ahead > this.ring.head) {
      this.ring.park(this)
      return undefined
    }
    const run = portion ? this.part(portion) : this.ring.run(this.ahead)
    this.ahead += run.events.length
    return run
  }

  next(): Promise<IteratorResult<BusItem>> {
    if (!this.isOpen()) return RESOLVED_DONE
    if (this.resolve === undefined) {
      const slot = this.slot()
      if (slot) {
        slot.resolved ??= Promise.resolve(slot.result)
        return slot.resolved
      }
      const gap = this.gap()
      if (gap) return Promise.resolve({ done: false, value: gap })
      const promise = new Promise<IteratorResult<BusItem>>(capture)
      this.resolve = captured
      this.ring.park(this)
      return promise
    }
    const promise = new Promise<IteratorResult<BusItem>>(capture)
    this.rare ??= {}
    this.rare.queue ??= []
    this.rare.queue.push(captured)
    return promise
  }

  return(): Promise<IteratorResult<BusItem>> {
    this.close()
    return RESOLVED_DONE
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  close(): void {
    if (this.place === CLOSED) return
    this.lost = this.dropped
    this.ring.leave(this)
    this.place = CLOSED
    this.resolve?.(DONE)
    for (const resolve of this.rare?.queue ?? []) resolve(DONE)
    this.rare?.release?.()
    this.resolve = undefined
  }

  /** Something is there, or the topic was closed. */
  woken(): void {
    const { rare } = this
    while (this.resolve !== undefined && this.isOpen()) {
      const result = this.slot()?.result ?? this.gapResult()
      if (result === undefined) {
        this.ring.park(this)
        break
      }
      const resolve = this.resolve
      this.resolve = rare?.queue?.shift()
      resolve(result)
    }
    rare?.wake?.()
  }

  private part(portion: TakeEvents): EventRun {
    const run = this.ring.around(this.ahead)
    const from = this.ahead - (run.events[0] as SiteEvent).seq
    const count = portion(run.events, from)
    // Readers that keep up take the whole run: no array per reader.
    if (from === 0 && count >= run.events.length) return run
    return { type: 'run', events: run.events.slice(from, from + count) }
  }

  /** Whether the cursor is open. A closed topic ends it here, so that closing needs no list of readers. */
  private isOpen(): boolean {
    if (this.ring.closed) this.close()
    return this.place !== CLOSED
  }

  /** The next event, if it is there and nothing before it was lost; it counts as received. */
  private slot(): Slot | undefined {
    if (this.epoch !== this.ring.epoch) return undefined
    const slot = this.ring.at(this.ahead)
    if (slot !== undefined) this.ahead++
    return slot
  }

  private gapResult(): IteratorResult<BusItem> | undefined {
    const gap = this.gap()
    return gap && { done: false, value: gap }
  }

  private oldest(): number {
    return this.epoch === this.ring.epoch ? Math.max(this.ahead, this.ring.head - this.ring.size + 1) : this.ahead
  }

  /** Returns the gap between the last event received and the next available one. */
  private gap(): EventGap | undefined {
    const { ring } = this
    if (this.epoch !== ring.epoch) {
      this.epoch = ring.epoch
      this.ahead = ring.first
      return { type: 'gap', reason: 'link_lost', dropped: null, first_seq: null, last_seq: null }
    }
    const oldest = this.oldest()
    let found = oldest
    for (let remaining = ring.size; remaining > 0 && found <= ring.head && ring.at(found) === undefined; remaining--)
      found++
    if (found === this.ahead) return undefined
    const lost = { dropped: found - this.ahead, first_seq: this.ahead, last_seq: found - 1 }
    this.lost += lost.dropped
    this.ahead = found
    return { type: 'gap', reason: found > oldest ? 'link_lost' : 'overflow', ...lost }
  }
}
