/** The scripts of the correlator: pending calls, and the one reply to each, on whichever node it arrives. */
import { ENDED_CALL_KEPT_MS, ENDED_CALLS_MAX, ENDED_CALLS_PER_USER_MAX } from '../../contract/rpc.js'
import { ignoreReply, parseFlag, parseText } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import lateLua from './late.lua'
import openLua from './open.lua'
import settleLua from './settle.lua'
import sweepLua from './sweep.lua'
import withdrawLua from './withdraw.lua'

const CONSTANTS = { ENDED_CALLS_MAX, ENDED_CALLS_PER_USER_MAX, ENDED_CALL_KEPT_MS }

/** Opens a call with a `timeout` in ms. */
export const OPEN_CALL = defineScript(
  'rpc.open',
  { args: ['id', 'fields', 'timeout', 'max_pending', 'max_per_user'], constants: CONSTANTS, answer: ignoreReply },
  openLua,
)

/**
 * Ends a call with its reply. `has_sender`: 1 if the reply names its sender, whose `instance` may be ''; `name`: the
 * name of this reply; `how`: the outcome of the call. `counts_late`: 1 if no other shard is queried that might have the
 * call.
 */
export const SETTLE_CALL = defineScript(
  'rpc.settle',
  {
    args: ['id', 'reply', 'how', 'has_sender', 'user', 'client', 'instance', 'name', 'counts_late'],
    constants: CONSTANTS,
    answer: (reply) => (reply === 'settled' || reply === 'foreign' ? reply : 'late'),
  },
  settleLua,
)

/** Counts a reply to a call that no shard knows. */
export const COUNT_LATE = defineScript(
  'rpc.late',
  { args: ['name'], constants: CONSTANTS, answer: ignoreReply },
  lateLua,
)

/**
 * Removes a call, with `how` as its outcome, or only reads it if `how` is ''. Returns its reply if there is one. The
 * reply is kept until it expires or was received: a node that lost it reads it again.
 */
export const WITHDRAW_CALL = defineScript(
  'rpc.withdraw',
  { args: ['id', 'attempt', 'how'], constants: CONSTANTS, answer: parseText },
  withdrawLua,
)

/** Removes calls past their deadline, whose node has died, and expired ended calls, for the loop of a node. Returns whether there is more. */
export const SWEEP_CALLS = defineScript(
  'rpc.sweep',
  { args: [], constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  sweepLua,
)
