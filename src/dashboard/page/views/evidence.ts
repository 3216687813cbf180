/** What the record of a command proves, what it does not, and what nobody knows: in sentences, each from its field. */
import type { DeliveryStatus } from '../../../contract/delivery.js'

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
  /** What nobody knows, in one sentence. */
  unknown: string
  proven: Fact[]
  notProven: Fact[]
  nobody: Fact[]
}

/** Each end: what it proves, and what not. */
const ENDS: Record<string, readonly [proves: string, not: string]> = {
  resulted: ['Someone entitled reported a result.', 'That the result is right, or that an effect happened.'],
  failed: ['Someone entitled reported a failure.', 'That nothing happened outside.'],
  expired: ['The deadline passed first.', 'That the client did not run it, or will not still.'],
  cancelled: ['Someone asked to stop it before the end.', 'That the client stopped.'],
  rejected: ['It was refused on arrival and never queued.', 'That it stays refused.'],
}

/** Of a failure that nobody reported. */
const FAILURES: Record<string, string> = {
  attempts_exhausted: 'The attempts were used up.',
  payload_missing: 'Its payload was gone before it could be handed over.',
}

const UNKNOWN: Record<string, string> = {
  resulted: 'Nobody here knows whether an effect happened outside.',
  failed: 'Nobody knows whether something happened outside before the failure.',
  cancelled: 'Nobody knows whether the client stopped in time.',
  waiting: 'It may still be delivered before its deadline.',
  attempted: 'Nobody knows whether the client has it.',
  acknowledged: 'The client has it. Nobody knows what it has done so far.',
}

function unknownOf(state: string, { attempts, acknowledgement, terminal }: DeliveryStatus): string {
  if (state === 'rejected') return 'It was never queued, so nothing was run.'
  if (acknowledgement.state === 'refused')
    return 'The client says that it will not run it. Nobody knows whether it ran a part before.'
  const isUntried = attempts.count === 0
  if (terminal && isUntried && state !== 'resulted') return 'No attempt was made: the client never had it.'
  if (state === 'expired' && acknowledgement.state === 'acknowledged')
    return 'The client had it. Nobody knows whether it ran it, or still will.'
  if (state === 'expired' || terminal?.reason === 'attempts_exhausted') {
    const { count } = attempts
    return `Nobody knows whether the client ran it: 0${count === 1 ? ' times or once' : ` to ${count} times`}.`
  }
  return UNKNOWN[state] ?? 'Nobody knows more.'
}

function attemptsIn(
  { attempts, terminal, acknowledgement }: DeliveryStatus,
  { proven, notProven, nobody }: Verdict,
): void {
  const { count, confirmed, last_at } = attempts
  const field = 'attempts'
  if (count === 0) {
    if (terminal) proven.push({ text: 'No attempt is recorded: no node claimed it for a connection.', field })
    return
  }
  const times = `${count} attempt${count === 1 ? '' : 's'}`
  proven.push(
    confirmed > 0
      ? { text: `A connection took the write on this side ${confirmed} of ${count} times.`, at: last_at, field }
      : { text: `A node claimed it for a connection: ${times}, no hand-over confirmed.`, at: last_at, field },
  )
  if (acknowledgement.state !== 'none') return
  notProven.push({ text: 'That it arrived: bytes may lie in a buffer of a client that is gone.', field })
  if (count > 1) nobody.push({ text: 'How often the client received it: it may have seen it more than once.', field })
}

function acknowledgementIn(
  { acknowledgement, terminal }: DeliveryStatus,
  { proven, notProven, nobody }: Verdict,
): void {
  const { state, at } = acknowledgement
  const field = 'acknowledgement'
  if (state === 'none') {
    notProven.push({ text: `That the client has not run it: what it said may have been lost.`, field })
    if (!terminal) nobody.push({ text: 'Whether the client will say anything.', field })
  } else if (state === 'refused') {
    proven.push({ text: 'The client said that it will not run it.', at, field })
    notProven.push({ text: 'That the client ran none of it before it refused.', field })
  } else {
    proven.push({ text: 'The client has it: it is never handed over again.', at, field })
    notProven.push({ text: 'That the client began it, finished it, or will.', field })
  }
}

/** Reads a record. */
export function verdictOf(status: DeliveryStatus): Verdict {
  const { admission, attempts, acknowledgement, terminal } = status
  const open = acknowledgement.state !== 'none' ? 'acknowledged' : attempts.count > 0 ? 'attempted' : 'waiting'
  const state = terminal?.state ?? open
  const verdict: Verdict = {
    state,
    reason: terminal?.reason ?? null,
    unknown: unknownOf(state, status),
    proven: [],
    notProven: [],
    nobody: [],
  }
  if (admission.state === 'admitted') {
    verdict.proven.push({ text: 'Capacity is reserved for it until its end.', at: admission.at, field: 'admission' })
    if (attempts.count === 0)
      verdict.notProven.push({ text: 'That anyone is there to receive it.', field: 'admission' })
  }
  attemptsIn(status, verdict)
  acknowledgementIn(status, verdict)
  const field = 'terminal'
  if (terminal) {
    const [proves = 'It has ended.', not = 'What happened outside.'] = ENDS[terminal.state] ?? []
    const own = acknowledgement.state === 'refused' ? 'The client refused it.' : FAILURES[terminal.reason ?? '']
    verdict.proven.push({ text: (terminal.state === 'failed' && own) || proves, at: terminal.at, field })
    verdict.notProven.push({ text: not, field })
  } else verdict.nobody.push({ text: 'Whether it makes progress.', field })
  verdict.nobody.unshift({ text: verdict.unknown, field })
  return verdict
}
