/** The BullMQ getters that this plug calls, each with a timeout and a concurrency limit. */
import { runWithin } from '../internal/async/deadline.js'
import type { InspectionContext } from '../internal/contract/page.js'
import { Refusal } from '../internal/refusal.js'

/** The used part of a BullMQ `Job`. */
export interface BullmqQueueJob {
  readonly id?: string | undefined
  readonly name: string
  readonly data: unknown
  readonly opts: { readonly attempts?: number | undefined }
  readonly timestamp: number
  readonly attemptsStarted: number
  readonly attemptsMade: number
  readonly stalledCounter: number
  readonly processedOn?: number | undefined
  readonly finishedOn?: number | undefined
  readonly processedBy?: string | undefined
  readonly failedReason?: string | undefined
  isActive(): Promise<boolean>
  /** Keys of the children that have not ended; absent in the first versions of BullMQ 5. */
  getDependencies?(bounds: { unprocessed: { count: number } }): Promise<{ unprocessed?: readonly string[] | undefined }>
}

/** The states that both versions of BullMQ list. */
export type BullmqJobState = 'wait' | 'active' | 'delayed' | 'prioritized' | 'waiting-children' | 'completed' | 'failed'

/** The used part of a BullMQ 5 or 6 `Queue`: documented getters. The library never closes it. */
export interface BullmqQueue {
  readonly name: string
  getJob(id: string): Promise<BullmqQueueJob | undefined>
  getJobState(id: string): Promise<string>
  getJobs(types: BullmqJobState[], start: number, end: number, asc: boolean): Promise<readonly BullmqQueueJob[]>
  getJobCounts(): Promise<Readonly<Record<string, number>>>
  isPaused(): Promise<boolean>
  /** The queue's global limits; absent in the first versions of BullMQ 5. */
  getMeta?(): Promise<{ concurrency?: number | undefined; max?: number | undefined; duration?: number | undefined }>
  getMetrics(
    type: 'completed' | 'failed',
    start: number,
    end: number,
  ): Promise<{ meta: { count: number; prevTS: number } }>
  /** The connection; only `status` is read. In BullMQ 6 it belongs to the backend. */
  readonly client?: PromiseLike<unknown>
  getBackend?(): unknown
  /** Clients of the store that have the name of a worker of this queue. */
  getWorkers(): Promise<readonly Readonly<Record<string, string>>[]>
}

/** The methods that every queue must have. */
export const QUEUE_METHODS = [
  'getJob',
  'getJobState',
  'getJobs',
  'getJobCounts',
  'isPaused',
  'getMetrics',
  'getWorkers',
] as const satisfies readonly (keyof BullmqQueue)[]

/**
 * Job states in the order in which a job passes through them: a job that moves to a later state during a walk is met
 * there. `paused` exists in BullMQ 5 only, for the waiting jobs of a paused queue.
 */
export const STATES = [
  'waiting-children',
  'delayed',
  'prioritized',
  'paused',
  'waiting',
  'active',
  'completed',
  'failed',
] as const
export type JobState = (typeof STATES)[number]

/** Below the router's 5 s, so that a queue that hangs is unavailable and not only late. */
export const TIMEOUT_MS = 2_000
/** Unanswered calls to one queue; with more, a store that hangs would gather them. */
const OPEN_MAX = 1_000

/** A Redis error reply starts with an upper-case code. */
const REPLY = /^-?[A-Z]{2,}\b/
/** Error replies of a server that is temporarily unavailable. */
const UNAVAILABLE = /^-?(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOAUTH|WRONGPASS)\b/

// A Cluster of ioredis is connected before it is ready, and BullMQ takes it for ready then.
const CONNECTED = ['ready', 'connect']

/**
 * Refuses a call that the client of a disconnected queue would keep until it is connected again: with such calls, the host's own
 * `queue.close()` waits, too.
 */
async function checkConnected(queue: BullmqQueue): Promise<void> {
  const holder = (queue.client === undefined ? queue.getBackend?.() : queue) as BullmqQueue | undefined
  const client = (await holder?.client) as { status?: unknown } | undefined
  const status = client?.status
  if (typeof status === 'string' && !CONNECTED.includes(status))
    throw new Refusal('unavailable', `the connection of the queue ${queue.name} is ${status}`)
}

/** A queue, and how it is called. */
export interface Link {
  readonly name: string
  /** @throws Refusal `unavailable`; the signal's reason when it aborts; an `Error` for a reply or job that cannot be read. */
  call<T>(method: (queue: BullmqQueue) => Promise<T>, ctx: InspectionContext): Promise<T>
  /** Jobs of one state from place `start` to `end`, both included. @param oldestFirst for sorted states: lowest score first */
  jobs(
    state: JobState,
    start: number,
    end: number,
    oldestFirst: boolean,
    ctx: InspectionContext,
  ): Promise<readonly BullmqQueueJob[]>
}

/** The message is for the router's `onError`, never for a response. */
function toError(cause: unknown): Error {
  if (cause instanceof Refusal) return cause
  const message = cause instanceof Error ? cause.message : ''
  const isReply = REPLY.test(message) && !UNAVAILABLE.test(message)
  if (isReply || cause instanceof SyntaxError || cause instanceof TypeError)
    return new Error(`the queue could not be read: ${message}`, { cause })
  return new Refusal('unavailable', message, { cause })
}

export function createLink(queue: BullmqQueue, timeoutMs: number): Link {
  const { name } = queue
  let open = 0

  async function call<T>(method: (queue: BullmqQueue) => Promise<T>, { signal }: InspectionContext): Promise<T> {
    signal.throwIfAborted()
    if (open >= OPEN_MAX) throw new Refusal('unavailable', `${open} calls to the queue ${name} are unanswered`)
    open += 1
    // A call that was given up counts as open until it ends.
    const done = checkConnected(queue)
      .then(() => method(queue))
      .catch((error) => {
        throw toError(error)
      })
      .finally(() => {
        open -= 1
      })
    const late = () => new Refusal('unavailable', `queue ${name} did not respond within ${timeoutMs} ms`)
    return runWithin(() => done, { ms: timeoutMs, signal, late })
  }

  return {
    name,
    call,
    jobs: (state, start, end, oldestFirst, ctx) =>
      // For `waiting`, BullMQ 5 also counts `paused` jobs.
      call(
        (it) => it.getJobs([(state === 'waiting' ? 'wait' : state) as BullmqJobState], start, end, oldestFirst),
        ctx,
      ),
  }
}
