/** Messages: accepted means in the history, exactly once and in order. */
import type { Operation, Reading } from '../record.js'
import { type Facts, groupBy, mayRun } from './facts.js'

interface Retained {
  message_id: string
  sequence: number
}

function judgeOrder(facts: Facts, items: readonly Retained[], messages: Map<string, Operation[]>): void {
  const places = new Map(items.map(({ message_id }, place) => [message_id, place]))
  const spans = [...messages].flatMap(([id, all]) => {
    const place = places.get(id)
    const ok = all.filter(({ state }) => state === 'ok').map(({ ret }) => ret)
    return place === undefined
      ? []
      : [{ id, place, from: Math.min(...all.map(({ call }) => call)), to: Math.min(...ok) }]
  })
  for (const a of spans)
    for (const b of spans)
      if (a.to < b.from && a.place > b.place) facts.violate('out_of_order', `${a.id} after ${b.id}`)
}

export function judgeMessages(facts: Facts, reading: Reading): void {
  const { violate } = facts
  const streams = groupBy(facts.all('ingest', 'event'), ({ stream, topic }) => stream ?? topic)
  for (const [stream, all] of streams) {
    const answer = reading.messages.get(stream)
    if (answer?.status !== 200) {
      violate('diagnostics_unavailable', `history of ${stream}: ${answer?.status}`)
      continue
    }
    const items: Retained[] = answer.body.items
    const times = groupBy(items, ({ message_id }) => message_id)
    for (const [id, { length }] of times) if (length > 1) violate('retained_twice', `${id} in ${stream}`)
    for (const [i, { sequence }] of items.entries()) {
      const before = items[i - 1]
      if (before && sequence !== before.sequence + 1 && !facts.isLossy)
        violate('sequence_broken', `${stream} ${before.sequence} → ${sequence}`)
    }
    const messages = new Map(facts.certain(groupBy(all, ({ message_id }) => message_id)))
    for (const [id, own] of messages) {
      const about = `${id} of ${stream}`
      const ok = own.filter(({ state }) => state === 'ok')
      if (ok.length > 0 && !times.has(id)) violate('accepted_and_gone', about)
      if (!own.some(mayRun) && times.has(id)) violate('there_though_refused', about)
      if (ok.filter(({ value }) => !value.duplicate).length > 1) violate('new_twice', about)
      for (const one of ok)
        if (one.value.duplicate && !own.some((other) => other !== one && mayRun(other) && other.call < one.ret))
          violate('duplicate_of_nothing', about)
    }
    judgeOrder(facts, items, messages)
  }
}
