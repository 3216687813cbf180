/** The scripts of the correlator: calls that wait, and the one reply to each, whichever node it reaches. */
import { ignoreReply, parseFlag, parseText } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import lateLua from './late.lua'
import openLua from './open.lua'
import settleLua from './settle.lua'
import sweepLua from './sweep.lua'
import withdrawLua from './withdraw.lua'

// Writes arrive twice when a client sends them again: an opening is known by its attempt, `calls:over:<attempt>` once it
// has ended, and a reply by its name, `calls:by:<id>`, or `calls:dropped:<name>` where it was dropped. An id may be opened
// again before a reply to it is asked for: `calls:reply-to:<id>` is the attempt that the reply is to.

/** `timeout` is the time it may take. */
export const OPEN_CALL = defineScript(
  'rpc.open',
  { args: ['id', 'fields', 'timeout', 'max_pending', 'max_per_user'], answer: ignoreReply },
  openLua,
)

/**
 * `has_sender` is 1 where the reply says who it is from, whose `instance` may be ''; `name` is that of this reply, `how` how
 * it ends the call. `counts_late` is 1 where no other shard is asked, of which one might know the call.
 */
export const SETTLE_CALL = defineScript(
  'rpc.settle',
  {
    args: ['id', 'reply', 'how', 'has_sender', 'user', 'client', 'instance', 'name', 'counts_late'],
    answer: (reply) => (reply === 'settled' || reply === 'foreign' ? reply : 'late'),
  },
  settleLua,
)

/** Counts a reply of that name to a call that no shard knows. */
export const COUNT_LATE = defineScript('rpc.late', { args: ['name'], answer: ignoreReply }, lateLua)

/**
 * Takes the call away, which ends as `how` says, or leaves it where that is ''; answers its reply where it has come already.
 * The reply stays until its time is over or it is known to have been received: an answer that is lost can be asked for
 * again.
 */
export const WITHDRAW_CALL = defineScript(
  'rpc.withdraw',
  { args: ['id', 'attempt', 'how'], answer: parseText },
  withdrawLua,
)

/** What the loop of a node takes away of what nobody else has: calls whose node has died. Answers whether there is more. */
export const SWEEP_CALLS = defineScript('rpc.sweep', { args: [], answer: parseFlag, freesMemory: true }, sweepLua)
