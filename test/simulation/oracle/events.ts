/** Events: published at most once, in order; what is lost is counted, exactly, as a gap. */
import { type Any, type Heard, type Reading, topicOf, type Viewer } from '../record.js'
import { type Facts, groupBy, mayRun, round } from './facts.js'

interface Position {
  epoch: string
  seq: number
}

const positionOf = (id: string): Position => {
  const at = id.lastIndexOf(':')
  return { epoch: id.slice(0, at), seq: Number(id.slice(at + 1)) }
}

/** Where each event was heard: one event has one position, and one position one event. */
function judgePositions(facts: Facts, reading: Reading, topic: string): Map<string, string> {
  const { history, violate, isLossy } = facts
  const positions = new Map<string, Set<string>>()
  const events = new Map<string, string>()
  const hear = (id: string, position: string) => {
    positions.set(id, (positions.get(id) ?? new Set()).add(position))
    const known = events.get(position)
    if (known !== undefined && known !== id && !isLossy) violate('position_shared', `${position}: ${id} and ${known}`)
    events.set(position, id)
  }
  for (const received of history.heard.filter((one) => one.topic === topic))
    for (const { id, epoch, seq } of received.items) if (id) hear(id, `${epoch}:${seq}`)
  for (const viewer of history.viewers.filter((one) => one.topic === topic))
    for (const { event, id, data } of viewer.frames) if (event === 'site_event' && id) hear(data.event_id, id)

  const retained = new Set((reading.messages.get(topic)?.body.items ?? []).map(({ message_id }: Any) => message_id))
  const sent = groupBy(
    facts.all('event').filter((one) => one.topic === topic),
    ({ message_id }) => message_id,
  )
  for (const [id, where] of positions) {
    if (where.size > 1 && !isLossy) violate('published_twice', `${id} at ${[...where].join(', ')}`)
    if (!retained.has(id) && !isLossy) violate('published_unretained', id)
    const all = sent.get(id) ?? []
    const isDenied = (one: (typeof all)[number]) =>
      !mayRun(one) ||
      (one.state === 'ok' && one.value.published === false && one.value.not_published_reason !== 'duplicate')
    if (all.length > 0 && all.every(isDenied)) violate('heard_though_denied', id)
  }
  return events
}

function judgeHeard({ violate }: Facts, heard: Heard, events: Map<string, string>): void {
  const { number, node, final } = heard
  if (!final) return
  const blame = (rule: string, about: string) => violate(rule, `subscriber ${number} on ${node}: ${about}`)
  let { epoch, seq } = heard.begin
  let isExact = heard.isPrepared
  for (const item of heard.items) {
    const { gap } = item
    if (gap && gap.dropped === null) isExact = false
    else if (gap) {
      if (gap.last_seq - gap.first_seq + 1 !== gap.dropped) blame('gap_miscounted', JSON.stringify(gap))
      if (isExact && gap.first_seq !== seq + 1) blame('gap_misplaced', `${JSON.stringify(gap)} after ${seq}`)
      seq = gap.last_seq
      isExact = true
    } else {
      if (isExact && item.epoch !== epoch && epoch !== undefined) blame('epoch_without_gap', `${epoch} → ${item.epoch}`)
      if (isExact && item.seq !== seq + 1) blame('lost_without_gap', `${seq} → ${item.seq}`)
      seq = item.seq as number
      isExact = true
    }
    epoch = item.epoch
  }
  if (!heard.isOpenAtEnd || final.pending > 0 || heard.hasDied) return
  if (isExact && final.seq !== seq) blame('lost_without_gap', `ends at ${final.seq}, received ${seq}`)
  const seqs = [...events.keys()].map(positionOf).filter((position) => position.epoch === final.epoch)
  const last = Math.max(0, ...seqs.map((position) => position.seq))
  if (final.seq < last) blame('published_unheard', `ends at ${final.seq} of ${last}`)
}

function judgeViewer(facts: Facts, viewer: Viewer): void {
  const { history, violate } = facts
  const { number, node, session_id, frames } = viewer
  const blame = (rule: string, about = '') => violate(rule, `viewer ${number} on ${node}: ${about}`)
  const resume = viewer.resume === null ? null : positionOf(viewer.resume)
  let position: Position | null = null
  let total = 0
  let isOver = false
  for (const [i, { event, id, data, at }] of frames.entries()) {
    if (isOver) blame('frame_after_end', event)
    if (event === 'ready') {
      if (i !== 0) blame('ready_not_first')
      position = id ? positionOf(id) : null
      const next = frames[1]
      const isElsewhere = resume && position && (position.epoch !== resume.epoch || position.seq !== resume.seq)
      if (isElsewhere && next?.event === 'site_event')
        blame('resume_without_gap', `${viewer.resume} → ${id} → ${next.id}`)
    } else if (event === 'gap' && id) {
      const now = positionOf(id)
      if (data.dropped !== null) {
        total += data.dropped
        if (data.last_seq - data.first_seq + 1 !== data.dropped) blame('gap_miscounted', JSON.stringify(data))
        const from = data.reason === 'resume' && resume ? resume : position
        if (from && from.epoch === now.epoch && data.first_seq !== from.seq + 1)
          blame('gap_misplaced', `${JSON.stringify(data)} after ${from.seq}`)
        if (data.last_seq !== now.seq) blame('gap_misplaced', `${JSON.stringify(data)} with id ${id}`)
        if (data.dropped_total !== total && data.dropped_total !== null)
          blame('gap_total', `${data.dropped_total}, not ${total}`)
      }
      position = now
    } else if (event === 'site_event' && id) {
      const now = positionOf(id)
      if (position && now.epoch !== position.epoch) blame('epoch_without_gap', id)
      else if (position && now.seq !== position.seq + 1) blame('lost_without_gap', `${position.seq} → ${now.seq}`)
      position = now
      judgeClosed(at)
    } else if (event === 'end') isOver = true
  }

  function judgeClosed(at: number): void {
    const close = history.operations.find(
      (one) => one.what === 'session.close' && one.session_id === session_id && one.state === 'ok',
    )
    if (close && at > close.ret + 3_000 && !facts.wasPaused(node, close.ret, at))
      blame('event_after_close', `${round(at)} > ${round(close.ret)}`)
  }
}

export function judgeEvents(facts: Facts, reading: Reading): void {
  const { history } = facts
  for (const user of history.userIds) {
    const topic = topicOf(user)
    const events = judgePositions(facts, reading, topic)
    for (const received of history.heard) if (received.topic === topic) judgeHeard(facts, received, events)
    for (const viewer of history.viewers) if (viewer.topic === topic) judgeViewer(facts, viewer)
  }
}
