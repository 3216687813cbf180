/** The owner of a job, which only the host knows. */
import { runWithin } from '../internal/async/deadline.js'
import { unknownName } from '../internal/contract/checks.js'
import { checkId } from '../internal/contract/ids.js'
import type { Awaitable, InspectionContext } from '../internal/contract/page.js'

/** Time limit of `identify`; after it the job's owner is unknown in this response. */
const IDENTIFY_MS = 1_000

/** A job as `identify` is given it. */
export interface BullmqJob {
  /** Name of the queue. */
  readonly queue: string
  /** Id of the job. */
  readonly id: string
  /** Name of the job. */
  readonly name: string
  /** The payload, of the type that your queue gives it. Only the ids returned by `identify` leave the process. */
  // biome-ignore lint/suspicious/noExplicitAny: only the host knows its type, and BullMQ's own `Job` has `any` too
  readonly data: any
}

/** The owner of a job. A missing value or `null` means unknown. */
export interface BullmqIdentity {
  /** The user that the job belongs to, if any. */
  user_id?: string | null | undefined
  /** The client that the job is for, if any; without a `user_id` it is ignored. */
  client_id?: string | null | undefined
}

/**
 * Returns the owner of a job within a second. Errors and invalid results go to the router's `onError`, and the owner is
 * unknown.
 */
export type Identify = (job: BullmqJob) => Awaitable<BullmqIdentity | null | undefined>

export interface Owner {
  user_id: string | null
  client_id: string | null
}

const FIELDS = ['user_id', 'client_id']
/** A host may return its record of a client. */
const IGNORED = ['instance_id', 'client_type', 'connection_id']
const NO_OWNER: Owner = { user_id: null, client_id: null }

function idOf(given: unknown, name: string): string | null {
  if (given === null || given === undefined) return null
  const reason = typeof given === 'string' ? checkId(given) : 'must be a string'
  if (reason !== undefined) throw new TypeError(`identify: ${name} ${reason}`)
  return given as string
}

/** @throws TypeError for an invalid identity. */
function identityOf(identity: unknown): BullmqIdentity {
  if (identity === null || identity === undefined) return {}
  if (typeof identity !== 'object' || Array.isArray(identity))
    throw new TypeError('identify must return null or an object with user_id and client_id')
  const unknown = Object.keys(identity).find((name) => !FIELDS.includes(name) && !IGNORED.includes(name))
  if (unknown !== undefined) throw new TypeError(`identify: ${unknownName('field', '', unknown, FIELDS)}`)
  return identity
}

/** Returns the owner of the job; unknown without `identify`, and when it fails. */
export async function ownerOf(identify: Identify | undefined, job: BullmqJob, ctx: InspectionContext): Promise<Owner> {
  if (identify === undefined) return NO_OWNER
  try {
    const identity = identityOf(
      await runWithin(() => identify(job), {
        ms: IDENTIFY_MS,
        late: () => new Error(`identify did not return within ${IDENTIFY_MS} ms`),
        signal: ctx.signal,
      }),
    )
    const user_id = idOf(identity.user_id, 'user_id')
    return user_id === null ? NO_OWNER : { user_id, client_id: idOf(identity.client_id, 'client_id') }
  } catch (error) {
    ctx.signal.throwIfAborted()
    ctx.onError?.(error)
    return NO_OWNER
  }
}
