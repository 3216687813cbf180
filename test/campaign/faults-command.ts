/** The specification of a command's life, as a small machine, and whether a history of one command keeps to it. */
import type { DeliveryStatus } from '../../src/contract/delivery.js'
import type { Fence } from './faults-fence.js'
import { type Answers, type Call, type Entry, isOpen, isRefused, type Operation } from './faults-history.js'
import { brokenBy, type Specification, type Step } from './faults-order.js'
import type { Rule } from './faults-rules.js'

/** All that a history tells of one command. */
export interface CommandHistory {
  operations: Operation[]
  handedOver: Extract<Entry, { type: 'handed_over' }>[]
  /** The last read; `undefined` where there was none. */
  status: DeliveryStatus | null | undefined
}

interface State {
  phase: 'none' | 'admitted' | 'ended'
  end: string | null
  /** The latest attempt that was handed over. */
  attempt: number
  isAcknowledged: boolean
}

/** `counted`: the answer, or nothing where nobody was told. `fence`: what is known of the instance that speaks. */
type Move =
  | { kind: 'dispatch'; answer: Answers['dispatch'] | undefined }
  | { kind: 'hand_over'; attempt: number }
  | { kind: 'acknowledge'; counted: boolean | undefined; fence: Fenced; ends: boolean }
  | { kind: 'end'; counted: boolean | undefined; fence: Fenced; end: string }
  | { kind: 'expire' }
  | { kind: 'read'; status: DeliveryStatus | null }
type Fenced = 'current' | 'unsure' | 'stale'

/** Between the clock of the campaign and that of the store over a run. */
const SLACK_MS = 100
/** How long after all faults a command may still be waiting for its client: the longest pause between attempts, and patience. */
const GRACE_MS = 25_000

function dispatch(state: State, answer: Answers['dispatch'] | undefined): State | Rule {
  const admitted: State = { ...state, phase: 'admitted' }
  if (!answer) return state.phase === 'none' ? admitted : state
  if (answer.admission === 'rejected') return state.phase === 'none' ? state : 'rejected_after_admission'
  if (state.phase === 'none') return answer.terminal === null ? admitted : 'end_from_nowhere'
  if (answer.terminal === state.end) return state
  return answer.terminal === null ? 'alive_after_end' : 'end_from_nowhere'
}

function handOver(state: State, attempt: number): State | Rule {
  if (state.phase === 'none') return 'handed_over_unadmitted'
  if (attempt <= state.attempt) return 'handed_over_twice'
  if (state.phase === 'ended') return 'handed_over_after_end'
  return state.isAcknowledged ? 'handed_over_after_acknowledgement' : { ...state, attempt }
}

function acknowledge(state: State, move: Extract<Move, { kind: 'acknowledge' }>): State | Rule {
  const isPossible = state.phase === 'admitted' && state.attempt > 0
  if (move.counted === false) return isPossible && move.fence === 'current' ? 'acknowledgement_denied' : state
  const next: State = { ...state, isAcknowledged: true, ...(move.ends && { phase: 'ended', end: 'failed' }) }
  if (move.counted === undefined) return isPossible && move.fence !== 'stale' ? next : state
  if (move.fence === 'stale') return 'stale_word'
  if (state.phase === 'ended') return 'acknowledged_after_end'
  return isPossible ? next : 'acknowledged_unseen'
}

function end(state: State, move: Extract<Move, { kind: 'end' }>): State | Rule {
  const isPossible = state.phase === 'admitted'
  if (move.counted === false) return isPossible && move.fence === 'current' ? 'end_denied' : state
  const next: State = { ...state, phase: 'ended', end: move.end }
  if (move.counted === undefined) return isPossible && move.fence !== 'stale' ? next : state
  if (move.fence === 'stale') return 'stale_word'
  if (state.phase === 'ended') return 'ended_twice'
  return isPossible ? next : 'ended_unadmitted'
}

function read(state: State, status: DeliveryStatus | null): State | Rule {
  if (status === null) return state.phase === 'none' ? state : 'admitted_and_gone'
  if (status.admission.state === 'rejected') return state.phase === 'none' ? state : 'rejected_after_admission'
  if (state.phase === 'none') return 'there_though_refused'
  const { terminal, attempts, acknowledgement } = status
  if (terminal === null) return state.end === null ? 'not_ended' : 'alive_after_end'
  if (terminal.state !== state.end) return 'end_from_nowhere'
  if (attempts.count < state.attempt) return 'attempts_uncounted'
  const isAcknowledged = acknowledgement.state !== 'none'
  if (isAcknowledged === state.isAcknowledged) return state
  return isAcknowledged ? 'acknowledgement_from_nowhere' : 'acknowledgement_lost'
}

const specification: Specification<State, Move> = (state, move) => {
  if (move.kind === 'dispatch') return dispatch(state, move.answer)
  if (move.kind === 'hand_over') return handOver(state, move.attempt)
  if (move.kind === 'acknowledge') return acknowledge(state, move)
  if (move.kind === 'end') return end(state, move)
  if (move.kind === 'read') return read(state, move.status)
  return state.phase === 'admitted' ? { ...state, phase: 'ended', end: 'expired' } : state
}

/** What an operation does, where it has done anything. */
function moveOf(operation: Operation, fence: Fence): Move | undefined {
  const { call, from, to, end } = operation
  const answer = end.type === 'ok' ? end.answer : undefined
  const fenceOf = (word: Extract<Call, { what: 'acknowledge' }>): Fenced =>
    fence.isStale(word, from) ? 'stale' : fence.mayBeStale(word, from, to) ? 'unsure' : 'current'
  const counted = answer as boolean | undefined
  if (call.what === 'dispatch') return { kind: 'dispatch', answer: answer as Answers['dispatch'] | undefined }
  if (call.what === 'acknowledge')
    return { kind: 'acknowledge', counted, fence: fenceOf(call), ends: call.state === 'refused' }
  if (call.what === 'cancel') return { kind: 'end', counted, fence: 'current', end: 'cancelled' }
  if (call.what !== 'settle') return undefined
  const { instance_id, state } = call
  const speaks =
    instance_id === null ? 'current' : fenceOf({ ...call, what: 'acknowledge', state: 'refused', instance_id })
  return { kind: 'end', counted, fence: speaks, end: state }
}

/** What the record alone says, by the one clock of the store. */
function recordBreaks({ attempts, acknowledgement, terminal }: DeliveryStatus): Rule | undefined {
  const last = attempts.last_at ?? ''
  if (acknowledgement.at !== null && last > acknowledgement.at) return 'attempted_after_acknowledgement'
  if (terminal && last > terminal.at) return 'attempted_after_end'
  if (terminal && acknowledgement.at !== null && acknowledgement.at > terminal.at) return 'acknowledged_after_end'
  return attempts.confirmed > attempts.count ? 'attempts_uncounted' : undefined
}

/** @param healedAt From when on nothing was done to nodes and links. */
export function checkCommand(
  { operations, handedOver, status }: CommandHistory,
  fence: Fence,
  healedAt: number,
): Rule[] {
  if (status === undefined) return ['unread']
  const dispatches = operations.filter(({ call }) => call.what === 'dispatch')
  const first = Math.min(...dispatches.map(({ from }) => from))
  const numbers = new Set(dispatches.map(({ call }) => (call.what === 'dispatch' ? call.n : 0)))
  if (handedOver.some(({ n }) => !numbers.has(n))) return ['other_payload']

  const steps: Step<Move>[] = []
  for (const operation of operations) {
    const move = isRefused(operation) ? undefined : moveOf(operation, fence)
    const { from, to } = operation
    if (move?.kind === 'dispatch' && move.answer?.admission === 'admitted' && move.answer.terminal)
      // A client sends again what it got no reply to: what that did came before what its answer read.
      steps.push({ from, to, isSure: false, move: { kind: 'dispatch', answer: undefined } })
    if (move) steps.push({ from, to, isSure: !isOpen(operation), move })
  }
  for (const word of handedOver) {
    // A node claims for a connection that it has, and may tell of it much later.
    const from = Math.max(first, fence.since(word))
    steps.push({ from, to: word.at, isSure: true, move: { kind: 'hand_over', attempt: word.attempt } })
  }
  const deadlines = dispatches.map(({ call, from }) => from + (call.what === 'dispatch' ? call.deadlineMs : 0))
  const deadline = Math.min(...deadlines) - SLACK_MS
  const end = Number.MAX_SAFE_INTEGER
  steps.push({ from: deadline, to: Number.POSITIVE_INFINITY, isSure: false, move: { kind: 'expire' } })
  steps.push({ from: end, to: end, isSure: true, move: { kind: 'read', status } })

  const initial: State = { phase: 'none', end: null, attempt: 0, isAcknowledged: false }
  const broken = brokenBy(steps, initial, specification) ?? (status ? recordBreaks(status) : undefined)
  if (broken) return [broken]
  const isStranded = status?.terminal?.state === 'expired' && deadline > healedAt + GRACE_MS
  return isStranded ? ['stranded'] : []
}
