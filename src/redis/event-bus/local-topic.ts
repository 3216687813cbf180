/** One topic as this node hears it: messages become events of its ring, or holes that its readers see. */
import { SiteEvent, type StreamPosition } from '../../contract/event-bus.js'
import { deepFreeze } from '../../contract/json.js'
import { createTopic, type Topic } from '../../event-ring/topic.js'
import { BadRow } from '../table/rows.js'

/** Longest wait for events that were published before and are still on their way. */
const CATCH_UP_MS = 1_000

/** Where the store stands in a topic. */
export type Standing = StreamPosition

export interface LocalTopic {
  readonly name: string
  readonly topic: Topic
  /** Both are known once it is placed. */
  channel: string
  shard: number
  /** Whether its position is known. */
  readonly isPlaced: boolean
  placing: Promise<void> | undefined
  /** When the last reader left, on the process's own clock. */
  unreadAt: number
  /** Takes a message in; whether it lies behind what is known, which only the store can explain. */
  hear(message: string): boolean
  /** Where the store stood after the subscription: what was heard in between comes after it. */
  place(standing: Standing): void
  /**
   * Compares with where the store stands now, and whether events were found never to come. One that is not here may
   * still be on its way: lost is what was missing at the look before too, or, `isRelinked`, all that is missing.
   */
  compare(standing: Standing, isRelinked: boolean): boolean
  /** Resolves when the topic stands there, or after a second: then what is missing is left to the next look. */
  reach(standing: Standing): Promise<void>
  close(): void
}

// What the bus of one process takes, this one relays: fields of another use pass, those of ours are what they should be.
const Heard = SiteEvent.partial()
  .loose()
  .refine((event) => Object.keys(event).length > 1)

// An epoch stands in the id of a frame, where a control character would be another field.
const MESSAGE = /^([^\p{Cc}]*)\n([1-9][0-9]{0,15})\n/u

/** A message as it was heard: an event and where it stands. */
interface Message extends StreamPosition {
  text: string
}

function readMessage(message: string): Message | undefined {
  const [head, epoch, digits] = MESSAGE.exec(message) ?? []
  const seq = Number(digits)
  if (head === undefined || epoch === undefined || !Number.isSafeInteger(seq)) return undefined
  return { epoch, seq, text: message.slice(head.length) }
}

/** What the store held as the position of a topic could not be read: the count has started again under a new name. */
export function badPosition(topic: string): BadRow {
  return new BadRow(`the stored position of the topic ${JSON.stringify(topic)} was not an epoch and a count`)
}

/** @param report Told of what is not an event; a hole stands in its place. */
export function createLocalTopic(name: string, queueSize: number, report: (error: unknown) => void): LocalTopic {
  const topic = createTopic({
    queueSize,
    position: null,
    onUnread() {
      local.unreadAt = performance.now()
    },
  })
  /** Heard before the position was known; the ring takes no more than its size anyway. */
  let early: Message[] | null = []
  /** Where the store stood ahead of this node at the last look. */
  let behind: number | null = null
  let waiting: { seq: number; resolve: () => void }[] = []

  function take({ epoch, seq, text }: Message): boolean {
    // Another epoch: how many were lost of the former one nobody can say, but this one is not among them.
    if (epoch !== topic.position.epoch) topic.moveTo({ epoch, seq: seq - 1 })
    if (seq <= topic.position.seq) return true
    const event = parse(text, seq)
    if (event) topic.append(event)
    else {
      report(new BadRow(`a message on the topic ${JSON.stringify(name)} is not an event`))
      topic.moveTo({ epoch, seq })
    }
    settle()
    return false
  }

  function parse(text: string, seq: number): SiteEvent | undefined {
    try {
      const read = Heard.safeParse({ ...JSON.parse(text), seq })
      return read.success ? (deepFreeze(read.data) as SiteEvent) : undefined
    } catch {
      return undefined
    }
  }

  function settle() {
    if (waiting.length === 0) return
    const { seq } = topic.position
    for (const waits of waiting) if (waits.seq <= seq) waits.resolve()
    waiting = waiting.filter((waits) => waits.seq > seq)
  }

  const local: LocalTopic = {
    name,
    topic,
    channel: '',
    shard: 0,
    placing: undefined,
    unreadAt: performance.now(),
    get isPlaced() {
      return early === null
    },

    hear(heard) {
      const message = readMessage(heard)
      if (!message) {
        report(new BadRow(`a message on the topic ${JSON.stringify(name)} has no position`))
        return false
      }
      if (!early) return take(message)
      early.push(message)
      if (early.length > queueSize) early.shift()
      return false
    },

    place({ epoch, seq }) {
      if (!early) return
      const messages = early.filter((message) => message.epoch === epoch)
      const first = Math.min(...messages.map((message) => message.seq))
      early = null
      topic.begin({ epoch, seq: Math.min(seq, first - 1) })
      for (const message of messages) take(message)
    },

    compare({ epoch, seq }, isRelinked) {
      if (early) return false
      let isDeaf = false
      if (epoch !== topic.position.epoch || (isRelinked && seq > topic.position.seq)) topic.moveTo({ epoch, seq })
      else if (behind !== null && behind > topic.position.seq) {
        topic.moveTo({ epoch, seq: behind })
        isDeaf = true
      }
      behind = seq > topic.position.seq ? seq : null
      settle()
      return isDeaf
    },

    async reach({ epoch, seq }) {
      if (epoch !== topic.position.epoch || seq <= topic.position.seq) return
      await new Promise<void>((resolve) => {
        const waits = {
          seq,
          resolve() {
            clearTimeout(late)
            resolve()
          },
        }
        const late = setTimeout(() => {
          waiting = waiting.filter((other) => other !== waits)
          resolve()
        }, CATCH_UP_MS)
        waiting.push(waits)
      })
    },

    close() {
      topic.close()
      for (const { resolve } of waiting) resolve()
    },
  }
  return local
}
