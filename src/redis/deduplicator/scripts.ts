/** The scripts of the deduplicator: claims by time, per shard and per user. */

import { parseFlag } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import claimLua from './claim.lua'
import releaseLua from './release.lua'
import sweepLua from './sweep.lua'

/** Returns whether the claim is the first. */
export const CLAIM_MESSAGE = defineScript(
  'deduplicator.claim',
  { args: ['attempt', 'user', 'message', 'ttl', 'capacity'], answer: parseFlag },
  claimLua,
)

/** Returns whether there was a claim that had not expired. */
export const RELEASE_MESSAGE = defineScript(
  'deduplicator.release',
  { args: ['attempt', 'user', 'message', 'ttl'], answer: parseFlag },
  releaseLua,
)

/** Deletes expired claims, for the loop of a node. Returns whether there is more. */
export const SWEEP_CLAIMS = defineScript(
  'deduplicator.sweep',
  { args: ['ttl'], answer: parseFlag, freesMemory: true },
  sweepLua,
)
