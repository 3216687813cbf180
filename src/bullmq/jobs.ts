/**
 * Converts a BullMQ job to a command: its id, and the evidence in terms of delivery. A processor corresponds to
 * `deliver`.
 */
import { BadRecord } from '../contract/bad-record.js'
import type { DeliveryStatus } from '../contract/delivery.js'
import { shownAttempts } from '../contract/delivery-rules.js'
import { checkId, Id, toTimestamp } from '../contract/ids.js'
import type { InspectionContext } from '../contract/page.js'
import { type Identify, ownerOf } from './identity.js'
import type { BullmqQueueJob, JobState } from './queue.js'

// Characters that an id cannot contain, and `%`, which escapes them. A queue name has no colon; a job id may have one.
const MARKED = /[%/\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const encode = (text: string): string => text.replace(MARKED, (mark) => encodeURIComponent(mark))

/** The command id of a job, `<queue>:<job>`; `null` if it is too long for an id. */
export function commandIdOf(queue: string, job: string): string | null {
  if (/\p{Cs}/u.test(job)) return null
  const id = `${encode(queue)}:${encode(job)}`
  return checkId(id) === undefined ? id : null
}

/** Returns the queue and job encoded by `commandIdOf`; `null` for any other id. */
export function jobOf(commandId: string): { queue: string; job: string } | null {
  const at = commandId.indexOf(':')
  if (at < 1) return null
  try {
    const queue = decodeURIComponent(commandId.slice(0, at))
    const job = decodeURIComponent(commandId.slice(at + 1))
    return job !== '' && commandIdOf(queue, job) === commandId ? { queue, job } : null
  } catch {
    return null
  }
}

const DATE_MAX_MS = 8.64e15

const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= DATE_MAX_MS ? Math.floor(value) : null

const instantOf = (value: unknown): string | null => {
  const at = numberOf(value)
  return at === null ? null : toTimestamp(at)
}

/** The job's name, if short enough to be shown. */
export function nameOf({ name }: BullmqQueueJob): string | null {
  const { data = null } = Id.safeParse(name)
  return data
}

/** The counts and flags of a job that the evidence is derived from. */
function readFacts(job: BullmqQueueJob, state: JobState) {
  const { failedReason } = job
  return {
    state,
    started: numberOf(job.attemptsStarted) ?? 0,
    ended: numberOf(job.attemptsMade) ?? 0,
    stalls: numberOf(job.stalledCounter) ?? 0,
    attempts: numberOf(job.opts?.attempts) ?? 0,
    isTerminal: state === 'completed' || state === 'failed',
    hasFailed: typeof failedReason === 'string',
    isStalled: typeof failedReason === 'string' && failedReason.startsWith('job stalled more than allowable limit'),
  }
}
type Facts = ReturnType<typeof readFacts>

/** The outcome of the latest attempt, as far as the job's counters prove it. */
function outcomeOf({ state, started, ended, stalls, hasFailed, isStalled }: Facts) {
  if (state === 'completed') return 'handed_over'
  if (state === 'failed') return isStalled ? 'timed_out' : 'rejected'
  if (started === 0 || state === 'active') return null
  if (started === stalls) return 'timed_out'
  // `job.retry()` removes the reason: then it is not known whether the last attempt failed.
  return started === ended && hasFailed ? 'rejected' : 'other'
}

/** Why an attempt of that outcome led to nothing. */
const reasonOf = (outcome: DeliveryStatus['attempts']['last_outcome']) =>
  outcome === 'rejected' ? 'deliver_rejected' : outcome === 'timed_out' ? 'lease_expired' : null

function recoveryOf({ state, ended, stalls, attempts, isTerminal, hasFailed }: Facts): DeliveryStatus['recovery'] {
  // The last end needs no further attempt.
  const failed = Math.max(0, isTerminal ? ended - 1 : ended)
  const count = failed + stalls
  // An attempt that ended well counts, too, when the job is retried by hand, which removes the reason of a failure.
  const isRejected = state === 'failed' ? attempts > 1 : hasFailed
  const endedBy = isRejected ? 'deliver_rejected' : 'other'
  const only = stalls === 0 ? endedBy : failed === 0 ? 'lease_expired' : 'other'
  return { count, last_at: null, reason: count === 0 ? null : only }
}

function terminalOf({ state, ended, attempts, isTerminal, isStalled }: Facts, at: string | null) {
  if (!isTerminal || at === null) return null
  if (state === 'completed') return { state: 'resulted', at, reason: null } as const
  if (isStalled) return { state: 'failed', at, reason: 'stalled' } as const
  return { state: 'failed', at, reason: ended >= Math.max(1, attempts) ? 'attempts_exhausted' : null } as const
}

/** Returns the evidence about one job, or the reason why it is invalid. */
export async function readJob(
  queue: string,
  job: BullmqQueueJob,
  state: JobState,
  identify: Identify | undefined,
  ctx: InspectionContext,
): Promise<DeliveryStatus | BadRecord> {
  const { id = '', name, data } = job
  const command_id = commandIdOf(queue, id)
  const bad = (path: string, expected: string) =>
    new BadRecord(`skipped a job of queue ${queue}: ${path}: expected ${expected}`, {
      id: command_id,
      fields: [{ path, expected }],
    })
  const facts = readFacts(job, state)
  const [at, finishedAt] = [instantOf(job.timestamp), instantOf(job.finishedOn)]
  if (command_id === null) return bad('id', 'at most 256 bytes with the name of its queue')
  if (at === null) return bad('timestamp', 'a time')
  if (facts.isTerminal && finishedAt === null) return bad('finishedOn', 'a time')
  const last_at = facts.started === 0 ? null : instantOf(job.processedOn)
  const last_outcome = outcomeOf(facts)
  return {
    ...(await ownerOf(identify, { queue, id, name, data }, ctx)),
    command_id,
    admission: { state: 'admitted', at, scope_id: queue, deadline_at: null },
    attempts: {
      count: facts.started,
      confirmed: state === 'completed' ? 1 : 0,
      handed_over_at: state === 'completed' ? finishedAt : null,
      last_at,
      last_node_id: job.processedBy ?? null,
      last_outcome,
      // A job keeps the latest alone.
      ...shownAttempts(
        facts.started === 0
          ? []
          : [
              {
                number: facts.started,
                at: last_at,
                node_id: job.processedBy ?? null,
                instance_id: null,
                outcome: last_outcome,
                ended_at: facts.isTerminal ? finishedAt : null,
                reason: reasonOf(last_outcome),
              },
            ],
        facts.started,
      ),
    },
    acknowledgement: { state: 'none', at: null, instance_id: null },
    recovery: recoveryOf(facts),
    terminal: terminalOf(facts, finishedAt),
  }
}
