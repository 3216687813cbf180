/** The scripts of tables whose rows expire unless they are reported: contexts and browser windows. */
import { count, ignoreReply, type StoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import assignLua from './assign.lua'
import claimLua from './claim.lua'
import closeLua from './close.lua'
import releaseLua from './release.lua'
import reportLua from './report.lua'
import shortenLua from './shorten.lua'
import unclaimLua from './unclaim.lua'

/** A row: the fields that scripts know, the time, and the other fields; both as JSON. */
export interface Shown {
  state: string
  now: number
  body: string
}

/** Returns the row after the write, or `null`. */
const readShown = (reply: StoreReply): Shown | null => {
  if (!Array.isArray(reply)) return null
  const [state, now, body] = reply
  return { state: String(state), now: Number(now), body: String(body) }
}

/**
 * Inserts or updates a row. `fields`: those that scripts know; `content`: the body; `indexed`: a field with its own
 * index, or ''. `sent` in a row is the last reporter and its sequence number: a repeated or outdated report changes
 * nothing.
 */
export const REPORT_ENTRY = defineScript(
  'presence.report',
  {
    args: ['t', 'id', 'fields', 'content', 'ttl', 'max_per_user', 'max_entries', 'indexed'],
    answer: readShown,
  },
  reportLua,
)

/** When a closed entry expires, and the `sent` of its last report. */
export interface Closed {
  leaves: number
  sent: string
}

/** Closes an entry. `change`: the fields that closing changes. Returns `null` if there is none to close. */
export const CLOSE_ENTRY = defineScript(
  'presence.close',
  {
    args: ['t', 'id', 'change', 'attempt'],
    answer: (reply): Closed | null => {
      if (!Array.isArray(reply)) return null
      const [leaves = null, sent] = reply
      return { leaves: count(leaves), sent: String(sent) }
    },
  },
  closeLua,
)

export const ASSIGN_TASK = defineScript(
  'presence.assign',
  { args: ['t', 'id', 'task', 'attempt'], answer: readShown },
  assignLua,
)

export const RELEASE_TASK = defineScript(
  'presence.release',
  { args: ['t', 'id', 'attempt'], answer: readShown },
  releaseLua,
)

/** Claims an id in its own shard, where a deployment has several. `attempt`: the `sent` of the report. */
export const CLAIM_ID = defineScript(
  'presence.claim',
  { args: ['t', 'id', 'user', 'client', 'ttl', 'attempt'], answer: ignoreReply },
  claimLua,
)

/** Releases the claim of a report that was refused, unless another report has claimed it since. */
export const UNCLAIM_ID = defineScript(
  'presence.unclaim',
  { args: ['t', 'id', 'attempt'], answer: ignoreReply },
  unclaimLua,
)

/** Shortens the claim of a closed entry, unless another report has claimed it since. */
export const SHORTEN_CLAIM = defineScript(
  'presence.shorten',
  { args: ['t', 'id', 'attempt', 'until_ms'], answer: ignoreReply },
  shortenLua,
)
