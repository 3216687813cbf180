/** The scripts of tables whose rows live by being reported: contexts and browser windows. */
import { count, ignoreReply, type StoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import assignLua from './assign.lua'
import claimLua from './claim.lua'
import closeLua from './close.lua'
import releaseLua from './release.lua'
import reportLua from './report.lua'
import shortenLua from './shorten.lua'
import unclaimLua from './unclaim.lua'

/** A row: what scripts know, the time, and what its client alone says; both as JSON. */
export interface Shown {
  state: string
  now: number
  body: string
}

/** A row as it stands after the write, or nothing. */
const readShown = (reply: StoreReply): Shown | null => {
  if (!Array.isArray(reply)) return null
  const [state, now, body] = reply
  return { state: String(state), now: Number(now), body: String(body) }
}

/**
 * `fields` are those that scripts know, `content` the body; `indexed` is a field with an index of its own or ''. `sent` in a row is who reported last and their count of
 * reports: one that arrives behind a later one of theirs, or again, changes nothing.
 */
export const REPORT_ENTRY = defineScript(
  'presence.report',
  {
    args: ['t', 'id', 'fields', 'content', 'ttl', 'max_per_user', 'max_entries', 'indexed'],
    answer: readShown,
  },
  reportLua,
)

/** When an entry that was closed leaves, and what its last report was sent as. */
export interface Closed {
  leaves: number
  sent: string
}

/** `change` are the fields that closing changes. Answers nothing where there was nothing to close. */
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

/** The claim on an id where a deployment has several shards, in the shard of the id. `attempt` is what its report is sent as. */
export const CLAIM_ID = defineScript(
  'presence.claim',
  { args: ['t', 'id', 'user', 'client', 'ttl', 'attempt'], answer: ignoreReply },
  claimLua,
)

/** Gives back a claim of a report that was refused, unless another report has made it its own. */
export const UNCLAIM_ID = defineScript(
  'presence.unclaim',
  { args: ['t', 'id', 'attempt'], answer: ignoreReply },
  unclaimLua,
)

/** Lets a claim end with its entry, which was closed, unless another report has made it its own. */
export const SHORTEN_CLAIM = defineScript(
  'presence.shorten',
  { args: ['t', 'id', 'attempt', 'until_ms'], answer: ignoreReply },
  shortenLua,
)
