/** What the record of a command proves, what it does not prove, and what is unknown: one sentence per field. */

import type { DeliveryStatusAnswer } from '../../../internal/contract/delivery.js'
import { partsOf } from '../../../internal/contract/evidence.js'
import { HINTS } from '../words.js'

export interface Fact {
  text: string
  /** When it was recorded. */
  at?: string | null
  /** Where in the record it stands. */
  field: string
}

export interface Verdict {
  state: string
  reason: string | null
  /** What is unknown, in one sentence. */
  unknown: string
  proven: Fact[]
  notProven: Fact[]
  unknowns: Fact[]
}

/** What each end does not prove. */
const NOT_PROVEN: Record<string, string> = {
  resulted: 'That the result is right, or that an effect happened.',
  failed: 'That nothing happened outside.',
  expired: 'That the client did not run it, or will not run it later.',
  cancelled: 'That the client stopped.',
  rejected: 'That a retry would be rejected too.',
}

/** Failures that no client reported. */
const FAILURES: Record<string, string> = {
  attempts_exhausted: 'The attempts were used up.',
  payload_missing: 'Its payload was missing at the time of delivery.',
}

const UNKNOWN: Record<string, string> = {
  resulted: 'It is unknown whether an effect happened outside.',
  failed: 'It is unknown whether something happened outside.',
  cancelled: 'It is unknown whether the client stopped in time.',
}

function unknownOf(state: string, status: DeliveryStatusAnswer): string {
  const { terminal } = status
  const { attempts, acknowledgement } = partsOf(status)
  if (state === 'rejected') return 'It was never queued, so nothing was run.'
  if (acknowledgement.state === 'refused') return 'It is unknown whether the client ran a part of it before it refused.'
  const isUntried = attempts.count === 0
  if (terminal && isUntried && state !== 'resulted') return 'It was never delivered, so the client ran none of it.'
  if (state === 'expired' && acknowledgement.state === 'acknowledged')
    return 'The client received it. It is unknown whether it ran it, or still will.'
  if (state === 'expired' || terminal?.reason === 'attempts_exhausted') {
    const { count } = attempts
    if (count === null) return 'It is unknown whether the client ran it, and how often.'
    return `It is unknown whether the client ran it: 0${count === 1 ? ' times or once' : ` to ${count} times`}.`
  }
  return UNKNOWN[state] ?? HINTS[state] ?? 'Nothing more is known.'
}

function attemptsIn(status: DeliveryStatusAnswer, { proven, notProven, unknowns }: Verdict): void {
  const { terminal } = status
  const { attempts, acknowledgement } = partsOf(status)
  const { count, confirmed, last_at } = attempts
  const field = 'attempts'
  if (count === null) {
    unknowns.push({ text: 'How many attempts were made.', field })
    return
  }
  if (count === 0) {
    if (terminal) proven.push({ text: 'No attempt was made: no node claimed it.', field })
    return
  }
  const times = `${count} attempt${count === 1 ? '' : 's'}`
  proven.push({
    text: confirmed ? `It was sent in ${confirmed} of ${times}.` : `A node claimed it: ${times}, none known as sent.`,
    at: last_at,
    field,
  })
  if (acknowledgement.state !== 'none') return
  notProven.push({ text: 'That it arrived: what is sent can be lost on the way.', field })
  if (count > 1) unknowns.push({ text: 'How often the client received it: it may have seen it more than once.', field })
}

function acknowledgementIn(status: DeliveryStatusAnswer, { proven, notProven, unknowns }: Verdict): void {
  const { terminal } = status
  const { attempts, acknowledgement } = partsOf(status)
  const { state, at } = acknowledgement
  const field = 'acknowledgement'
  if (state === null) unknowns.push({ text: 'Whether the client received it.', field })
  else if (state === 'none') {
    // What was never sent cannot have been run.
    if (terminal && attempts.count === 0) return
    notProven.push({ text: `That the client has not run it: its reply may have been lost.`, field })
    if (!terminal) unknowns.push({ text: 'Whether the client will reply.', field })
  } else if (state === 'refused') {
    proven.push({ text: 'The client refused to run it.', at, field })
    notProven.push({ text: 'That the client ran none of it before it refused.', field })
  } else {
    proven.push({ text: 'The client received it: it is never delivered again.', at, field })
    notProven.push({ text: 'That the client began it, finished it, or will.', field })
  }
}

/** Reads a record. */
export function verdictOf(status: DeliveryStatusAnswer): Verdict {
  const { terminal } = status
  const { admission, attempts, acknowledgement } = partsOf(status)
  const isAcknowledged = acknowledgement.state !== null && acknowledgement.state !== 'none'
  const { count } = attempts
  const open = isAcknowledged ? 'acknowledged' : count === null ? 'unknown' : count > 0 ? 'attempted' : 'waiting'
  const state = terminal ? (terminal.state ?? 'ended') : open
  const isUntried = attempts.count === 0
  const verdict: Verdict = {
    state,
    reason: terminal?.reason ?? null,
    unknown: unknownOf(state, status),
    proven: [],
    notProven: [],
    unknowns: [],
  }
  if (admission.state === 'admitted') {
    const text = terminal ? 'It was admitted.' : 'Capacity is reserved for it until its end.'
    verdict.proven.push({ text, at: admission.at, field: 'admission' })
    if (isUntried && !terminal)
      verdict.notProven.push({ text: 'That a client is connected to receive it.', field: 'admission' })
  }
  attemptsIn(status, verdict)
  acknowledgementIn(status, verdict)
  const field = 'terminal'
  if (terminal) {
    const failure = FAILURES[terminal.reason ?? ''] ?? 'An authorized caller reported a failure.'
    const text = terminal.state === 'failed' ? failure : (HINTS[terminal.state ?? ''] ?? 'It has ended.')
    // A refusal is its own proof.
    if (acknowledgement.state !== 'refused') verdict.proven.push({ text, at: terminal.at, field })
    if (!isUntried || /resulted|rejected/.test(state))
      verdict.notProven.push({ text: NOT_PROVEN[state] ?? 'What happened outside.', field })
  } else if (status.overdue)
    verdict.proven.push({ text: 'Its deadline has passed, and no node has recorded its end.', field: 'overdue' })
  else verdict.unknowns.push({ text: 'Whether it makes progress.', field })
  return verdict
}
