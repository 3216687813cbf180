/** Runs one call under an idempotency key: the key is claimed first, and the claimant records the outcome. */

import {
  IDEMPOTENCY_KEPT_MS,
  type IdempotencyClaim,
  type IdempotencyStore,
  type Invocation,
} from '../../internal/contract/invocations.js'
import { canonicalJson, type JsonObject } from '../../internal/contract/json.js'
import { Refusal } from '../../internal/refusal.js'

/** Whose key it is. */
export type KeyScope = Pick<IdempotencyClaim, 'session_id' | 'user_id' | 'key'>

/** The call that the key identifies. */
interface KeyedRequest {
  action: string
  parameters: JsonObject
  /** The effective timeout: naming the default is the same call as omitting it. */
  timeout_ms: number
}

/**
 * A claimed key and how to record its outcome. The methods never reject; an outcome not recorded in time reads as
 * unknown.
 */
interface KeyedCall {
  /** The same for every request with this key during its lifetime, and not guessable without the key. */
  command_id: string
  keep(answer: Invocation | null): Promise<void>
  release(): Promise<void>
}

async function digest(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/**
 * Derives the command id from a key. It changes when the key is claimed again after ten minutes: a dispatcher remembers
 * commands for longer than that.
 */
async function toCommandId({ session_id, user_id, key }: KeyScope, claimedAt: number): Promise<string> {
  const life = Math.floor(claimedAt / IDEMPOTENCY_KEPT_MS)
  return (await digest(JSON.stringify([session_id, user_id, key, life]))).slice(0, 32)
}

interface ClaimKeyOptions {
  store: IdempotencyStore
  attempt: string
  leaseMs: number
  /** Applies the time limit to one store call. */
  read<T>(work: () => T | Promise<T>): Promise<T>
  onError: (error: unknown) => void
}

/**
 * Claims the key, or returns the recorded outcome of its call.
 *
 * @throws Refusal `idempotency_key_reused` (used by another call), `idempotency_in_progress`, `action_timeout` for a
 * call with an unknown outcome, `capacity_exceeded`, `unavailable`.
 */
export async function claimKey(
  scope: KeyScope,
  { action, parameters, timeout_ms }: KeyedRequest,
  { store, attempt, leaseMs, read, onError }: ClaimKeyOptions,
): Promise<KeyedCall | Invocation> {
  // A digest, because a key may be kept for ten minutes and its parameters are a quarter of a mebibyte.
  const fingerprint = await digest(canonicalJson({ action, parameters, timeout_ms }))
  const claim: IdempotencyClaim = { ...scope, fingerprint, attempt, lease_ms: leaseMs }

  /** Retried once if the store did not respond: recording the same attempt twice is harmless. */
  async function say(what: () => unknown): Promise<void> {
    try {
      await read(async () => what()).catch(() => read(async () => what()))
    } catch (error) {
      onError(error)
    }
  }
  const release = () => say(() => store.release(claim))

  let found: Awaited<ReturnType<IdempotencyStore['claim']>>
  try {
    found = await read(async () => store.claim(claim))
  } catch (error) {
    // It may hold the key all the same, and nothing was run under it.
    if (!(error instanceof Refusal && error.code === 'capacity_exceeded')) await release()
    throw error instanceof Refusal ? error : new Refusal('unavailable', undefined, { cause: error })
  }
  if (found.state === 'reused') throw new Refusal('idempotency_key_reused')
  if (found.state === 'running') throw new Refusal('idempotency_in_progress')
  if (found.state === 'ended') {
    if (found.answer === null) throw new Refusal('action_timeout')
    return found.answer
  }
  return {
    command_id: await toCommandId(scope, found.at),
    keep: (answer) => say(() => store.keep(claim, answer)),
    release,
  }
}
