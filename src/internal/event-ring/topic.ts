/** One topic of an event bus in one process: a ring of the newest events, and subscribers that are cursors into it. */
import {
  type EventRun,
  type SiteEvent,
  type StreamPosition,
  SubscribeInput,
  type SubscribeOptions,
  type Subscription,
} from '../contract/event-bus.js'
import { parseInput } from '../contract/options.js'
import { CLOSED, Cursor, type Ring, type Slot } from './cursor.js'

interface TopicOptions {
  /** Events kept for readers that lag. */
  queueSize: number
  /** The position of the topic; `null` until `begin` provides it. */
  position: StreamPosition | null
  /** Called when the last reader has unsubscribed. */
  onUnread?: (() => void) | undefined
}

/** A topic as a bus sees it. The bus decides where positions come from; the topic knows who has lost what. */
export interface Topic {
  /** Subscriptions now. */
  readonly readers: number
  /** Everything up to here has been appended, or is known to be lost. */
  readonly position: StreamPosition
  /**
   * Appends the event after `position`. A skipped `seq` leaves a hole; a `seq` that is not ahead or not a safe integer
   * is ignored.
   */
  append(event: SiteEvent): void
  /** Sets the position of a topic created without one: earlier subscribers start there, without a gap. */
  begin(position: StreamPosition): void
  /**
   * Moves the topic to `position`: ahead in the same epoch leaves a hole, another epoch means an unknown number of lost
   * events. Validated like `append`.
   */
  moveTo(position: StreamPosition): void
  /** Records what this process has published: later subscribers start after it, even if it has not arrived back yet. */
  published(position: StreamPosition): void
  /** @throws Refusal `invalid_input`. */
  subscribe(options?: SubscribeOptions): Subscription
  /** Ends every subscription. */
  close(): void
}

/** The ring of `queueSize` events that all readers of a topic share. Holes read as gaps with reason `link_lost`. */
export function createTopic(options: TopicOptions): Topic {
  return new TopicRing(options)
}

class TopicRing implements Topic, Ring {
  readers = 0
  epoch: string
  head: number
  first: number
  /** The newest of the epoch that was published from here. */
  private sent = 0
  closed = false
  readonly releases = new Set<() => void>()
  readonly size: number
  private readonly onUnread: (() => void) | undefined
  /** Event `seq` is stored at `seq % size`; a slot with another seq is a hole. */
  private slots: Slot[] = []
  private shared: EventRun | undefined
  /** Who found nothing and waits. Each knows its place, so that leaving is O(1). */
  private parked: Cursor[] = []
  /** The list of the wake before, emptied: ten thousand readers need no new one per event. */
  private spare: Cursor[] = []
  private waking = false
  /** Who subscribed before the position was known. */
  private unplaced: Set<Cursor> | undefined

  constructor({ queueSize, position, onUnread }: TopicOptions) {
    this.size = queueSize
    this.onUnread = onUnread
    this.epoch = position?.epoch ?? ''
    this.head = position?.seq ?? 0
    this.first = this.head + 1
    this.unplaced = position ? undefined : new Set()
  }

  get position(): StreamPosition {
    return { epoch: this.epoch, seq: this.head }
  }

  get start(): number {
    return Math.max(this.head, this.sent) + 1
  }

  append(event: SiteEvent): void {
    if (event.seq <= this.head || !Number.isSafeInteger(event.seq)) return
    this.head = event.seq
    // Without readers only the position matters: nothing is ever replayed.
    if (this.readers === 0) return
    const result = { done: false, value: { type: 'event', event } } as const
    this.slots[event.seq % this.size] = { event, result, resolved: undefined }
    this.shared = undefined
    this.wake()
  }

  begin({ epoch, seq }: StreamPosition): void {
    if (epoch !== this.epoch) this.sent = 0
    this.epoch = epoch
    this.head = seq
    this.first = seq + 1
    for (const cursor of this.unplaced ?? []) cursor.begin(this)
    this.unplaced = undefined
  }

  moveTo({ epoch, seq }: StreamPosition): void {
    if (!Number.isSafeInteger(seq)) return
    if (epoch === this.epoch) {
      if (seq > this.head) this.head = seq
    } else {
      this.epoch = epoch
      this.head = seq
      this.first = seq + 1
      this.sent = 0
      this.forget()
    }
    this.wake()
  }

  published({ epoch, seq }: StreamPosition): void {
    // Before its place is known the topic has no epoch that could be another one.
    if (this.unplaced && epoch !== this.epoch) {
      this.epoch = epoch
      this.sent = 0
    }
    if (epoch === this.epoch && seq > this.sent) this.sent = seq
  }

  subscribe(options: SubscribeOptions = {}): Subscription {
    const cursor = new Cursor(this, this.read(options))
    if (!cursor.closed) {
      this.readers++
      this.unplaced?.add(cursor)
    }
    return cursor
  }

  private read(options: SubscribeOptions): SubscribeOptions {
    try {
      return parseInput(SubscribeInput, options)
    } catch (error) {
      // A topic created for a refused subscriber is as unread as one whose readers have left.
      if (this.readers === 0) this.onUnread?.()
      throw error
    }
  }

  close(): void {
    this.closed = true
    // A reader that never polls again would never notice, and a signal may outlive the bus.
    for (const release of this.releases) release()
    this.wake()
  }

  at(seq: number): Slot | undefined {
    const slot = this.slots[seq % this.size]
    return slot?.event.seq === seq && seq > this.head - this.size ? slot : undefined
  }

  run(from: number): EventRun {
    return this.shared?.events[0]?.seq === from ? this.shared : this.share(from)
  }

  around(from: number): EventRun {
    const { events } = this.shared ?? {}
    return this.shared && events?.[from - (events[0] as SiteEvent).seq] ? this.shared : this.share(from)
  }

  private share(from: number): EventRun {
    const events: SiteEvent[] = []
    for (let seq = from; seq <= this.head; seq++) {
      const slot = this.at(seq)
      if (slot === undefined) break
      events.push(slot.event)
    }
    this.shared = { type: 'run', events }
    return this.shared
  }

  park(cursor: Cursor): void {
    if (cursor.place < 0) cursor.place = this.parked.push(cursor) - 1
  }

  leave(cursor: Cursor): void {
    // While a wake is in progress a cursor may still be in its list, under the same index.
    if (this.parked[cursor.place] === cursor) {
      const last = this.parked.pop() as Cursor
      if (last !== cursor) this.parked[cursor.place] = last
      last.place = cursor.place
    }
    this.unplaced?.delete(cursor)
    this.readers--
    if (this.readers > 0) return
    this.forget()
    this.onUnread?.()
  }

  private forget(): void {
    this.slots = []
    this.shared = undefined
  }

  /** Wakes who is parked, once for all that one tick brings. */
  private wake(): void {
    if (this.waking || this.parked.length === 0) return
    this.waking = true
    queueMicrotask(() => {
      this.waking = false
      const woken = this.parked
      this.parked = this.spare
      for (const cursor of woken) {
        if (cursor.place === CLOSED) continue
        cursor.place = -1
        try {
          cursor.woken()
        } catch (error) {
          // A bug in the host's callback surfaces as an uncaught error and does not prevent other readers from waking.
          queueMicrotask(() => {
            throw error
          })
        }
      }
      woken.length = 0
      this.spare = woken
    })
  }
}
