/** The specification of a message's life, and whether a history of one message, of a stream and of a user keeps to it. */
import type { Fence } from './faults-fence.js'
import { type Answers, type Call, type Entry, isOpen, isRefused, type Operation } from './faults-history.js'
import { brokenBy, type Specification, type Step } from './faults-order.js'
import type { Rule } from './faults-rules.js'

type Ingest = Operation<Extract<Call, { what: 'ingest' }>>

interface State {
  isRetained: boolean
}

type Move = { kind: 'ingest'; answer: Answers['ingest'] | undefined } | { kind: 'read'; times: number }

const specification: Specification<State, Move> = (state, move) => {
  if (move.kind === 'read') {
    if (move.times > 1) return 'retained_twice'
    if (state.isRetained === (move.times === 1)) return state
    return state.isRetained ? 'accepted_and_gone' : 'there_though_refused'
  }
  const { isRetained } = state
  if (move.answer && move.answer.duplicate !== isRetained) return isRetained ? 'new_twice' : 'duplicate_of_nothing'
  return isRetained ? state : { isRetained: true }
}

export type Stream = Extract<Entry, { type: 'stream' }>

/** @param stream The last read of the stream; `undefined` where there was none. */
export function checkMessage(ingests: readonly Ingest[], stream: Stream | undefined, fence: Fence): Rule[] {
  if (!stream) return ['unread']
  const { message_id } = ingests[0]?.call ?? {}
  const held = stream.messages.filter((message) => message.message_id === message_id)
  const steps: Step<Move>[] = ingests
    .filter((ingest) => !isRefused(ingest))
    .map((ingest) => {
      const answer = ingest.end.type === 'ok' ? ingest.end.answer : undefined
      return { from: ingest.from, to: ingest.to, isSure: !isOpen(ingest), move: { kind: 'ingest', answer } }
    })
  const end = Number.MAX_SAFE_INTEGER
  steps.push({ from: end, to: end, isSure: true, move: { kind: 'read', times: held.length } })
  const broken = brokenBy(steps, { isRetained: false }, specification)
  if (broken) return [broken]
  if (held.some(({ n }) => !ingests.some(({ call }) => call.n === n))) return ['other_content']
  for (const { call, end: how, from, to } of ingests) {
    if (how.type === 'ok' && fence.isStale(call, from)) return ['stale_accepted']
    const isCalledStale = how.type === 'refused' && how.code === 'stale_instance'
    if (isCalledStale && !fence.mayBeStale(call, from, to)) return ['stale_unfounded']
  }
  return []
}

/** The stream as a whole. @param ingests Those of all its messages. */
export function checkStream(stream: Stream, ingests: ReadonlyMap<string, readonly Ingest[]>): Rule[] {
  const { messages } = stream
  const isWhole = messages.length === stream.message_count && messages.every(({ sequence }, i) => sequence === i + 1)
  if (!isWhole) return ['sequence_broken']
  // Each was retained after it was sent first, and before it was first answered for.
  let answered = Number.POSITIVE_INFINITY
  for (const { message_id } of [...messages].reverse()) {
    const own = (ingests.get(message_id) ?? []).filter((ingest) => !isRefused(ingest))
    if (Math.min(...own.map(({ from }) => from)) > answered) return ['out_of_order']
    for (const { end, to } of own) if (end.type === 'ok') answered = Math.min(answered, to)
  }
  return []
}

/** What is counted of a user: every retained message was accepted once, and no more duplicates than were sent. */
export function checkAccount(
  account: Extract<Entry, { type: 'account' }>,
  streams: readonly Stream[],
  ingests: readonly Ingest[],
): Rule[] {
  const retained = streams.reduce((sum, { messages }) => sum + messages.length, 0)
  const sent = ingests.filter((ingest) => !isRefused(ingest)).length
  const { entries, accepted, duplicates } = account
  return entries === retained && accepted === retained && duplicates <= sent - retained ? [] : ['account_differs']
}
