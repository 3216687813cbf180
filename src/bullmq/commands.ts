/** Jobs as commands: one page by state, and one job by id. */
import { raceAbort } from '../internal/async/abort.js'
import { BadRecord } from '../internal/contract/bad-record.js'
import type { CommandFilter, CommandKey, DeliveryCommand, DeliveryStatus } from '../internal/contract/delivery.js'
import { addressOf, admitsCommand, shownAttempts, toDeliveryCommand } from '../internal/contract/delivery-rules.js'
import { checkId, Id, toTimestamp } from '../internal/contract/ids.js'
import {
  type InspectionContext,
  omittedCount,
  type Page,
  type PageQuery,
  scanLimit,
} from '../internal/contract/page.js'
import { Refusal } from '../internal/refusal.js'
import { type Identify, ownerOf } from './identity.js'
import { type BullmqQueue, type BullmqQueueJob, type JobState, type Link, STATES } from './queue.js'

// Converts a BullMQ job to a command: its id, and the evidence in terms of delivery. A processor corresponds to
// `deliver`.

// Characters that an id cannot contain, and `%`, which escapes them. A queue name has no colon; a job id may have one.
const MARKED = /[%/\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const encode = (text: string): string => text.replace(MARKED, (mark) => encodeURIComponent(mark))

/** The command id of a job, `<queue>:<job>`; `null` if it is too long for an id. */
function commandIdOf(queue: string, job: string): string | null {
  if (/\p{Cs}/u.test(job)) return null
  const id = `${encode(queue)}:${encode(job)}`
  return checkId(id) === undefined ? id : null
}

/** Returns the queue and job encoded by `commandIdOf`; `null` for any other id. */
function jobOf(commandId: string): { queue: string; job: string } | null {
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
function nameOf({ name }: BullmqQueueJob): string | null {
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
async function readJob(
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
    overdue: false,
  }
}

/** Most jobs of one call, which BullMQ reads with their payloads. */
const CHUNK = 100
/** Jobs read again before the position, to find the last shown one after others have left its state. */
const OVERLAP = 10
/**
 * Time after which a page ends early. With one more chunk it stays within the router's 5 s, even with a slow
 * `identify`.
 */
const PAGE_MS = 1_500

/** The queues of a host, and whose their jobs are. */
interface Queues {
  readonly links: readonly Link[]
  readonly identify: Identify | undefined
}

const OPEN: readonly JobState[] = ['waiting-children', 'delayed', 'prioritized', 'paused', 'waiting']

/** The job states that can match the filter. */
function statesFor({ state, overdue, user_id, client_id }: CommandFilter, { identify }: Queues): readonly JobState[] {
  // No job has a deadline, and without `identify` none belongs to anyone.
  if (overdue || (identify === undefined && (user_id !== undefined || client_id !== undefined))) return []
  if (state === undefined) return STATES
  if (state === 'waiting') return OPEN
  if (state === 'attempted' || state === 'open') return [...OPEN, 'active']
  return state === 'resulted' ? ['completed'] : state === 'failed' ? ['failed'] : []
}

/** The position in a walk. */
interface Position {
  readonly queue: number
  readonly state: JobState
  /** Jobs of the state before it. */
  readonly start: number
  /** The id of the job that was shown last in this state; `''` for none. */
  readonly last: string
}

const TOKEN = /^([0-7])\/(0|[1-9][0-9]{0,9})\/(0|[1-9][0-9]{0,2})\/(.+)$/s

/** Job ids and queue names may contain any character, so the length of the id is stored, too. */
const tokenOf = ({ queue, state, start, last }: Position, links: readonly Link[]) =>
  `${STATES.indexOf(state)}/${start}/${last.length}/${last}${links[queue]?.name}`

/** @throws Refusal `invalid_cursor` */
function parseToken(token: string, links: readonly Link[]): Position {
  const [, state, start, length, rest = ''] = TOKEN.exec(token) ?? []
  const queue = links.findIndex(({ name }) => name === rest.slice(Number(length)))
  if (queue < 0) throw new Refusal('invalid_cursor')
  return { queue, state: STATES[Number(state)] as JobState, start: Number(start), last: rest.slice(0, Number(length)) }
}

/** Reads jobs one by one after BullMQ failed to read them together. */
function readOneByOne(
  link: Link,
  state: JobState,
  from: number,
  end: number,
  isOldest: boolean,
  ctx: InspectionContext,
) {
  return Promise.all(
    Array.from({ length: end - from + 1 }, async (_, i) => {
      try {
        const [job] = await link.jobs(state, from + i, from + i, isOldest, ctx)
        return job ?? null
      } catch (error) {
        if (error instanceof Refusal || ctx.signal.aborted) throw error
        return new BadRecord(`skipped a job of queue ${link.name}: it could not be read`, undefined, {
          cause: error,
        })
      }
    }),
  )
}

/** Up to `count` jobs from a position, newest or oldest first, and the place of each among those of its state. */
async function readChunk(
  link: Link,
  { state, start, last }: Position,
  count: number,
  isOldest: boolean,
  ctx: InspectionContext,
) {
  const from = last === '' ? start : Math.max(0, start - OVERLAP)
  const end = start + count - 1
  let read: readonly (BullmqQueueJob | BadRecord | null)[]
  try {
    read = await link.jobs(state, from, end, isOldest, ctx)
  } catch (error) {
    if (error instanceof Refusal || ctx.signal.aborted) throw error
    read = await readOneByOne(link, state, from, end, isOldest, ctx)
  }
  const shown = read.findIndex((job) => job !== null && 'id' in job && job.id === last)
  // Where the last one has moved on, jobs before the position may not have been shown: rather twice than not at all.
  const skipped = shown < 0 ? Math.max(0, start - from - (count - 1)) : shown + 1
  const fresh = read.map((job, i) => ({ job, place: from + i })).slice(skipped)
  return fresh.filter((one): one is { job: BullmqQueueJob | BadRecord; place: number } => one.job !== null)
}

/**
 * Returns a page of jobs matching `filter`, by queue and state, newest first; `oldest` is the same backwards. Not a
 * snapshot: a job that changes state during a walk may be listed twice, and one that returns to an earlier state is missed.
 */
export async function listCommands(
  queues: Queues,
  filter: CommandFilter,
  { limit, cursor, order }: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryCommand>> {
  const { links, identify } = queues
  const isOldest = order === 'oldest'
  const states = isOldest ? statesFor(filter, queues).toReversed() : statesFor(filter, queues)
  const isFiltered = Object.keys(filter).length > 0
  const only = filter.scope_id === undefined ? null : links.findIndex(({ name }) => name === filter.scope_id)
  const reach = only === null ? links.map((_, queue) => queue) : only < 0 ? [] : [only]
  if (isOldest) reach.reverse()
  const startOf = (queue: number | undefined): Position | null =>
    queue !== undefined && states[0] !== undefined ? { queue, state: states[0], start: 0, last: '' } : null
  const after = ({ queue, state }: Position): Position | null => {
    const next = states[states.indexOf(state) + 1]
    return next === undefined ? startOf(reach[reach.indexOf(queue) + 1]) : { queue, state: next, start: 0, last: '' }
  }

  let position = cursor === null ? startOf(reach[0]) : parseToken(cursor, links)
  const counts = new Map<Link, Readonly<Record<string, number>>>()
  const items: DeliveryCommand[] = []
  const most = scanLimit(ctx)
  const startedAt = performance.now()
  const isInTime = () => performance.now() - startedAt < PAGE_MS
  let [examined, omitted] = [0, 0]
  while (position !== null && items.length < limit && examined < most && (examined === 0 || isInTime())) {
    const at: Position = position
    const link = links[at.queue] as Link
    const counted = counts.get(link) ?? (await link.call((queue) => queue.getJobCounts(), ctx))
    counts.set(link, counted)
    if (at.start >= (counted[at.state] ?? 0)) {
      position = after(at)
      continue
    }
    const wanted = Math.min(CHUNK, isFiltered ? CHUNK : limit - items.length, most - examined)
    const chunk = await readChunk(link, at, wanted, isOldest, ctx)
    const records = await raceAbort(
      Promise.all(
        chunk.map(({ job }) => (job instanceof BadRecord ? job : readJob(link.name, job, at.state, identify, ctx))),
      ),
      ctx.signal,
    )
    position = { ...at, start: at.start + wanted, last: lastOf(link, chunk.at(-1)?.job) }
    for (const [i, record] of records.entries()) {
      const { job, place } = chunk[i] as (typeof chunk)[number]
      examined += 1
      if (record instanceof BadRecord || job instanceof BadRecord) {
        omitted += 1
        ctx.onError?.(record)
      } else {
        const command = toDeliveryCommand(record, nameOf(job))
        if (admitsCommand(filter, command)) items.push(command)
      }
      if (items.length < limit || i === records.length - 1) continue
      // Always advances: the overlap finds the last job if it moved before its position.
      position = { ...at, start: Math.max(place, at.start) + 1, last: lastOf(link, job) }
      break
    }
    if (position.start >= (counted[at.state] ?? 0)) position = after(position)
  }
  const next_cursor = position === null ? null : tokenOf(position, links)
  return {
    items,
    next_cursor,
    has_more: position !== null,
    examined: Math.min(examined, most),
    ...omittedCount(omitted),
  }
}

/** The id of `job` for a token; `''` if it is too long for one. */
function lastOf(link: Link, job: BullmqQueueJob | BadRecord | undefined): string {
  if (job === undefined || job instanceof BadRecord || job.id === undefined) return ''
  return commandIdOf(link.name, job.id) === null ? '' : job.id
}

/** Returns the evidence about the job with this key; `null` if it does not exist. */
export async function readStatus(
  queues: Queues,
  key: CommandKey,
  ctx: InspectionContext,
): Promise<DeliveryStatus | null> {
  const named = jobOf(key.command_id)
  const link = queues.links.find(({ name }) => name === named?.queue)
  if (!named || !link) return null
  const found = await link.call((queue) => readOne(queue, named.job), ctx)
  if (!found) return null
  const record = await readJob(link.name, found.job, found.state, queues.identify, ctx)
  if (record instanceof BadRecord) return null
  const { user_id, client_id } = addressOf(record)
  if (user_id !== key.user_id || client_id !== key.client_id) return null
  const children = found.state === 'waiting' ? await link.call(() => childrenOf(found.job), ctx) : []
  return children.length === 0 ? record : { ...record, metadata: { waits_for_children: children } }
}

/** Most children of a job that are named: their keys fit into its metadata. */
const CHILDREN_SHOWN = 10

/** The children that a job waits for, as `queue:job`. */
async function childrenOf(job: BullmqQueueJob): Promise<string[]> {
  const { unprocessed = [] } = (await job.getDependencies?.({ unprocessed: { count: CHILDREN_SHOWN } })) ?? {}
  return unprocessed.slice(0, CHILDREN_SHOWN).map((key) => key.split(':').slice(1).join(':').slice(0, 256))
}

/**
 * Reads a job and its state. BullMQ scans all waiting jobs to find the state of a waiting one, so the state is derived
 * here.
 */
async function readOne(queue: BullmqQueue, id: string): Promise<{ job: BullmqQueueJob; state: JobState } | undefined> {
  try {
    const job = await queue.getJob(id)
    if (!job) return undefined
    if (job.finishedOn === undefined) return { job, state: (await job.isActive()) ? 'active' : 'waiting' }
    const jobState = await queue.getJobState(id)
    return { job, state: STATES.find((state) => state === jobState) ?? 'waiting' }
  } catch (error) {
    // The id names another key of the queue, which is no job.
    if (error instanceof Error && /\bWRONGTYPE\b/.test(error.message)) return undefined
    throw error
  }
}
