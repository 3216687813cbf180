/** What the loop of a node takes out of the tables of a shard: rows that live by being reported and were not. */
import { parseFlag } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import sweepLua from './sweep.lua'

/** Answers whether there is more. */
export const SWEEP_TABLES = defineScript(
  'presence.sweep',
  { args: [], rest: 'tables', answer: parseFlag, freesMemory: true },
  sweepLua,
)
