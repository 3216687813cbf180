/** One subscription: a cursor into the ring that all readers of a topic share. */
import type { Delivery, Gap, Position, Run, SiteEvent, Subscription } from './event-bus.js'

/** What a cursor reads. */
export interface Ring {
  readonly size: number
  readonly epoch: string
  /** The newest position of the epoch. */
  readonly head: number
  /** The first position of the epoch. */
  readonly first: number
  readonly closed: boolean
  /** The event at `seq`, or `undefined` for a hole. */
  at(seq: number): SiteEvent | undefined
  /** The events from `from`, which is no hole, to the head or the next hole. Level readers get the very same run. */
  run(from: number): Run
  /** Wakes the cursor when there is more. */
  park(cursor: Cursor): void
  leave(cursor: Cursor): void
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined }

type Resolve = (result: IteratorResult<Delivery>) => void

/** One reader. Fields and a prototype, not closures: ten thousand idle ones are ten thousand small objects. */
export class Cursor implements Subscription {
  /** Its index among the parked, or -1. */
  place = -1
  private readonly ring: Ring
  private readonly onWake: (() => void) | undefined
  private epoch: string
  /** The position it reads next. */
  private ahead: number
  private lost = 0
  closed = false
  private waiting: Resolve[] | undefined
  private release: (() => void) | undefined

  constructor(ring: Ring, onWake: (() => void) | undefined) {
    this.ring = ring
    this.onWake = onWake
    this.epoch = ring.epoch
    this.ahead = ring.head + 1
  }

  ended(): this {
    this.closed = true
    return this
  }

  until(signal: AbortSignal): void {
    const stop = () => this.close()
    signal.addEventListener('abort', stop, { once: true })
    this.release = () => signal.removeEventListener('abort', stop)
  }

  get position(): Position {
    return { epoch: this.epoch, seq: this.ahead - 1 }
  }

  get pending(): number {
    return this.closed ? 0 : this.ring.head + 1 - this.oldest()
  }

  get dropped(): number {
    return this.lost + (this.closed ? 0 : this.oldest() - this.ahead)
  }

  take(): Gap | Run | undefined {
    if (!this.alive()) return undefined
    const gap = this.gap()
    if (gap) return gap
    if (this.ahead > this.ring.head) {
      this.ring.park(this)
      return undefined
    }
    const run = this.ring.run(this.ahead)
    this.ahead += run.events.length
    return run
  }

  next(): Promise<IteratorResult<Delivery>> {
    const value = this.waiting?.length || !this.alive() ? undefined : this.one()
    if (value) return Promise.resolve({ done: false, value })
    if (this.closed) return Promise.resolve(DONE)
    return new Promise((resolve) => {
      this.waiting ??= []
      this.waiting.push(resolve)
      this.ring.park(this)
    })
  }

  return(): Promise<IteratorResult<Delivery>> {
    this.close()
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  close(): void {
    if (this.closed) return
    this.lost = this.dropped
    this.closed = true
    this.release?.()
    this.ring.leave(this)
    for (const resolve of this.waiting ?? []) resolve(DONE)
    this.waiting = undefined
  }

  /** Something is there, or the topic was closed. */
  woken(): void {
    while (this.waiting?.length && this.alive()) {
      const value = this.one()
      if (value === undefined) {
        this.ring.park(this)
        return
      }
      this.waiting.shift()?.({ done: false, value })
    }
    this.onWake?.()
  }

  /** Whether it goes on; a topic that was closed ends it here, so that closing needs no list of readers. */
  private alive(): boolean {
    if (!this.closed && this.ring.closed) this.close()
    return !this.closed
  }

  private oldest(): number {
    return this.epoch === this.ring.epoch ? Math.max(this.ahead, this.ring.head - this.ring.size + 1) : this.ahead
  }

  private one(): Delivery | undefined {
    const gap = this.gap()
    if (gap) return gap
    const event = this.ring.at(this.ahead)
    if (event === undefined) return undefined
    this.ahead++
    return { type: 'event', event }
  }

  /** What was lost between the last event received and the next one there is. */
  private gap(): Gap | undefined {
    const { ring } = this
    if (this.epoch !== ring.epoch) {
      this.epoch = ring.epoch
      this.ahead = ring.first
      return { type: 'gap', reason: 'link_lost', dropped: null, first_seq: null, last_seq: null }
    }
    const oldest = this.oldest()
    let found = oldest
    while (found <= ring.head && ring.at(found) === undefined) found++
    if (found === this.ahead) return undefined
    const lost = { dropped: found - this.ahead, first_seq: this.ahead, last_seq: found - 1 }
    this.lost += lost.dropped
    this.ahead = found
    return { type: 'gap', reason: found > oldest ? 'link_lost' : 'overflow', ...lost }
  }
}
