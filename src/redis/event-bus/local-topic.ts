/** One topic on this node: messages become events in its ring, or gaps that its readers see. */
import { SiteEvent, type StreamPosition } from '../../internal/contract/event-bus.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { createTopic, type Topic } from '../../internal/event-ring/topic.js'
import { BadRow } from '../table/rows.js'

/** Maximum wait for events that were published earlier and are still in transit, in ms. */
const CATCH_UP_MS = 1_000

/** The position of a topic in the store. */
export type StorePosition = StreamPosition

export interface LocalTopic {
  readonly name: string
  readonly topic: Topic
  /** Channel and shard are set once the topic is placed. */
  channel: string
  shard: number
  /** Whether the position is known. */
  readonly isPlaced: boolean
  placing: Promise<void> | undefined
  /** Number of callers that wait for the topic before they read. */
  preparing: number
  /** When the last reader or waiting caller left, by `performance.now()`. */
  unreadAt: number
  /** Processes a message. Returns whether its position is before the known one, which only the store can explain. */
  hear(message: string): boolean
  /** Sets the position that the store reported after the subscription: messages received in between come after it. */
  place(position: StorePosition): void
  /**
   * Compares with the store's current position. A missing event may still be in transit: it counts as lost if it was
   * already missing a second before.
   */
  compare(position: StorePosition): void
  /**
   * Compares with the store's position after a reconnect. Missing events are lost unless they arrive within a second:
   * the store counts an event before it is delivered.
   */
  relink(position: StorePosition): Promise<void>
  /**
   * Resolves when the topic has reached `position`, or after a second: the next comparison handles what is still
   * missing.
   */
  reach(position: StorePosition): Promise<void>
  close(): void
}

// An epoch is part of a frame's id, where a control character would start another field.
const MESSAGE = /^([^\p{Cc}]*)\n([1-9][0-9]{0,15})\n/u

/** A received message: an event and its position. */
interface Message extends StreamPosition {
  text: string
}

function readMessage(message: string): Message | undefined {
  const [head, epoch, digits] = MESSAGE.exec(message) ?? []
  const seq = Number(digits)
  if (head === undefined || epoch === undefined || !Number.isSafeInteger(seq)) return undefined
  return { epoch, seq, text: message.slice(head.length) }
}

/** Returns the error for a stored position that is invalid: counting has restarted in a new epoch. */
export function badPosition(topic: string): BadRow {
  return new BadRow(`invalid stored position of the topic ${JSON.stringify(topic)}; a new epoch has begun`)
}

/** Callers that wait for a topic to reach a position, each with a timeout. */
function createWaits() {
  let waiting: { seq: number; resolve: () => void }[] = []
  return {
    until: (seq: number) =>
      new Promise<void>((resolve) => {
        const own = {
          seq,
          resolve() {
            clearTimeout(late)
            resolve()
          },
        }
        const giveUp = () => {
          waiting = waiting.filter((other) => other !== own)
          resolve()
        }
        // If the process was suspended, first process the messages that have arrived in the meantime.
        let late = setTimeout(() => {
          late = setTimeout(giveUp)
        }, CATCH_UP_MS)
        waiting.push(own)
      }),
    /** Resolves the callers that wait for `seq` or an earlier one. */
    resolve(seq: number) {
      if (waiting.length === 0) return
      for (const own of waiting) if (own.seq <= seq) own.resolve()
      waiting = waiting.filter((own) => own.seq > seq)
    },
  }
}

/** Parses the event in a message, or returns `undefined`. */
function parseEvent(text: string, seq: number): SiteEvent | undefined {
  try {
    // Anything can be published on the channel by another writer: unknown fields are dropped.
    const read = SiteEvent.safeParse({ ...JSON.parse(text), seq })
    return read.success ? deepFreeze(read.data) : undefined
  } catch {
    return undefined
  }
}

/**
 * Creates a topic.
 *
 * @param onError Called for each message that is not an event; readers see a gap instead.
 */
export function createLocalTopic(name: string, queueSize: number, onError: (error: unknown) => void): LocalTopic {
  const topic = createTopic({
    queueSize,
    position: null,
    onUnread() {
      local.unreadAt = performance.now()
    },
  })
  /** Messages received before the position was known; at most as many as fit in the ring. */
  let earlyMessages: Message[] | null = []
  /** The first message of its epoch that did not fit: the gap of its readers begins there. */
  let leftOut: Message | undefined
  /** The store's position when it was ahead of this node, and the time: until the missing events arrive or are lost. */
  let behind: (StorePosition & { at: number }) | undefined
  const waits = createWaits()

  const badMessage = (what: string) => new BadRow(`a message on the topic ${JSON.stringify(name)} ${what}`)

  const isAhead = ({ epoch, seq }: StorePosition) => epoch === topic.position.epoch && seq > topic.position.seq

  function take({ epoch, seq, text }: Message): boolean {
    // A new epoch: how many events of the previous one were lost is unknown, but this event is not among them.
    if (epoch !== topic.position.epoch) topic.moveTo({ epoch, seq: seq - 1 })
    if (seq <= topic.position.seq) return true
    const event = parseEvent(text, seq)
    if (event) topic.append(event)
    else {
      onError(badMessage('is not an event; its readers see a gap'))
      topic.moveTo({ epoch, seq })
    }
    waits.resolve(topic.position.seq)
    return false
  }

  const local: LocalTopic = {
    name,
    topic,
    channel: '',
    shard: 0,
    placing: undefined,
    preparing: 0,
    unreadAt: performance.now(),
    get isPlaced() {
      return earlyMessages === null
    },

    hear(heard) {
      const message = readMessage(heard)
      if (!message) {
        onError(badMessage('does not begin with its position and is skipped'))
        return false
      }
      if (!earlyMessages) return take(message)
      earlyMessages.push(message)
      const evicted = earlyMessages.length > queueSize ? earlyMessages.shift() : undefined
      if (evicted && evicted.epoch !== leftOut?.epoch) leftOut = { ...evicted, text: '' }
      return false
    },

    place({ epoch, seq }) {
      if (!earlyMessages) return
      const messages = earlyMessages.filter((message) => message.epoch === epoch)
      const heard = leftOut?.epoch === epoch ? [leftOut, ...messages] : messages
      const first = Math.min(...heard.map((message) => message.seq))
      earlyMessages = null
      topic.begin({ epoch, seq: Math.min(seq, first - 1) })
      for (const message of messages) take(message)
    },

    compare(position) {
      if (earlyMessages) return
      const now = performance.now()
      if (position.epoch !== topic.position.epoch) topic.moveTo(position)
      else if (behind && isAhead(behind) && now - behind.at >= CATCH_UP_MS) topic.moveTo(behind)
      if (behind && !isAhead(behind)) behind = undefined
      if (isAhead(position)) behind ??= { ...position, at: now }
      waits.resolve(topic.position.seq)
    },

    async relink(position) {
      if (earlyMessages) return
      const { epoch } = topic.position
      await local.reach(position)
      // An epoch that was received in the meantime is newer than the one in the reply.
      if (epoch !== topic.position.epoch) return
      if (position.epoch !== epoch || position.seq > topic.position.seq) topic.moveTo(position)
    },

    async reach({ epoch, seq }) {
      if (epoch !== topic.position.epoch || seq <= topic.position.seq) return
      await waits.until(seq)
    },

    close() {
      topic.close()
      waits.resolve(Number.POSITIVE_INFINITY)
    },
  }
  return local
}
