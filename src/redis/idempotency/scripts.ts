/** The scripts of the idempotency keys. Each may arrive twice, because every attempt has its own name. */
import { IDEMPOTENCY_KEPT_MS } from '../../contract/invocations.js'
import { ignoreReply, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import claimLua from './claim.lua'
import keepLua from './keep.lua'
import releaseLua from './release.lua'

const KEY_ARGS = ['user', 'session', 'name', 'attempt'] as const
/** Claims a key. `max_keys`: maximum number of keys of this viewer in this session. */
export const CLAIM_KEY = defineScript(
  'idempotency.claim',
  {
    args: [...KEY_ARGS, 'fingerprint', 'lease', 'max_keys'],
    constants: { KEPT_MS: IDEMPOTENCY_KEPT_MS },
    answer: (reply) => {
      const [state, value] = listOf(reply)
      return { state, value }
    },
  },
  claimLua,
)

/** Ends a key. `answer` may be ''; `max_bytes`: maximum size of the answers of this viewer. */
export const KEEP_ANSWER = defineScript(
  'idempotency.keep',
  { args: [...KEY_ARGS, 'answer', 'max_bytes'], constants: { KEPT_MS: IDEMPOTENCY_KEPT_MS }, answer: ignoreReply },
  keepLua,
)

/** Releases the key of an attempt that has not ended. */
export const RELEASE_KEY = defineScript('idempotency.release', { args: KEY_ARGS, answer: ignoreReply }, releaseLua)
