/** What subscribers heard of a topic, held against what was answered to those who published. */
import { type Call, type Entry, isOpen, type Operation } from './faults-history.js'
import type { Stream } from './faults-message.js'
import type { Violation } from './faults-rules.js'

type Heard = Extract<Entry, { type: 'heard' | 'gap' }>

/** One subscription: a process's life on a topic. */
interface Listening {
  process: string
  from: number
  heard: readonly Heard[]
}

export interface TopicHistory {
  topic: string
  ingests: readonly Operation<Extract<Call, { what: 'ingest' }>>[]
  subscriptions: readonly Operation<Extract<Call, { what: 'subscribe' }>>[]
  heard: readonly Heard[]
  stream: Stream | undefined
  /** Processes that lived to the end. */
  alive: ReadonlySet<string>
}

/** Holes of what one process heard that no gap told of. */
function missed(heard: readonly Heard[]): string | undefined {
  let last: { epoch: string; seq: number } | undefined
  let isTold = false
  for (const one of heard) {
    if (one.type === 'gap') {
      isTold = true
      continue
    }
    const isNext = !last || isTold || last.epoch !== one.epoch || one.seq === last.seq + 1
    if (!isNext || (last?.epoch === one.epoch && one.seq <= last.seq)) return `${one.epoch}:${one.seq}`
    last = one
    isTold = false
  }
  return undefined
}

export function checkTopic({ topic, ingests, subscriptions, heard, stream, alive }: TopicHistory): Violation[] {
  const violations: Violation[] = []
  const positions = new Map<string, string>()
  const events = new Map<string, string>()
  for (const one of heard) {
    if (one.type === 'gap') continue
    const position = `${one.epoch}:${one.seq}`
    const about = `${topic} ${one.event_id} at ${position}`
    const [there, before] = [positions.get(position), events.get(one.event_id)]
    positions.set(position, one.event_id)
    events.set(one.event_id, position)
    if (there !== undefined && there !== one.event_id) violations.push({ rule: 'position_shared', about })
    if (before !== undefined && before !== position) violations.push({ rule: 'published_twice', about })
  }

  const retained = new Set(stream?.messages.map(({ message_id }) => message_id))
  const said = new Map<string, { published: number; isOpen: boolean }>()
  for (const ingest of ingests) {
    const { message_id } = ingest.call
    const known = said.get(message_id) ?? { published: Number.POSITIVE_INFINITY, isOpen: false }
    said.set(message_id, known)
    const answer = ingest.end.type === 'ok' ? ingest.end.answer : undefined
    if (answer?.published === true) known.published = Math.min(known.published, ingest.from)
    known.isOpen ||= isOpen(ingest) || answer?.published === null
  }
  for (const event_id of events.keys()) {
    const about = `${topic} ${event_id}`
    const known = said.get(event_id)
    if (stream && !retained.has(event_id)) violations.push({ rule: 'published_unretained', about })
    else if (known && !known.isOpen && known.published === Number.POSITIVE_INFINITY)
      violations.push({ rule: 'heard_though_denied', about })
  }

  const listening = subscriptions
    .filter(({ end }) => end.type === 'ok')
    .map(({ process, to }): Listening => ({ process, from: to, heard: heard.filter((one) => one.process === process) }))
  for (const { process, from, heard: own } of listening) {
    const hole = missed(own)
    if (hole) violations.push({ rule: 'lost_without_gap', about: `${topic} before ${hole} at ${process}` })
    if (!alive.has(process) || own.some(({ type }) => type === 'gap')) continue
    const ids = new Set(own.map((one) => (one.type === 'heard' ? one.event_id : '')))
    for (const [event_id, { published }] of said)
      if (Number.isFinite(published) && published > from && !ids.has(event_id))
        violations.push({ rule: 'published_unheard', about: `${topic} ${event_id} at ${process}` })
  }
  return violations
}
