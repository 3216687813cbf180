/** The scripts of the session registry: each move is checked against the state as it is at that moment. */
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

/** When it was, and the fields of the session. */
const readShown = (reply: StoreReply) => {
  const [now, values = null] = listOf(reply)
  return { now: Number(now), values }
}

/** Sessions are counted that have not ended. `ttl` may be ''; `fields` are names and values. */
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

/** `from` are the states it may be left from, each between commas. `reason` may be ''. */
export const MOVE_SESSION = defineScript(
  'sessions.move',
  { args: ['attempt', 'id', 'node', 'to', 'from', 'reason'], constants: CONSTANTS, answer: readShown },
  moveLua,
)

/** `until_ms` may be ''. */
export const SHARE_SESSION = defineScript(
  'sessions.share',
  {
    args: ['attempt', 'id', 'node', 'user', 'until_ms', 'rights'],
    constants: { ...CONSTANTS, SHARES_MAX },
    answer: ignoreReply,
  },
  shareLua,
)

/** Answers whether there was a share that had not run out. */
export const UNSHARE_SESSION = defineScript(
  'sessions.unshare',
  { args: ['attempt', 'id', 'node', 'user'], constants: CONSTANTS, answer: parseFlag },
  unshareLua,
)

/** What the loop of a node takes out: sessions that have expired, and those that ended an hour ago. Answers whether there is more. */
export const SWEEP_SESSIONS = defineScript(
  'sessions.sweep',
  { args: ['max_sessions'], constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  sweepLua,
)
