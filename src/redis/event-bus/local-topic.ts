/** One topic as this node hears it: messages become events of its ring, or holes that its readers see. */
import { SiteEvent, type StreamPosition } from '../../contract/event-bus.js'
import { deepFreeze } from '../../contract/json.js'
import { createTopic, type Topic } from '../../event-ring/topic.js'
import { BadRow } from '../table/rows.js'

/** Longest wait for events that were published before and are still on their way. */
const CATCH_UP_MS = 1_000

/** Where the store stands in a topic. */
export type StorePosition = StreamPosition

export interface LocalTopic {
  readonly name: string
  readonly topic: Topic
  /** Both are known once it is placed. */
  channel: string
  shard: number
  /** Whether its position is known. */
  readonly isPlaced: boolean
  placing: Promise<void> | undefined
  /** Who waits for it before they read. */
  preparing: number
  /** When the last of these or of its readers left, on the process's own clock. */
  unreadAt: number
  /** Takes a message in; whether it lies behind what is known, which only the store can explain. */
  hear(message: string): boolean
  /** Where the store stood after the subscription: what was heard in between comes after it. */
  place(position: StorePosition): void
  /**
   * Compares with where the store stands now. An event that is not here may still be on its way: lost is what was missing
   * at a look a second ago or more.
   */
  compare(position: StorePosition): void
  /**
   * Where the store stands now that the link is back. What is missing is lost, but for what comes within a second: the store
   * counts an event before it is heard.
   */
  relink(position: StorePosition): Promise<void>
  /** Resolves when the topic stands there, or after a second: then what is missing is left to the next look. */
  reach(position: StorePosition): Promise<void>
  close(): void
}

// A foreign writer may publish anything on the channel. Unknown fields pass, as on the bus of one process.
const Heard = SiteEvent.loose()

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
  return new BadRow(
    `the stored position of the topic ${JSON.stringify(topic)} was not an epoch and a count; a new epoch has begun`,
  )
}

/** Who waits for a topic to reach a position, each for a bounded time. */
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
        // A process that stood still for so long looks first at what has arrived meanwhile.
        let late = setTimeout(() => {
          late = setTimeout(giveUp)
        }, CATCH_UP_MS)
        waiting.push(own)
      }),
    /** The topic has reached `seq`. */
    resolve(seq: number) {
      if (waiting.length === 0) return
      for (const own of waiting) if (own.seq <= seq) own.resolve()
      waiting = waiting.filter((own) => own.seq > seq)
    },
  }
}

/** The event in a message, or `undefined` where it holds none. */
function parseEvent(text: string, seq: number): SiteEvent | undefined {
  try {
    const read = Heard.safeParse({ ...JSON.parse(text), seq })
    return read.success ? (deepFreeze(read.data) as SiteEvent) : undefined
  } catch {
    return undefined
  }
}

/** @param onError Told of what is not an event; a hole stands in its place. */
export function createLocalTopic(name: string, queueSize: number, onError: (error: unknown) => void): LocalTopic {
  const topic = createTopic({
    queueSize,
    position: null,
    onUnread() {
      local.unreadAt = performance.now()
    },
  })
  /** Heard before the position was known; the ring takes no more than its size anyway. */
  let earlyMessages: Message[] | null = []
  /** The first of its epoch that was left out of those: where its readers' gap begins. */
  let leftOut: Message | undefined
  /** Where the store stood ahead of this node, and when: until that has come or is lost. */
  let behind: (StorePosition & { at: number }) | undefined
  const waits = createWaits()

  const badMessage = (what: string) => new BadRow(`a message on the topic ${JSON.stringify(name)} ${what}`)

  const isAhead = ({ epoch, seq }: StorePosition) => epoch === topic.position.epoch && seq > topic.position.seq

  function take({ epoch, seq, text }: Message): boolean {
    // Another epoch: how many were lost of the former one nobody can say, but this one is not among them.
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
        onError(badMessage('does not begin with its position; it is passed over'))
        return false
      }
      if (!earlyMessages) return take(message)
      earlyMessages.push(message)
      const left = earlyMessages.length > queueSize ? earlyMessages.shift() : undefined
      if (left && left.epoch !== leftOut?.epoch) leftOut = { ...left, text: '' }
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
      // An epoch that was heard of meanwhile is later than the one that the store was asked for.
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
