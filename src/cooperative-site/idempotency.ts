/** Idempotency keys: one call of one viewer in one session runs once within ten minutes, however often it is sent. */
import type { Invocation } from '../contract/invocations.js'
import { canonicalJson, type JsonObject } from '../contract/json.js'
import { Refusal } from '../refusal.js'

const KEPT_MS = 600_000
const KEYS_PER_SESSION = 1_000
// Answers hold results of up to 1 MiB each; beyond this the oldest are forgotten before their time.
const KEPT_BYTES = 67_108_864

export interface IdempotentCall {
  session_id: string
  user_id: string
  key: string
  action: string
  parameters: JsonObject
  /** The one that holds: a call that names the default is the call that names none. */
  timeout_ms: number
}

/** A call that has claimed its key and must say how it ended. */
export interface Claim {
  /** The action ran, or may have: this is the answer to every repeat. */
  keep(answer: Invocation | Refusal, bytes: number): void
  /** The action did not run: the key is free again. */
  release(): void
}

interface Entry {
  session: string
  fingerprint: string
  at: number
  answer: Invocation | Refusal | undefined
  bytes: number
}

type Scope = Pick<IdempotentCall, 'session_id' | 'user_id' | 'key'>

const scopeOf = ({ session_id, user_id, key }: Scope) => JSON.stringify([session_id, user_id, key])

/** The id of the command that a key stands for: the same wherever the call arrives, and not to be guessed without it. */
export async function toCommandId(scope: Scope): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(scopeOf(scope)))
  return Array.from(new Uint8Array(hash, 0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The keys of one gate. */
export function createIdempotencyKeys({ now }: { now: () => number }) {
  // Both in the order of the claims, so that what is forgotten is the oldest.
  const entries = new Map<string, Entry>()
  const bySession = new Map<string, Set<string>>()
  let bytes = 0

  function drop(id: string): void {
    const entry = entries.get(id) as Entry
    entries.delete(id)
    bytes -= entry.bytes
    const own = bySession.get(entry.session)
    own?.delete(id)
    if (own?.size === 0) bySession.delete(entry.session)
  }

  /** A call that runs keeps its key: only what has ended is forgotten. */
  function forgetOld(): void {
    for (const [id, entry] of entries) {
      if (entry.at + KEPT_MS > now() && bytes <= KEPT_BYTES) return
      if (entry.answer) drop(id)
    }
  }

  function makeRoom(session: string): void {
    const own = bySession.get(session)
    if (own === undefined || own.size < KEYS_PER_SESSION) return
    const ended = [...own].find((id) => entries.get(id)?.answer)
    if (ended !== undefined) drop(ended)
    else throw new Refusal('connector_unavailable', `${KEYS_PER_SESSION} calls with keys are running in one session`)
  }

  return {
    /** Keys that are remembered now. */
    get size(): number {
      return entries.size
    },
    /**
     * Claims the key, or answers what its call came to.
     *
     * @throws Refusal `idempotency_key_reused` (another call had it), `idempotency_in_progress`, or what that call
     * ended with.
     */
    claim(call: IdempotentCall): Claim | Invocation {
      forgetOld()
      const id = scopeOf(call)
      const { action, parameters, timeout_ms } = call
      const fingerprint = canonicalJson({ action, parameters, timeout_ms })
      const known = entries.get(id)
      if (known) {
        if (known.fingerprint !== fingerprint) throw new Refusal('idempotency_key_reused')
        if (known.answer === undefined) throw new Refusal('idempotency_in_progress')
        if (known.answer instanceof Refusal) throw known.answer
        return known.answer
      }
      makeRoom(call.session_id)
      const entry: Entry = { session: call.session_id, fingerprint, at: now(), answer: undefined, bytes: 0 }
      entries.set(id, entry)
      const own = bySession.get(call.session_id) ?? new Set()
      bySession.set(call.session_id, own.add(id))
      return {
        keep(answer, size) {
          entry.answer = answer
          entry.bytes = size
          bytes += size
        },
        release: () => drop(id),
      }
    },
  }
}
