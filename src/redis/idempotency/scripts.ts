/** The scripts of the idempotency keys: each can arrive twice, because every attempt has a name of its own. */
import { IDEMPOTENCY_KEPT_MS } from '../../contract/invocations.js'
import { ignoreReply, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import claimLua from './claim.lua'
import keepLua from './keep.lua'
import releaseLua from './release.lua'

// `idem:key:<session>:<user>:<key>`: a hash, `f` the fingerprint, `a` the attempt, `at`, `until` the end of its lease,
// `ended` once it has, `answer` where there is one. `idem:of:<session>:<user>`: its keys by claim. `idem:kept:<user>`:
// answers by when they were kept, as bytes, session and key in lines; `idem:bytes:<user>`: what they come to.
const KEY_ARGS = ['user', 'session', 'name', 'attempt'] as const
/** `max_keys` are those of this viewer in this session. */
export const CLAIM_KEY = defineScript(
  'idempotency.claim',
  {
    args: [...KEY_ARGS, 'fingerprint', 'lease', 'max_keys'],
    /** The state, and when it was claimed or the answer that was kept. */
    constants: { KEPT_MS: IDEMPOTENCY_KEPT_MS },
    answer: (reply) => {
      const [state, value] = listOf(reply)
      return { state, value }
    },
  },
  claimLua,
)

/** `answer` may be ''; `max_bytes` are those of this viewer's answers. */
export const KEEP_ANSWER = defineScript(
  'idempotency.keep',
  { args: [...KEY_ARGS, 'answer', 'max_bytes'], constants: { KEPT_MS: IDEMPOTENCY_KEPT_MS }, answer: ignoreReply },
  keepLua,
)

/** Frees the key of an attempt that has not ended. */
export const RELEASE_KEY = defineScript('idempotency.release', { args: KEY_ARGS, answer: ignoreReply }, releaseLua)
