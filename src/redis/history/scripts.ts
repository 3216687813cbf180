/** The scripts of the message history: bounded per stream, per user and per shard, each message retained once. */

import type { Arguments } from '../store/arguments.js'
import { ignoreReply, listOf, parseText, type StoreReply, strings } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import appendLua from './append.lua'
import forgetPayloadsLua from './forget-payloads.lua'
import ingestLua from './ingest.lua'
import prepareLua from './prepare.lua'

/** Reply where nothing was retained, because the payload may have been deleted by now. */
const GIVEN_UP = -1
/**
 * Returns the retained row. If there is none, `ref` is registered as a reference without a message, and no other node
 * deletes its payload for `spared` ms.
 */
export const PREPARE_PAYLOAD = defineScript(
  'history.prepare',
  { args: ['stream', 'message_id', 'user', 'ref', 'spared'], answer: parseText },
  prepareLua,
)

/** Removes references whose payloads have been deleted. */
export const FORGET_PAYLOADS = defineScript(
  'history.forget-payloads',
  { args: [], rest: 'refs', answer: ignoreReply },
  forgetPayloadsLua,
)

// `ref`: the reference of the payload in the spill store, or ''; `handed_out`: maximum number of loose references to
// return.
const RETAIN_ARGS = [
  ...([
    'stream',
    'message_id',
    'user',
    'fields',
    'content',
    'attempt',
    'size',
    'ref',
    'ref_bytes',
    'handed_out',
  ] as const),
  ...(['max_per_stream', 'max_messages', 'max_per_user', 'max_bytes', 'max_bytes_per_user'] as const),
  ...(['max_spilled_bytes', 'max_spilled_bytes_per_user'] as const),
] as const
export type RetainArguments = Arguments<(typeof RETAIN_ARGS)[number]>
/** Returns whether the message is new, its row, and references of payloads to delete; or that its own was given up. */
const readRetained = (reply: StoreReply) => {
  const [what, row = null, unreferenced = null] = listOf(reply)
  return { isGivenUp: what === GIVEN_UP, isNew: what === 1, row: parseText(row), unreferenced: strings(unreferenced) }
}

export const APPEND_MESSAGE = defineScript(
  'history.append',
  { args: RETAIN_ARGS, constants: { GIVEN_UP }, answer: readRetained },
  appendLua,
)

/** Appends, and claims the message in the same step. `ttl` and `capacity` are those of the deduplicator. */
export const INGEST_MESSAGE = defineScript(
  'history.ingest',
  { args: [...RETAIN_ARGS, 'ttl', 'capacity'], constants: { GIVEN_UP }, answer: readRetained },
  ingestLua,
)
