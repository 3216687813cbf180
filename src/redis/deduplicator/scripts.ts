/** The scripts of the deduplicator: who claimed what when, per shard and per user. */

import { parseFlag } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import claimLua from './claim.lua'
import releaseLua from './release.lua'
import sweepLua from './sweep.lua'

/** Answers whether it is the first. */
export const CLAIM_MESSAGE = defineScript(
  'deduplicator.claim',
  { args: ['attempt', 'user', 'message', 'ttl', 'capacity'], answer: parseFlag },
  claimLua,
)

/** Answers whether there was a claim that had not run out. */
export const RELEASE_MESSAGE = defineScript(
  'deduplicator.release',
  { args: ['attempt', 'user', 'message', 'ttl'], answer: parseFlag },
  releaseLua,
)

/** What the loop of a node sweeps when nobody claims. Answers whether there is more. */
export const SWEEP_CLAIMS = defineScript(
  'deduplicator.sweep',
  { args: ['ttl'], answer: parseFlag, freesMemory: true },
  sweepLua,
)
