/** The scripts of the session registry: each transition is checked against the current state. */
import { FINAL_KEPT_MS, SHARES_MAX } from '../../contract/sessions.js'
import { ignoreReply, listOf, parseFlag, type StoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import { SESSION_FIELDS } from './inspector.js'
import moveLua from './move.lua'
import openLua from './open.lua'
import shareLua from './share.lua'
import sweepLua from './sweep.lua'
import unshareLua from './unshare.lua'

const CONSTANTS = { SESSION_FIELDS, FINAL_KEPT_MS }

/** Returns the time, and the fields of the session. */
const readShown = (reply: StoreReply) => {
  const [now, values = null] = listOf(reply)
  return { now: Number(now), values }
}

/** Opens a session. The limits count sessions that have not ended. `ttl` may be ''; `fields`: names and values. */
export const OPEN_SESSION = defineScript(
  'sessions.open',
  {
    args: ['attempt', 'id', 'owner', 'site', 'max_per_owner', 'max_sessions', 'ttl'],
    rest: 'fields',
    constants: CONSTANTS,
    answer: readShown,
  },
  openLua,
)

/** Changes the state to `to`. `from`: the states that allow it, each between commas. `reason` may be ''. */
export const MOVE_SESSION = defineScript(
  'sessions.move',
  { args: ['attempt', 'id', 'node', 'to', 'from', 'reason'], constants: CONSTANTS, answer: readShown },
  moveLua,
)

/** Shares a session with a user. `until_ms` may be ''. */
export const SHARE_SESSION = defineScript(
  'sessions.share',
  {
    args: ['attempt', 'id', 'node', 'user', 'until_ms', 'rights'],
    constants: { ...CONSTANTS, SHARES_MAX },
    answer: ignoreReply,
  },
  shareLua,
)

/** Returns whether there was a share that had not expired. */
export const UNSHARE_SESSION = defineScript(
  'sessions.unshare',
  { args: ['attempt', 'id', 'node', 'user'], constants: CONSTANTS, answer: parseFlag },
  unshareLua,
)

/**
 * Ends expired sessions, and deletes those that ended an hour ago, for the loop of a node. Returns whether there are
 * more.
 */
export const SWEEP_SESSIONS = defineScript(
  'sessions.sweep',
  { args: ['max_sessions'], constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  sweepLua,
)
