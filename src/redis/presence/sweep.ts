/** Deletes expired rows from the tables of a shard, for the loop of a node. */
import { parseFlag } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import sweepLua from './sweep.lua'

/** Returns whether there is more. */
export const SWEEP_TABLES = defineScript(
  'presence.sweep',
  { args: [], rest: 'tables', answer: parseFlag, freesMemory: true },
  sweepLua,
)
