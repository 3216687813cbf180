/** The script of a node for its entry in the list of nodes. All that a node does with commands runs by library.ts. */
import { ignoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import beatLua from './beat.lua'

/** Nodes listed: a deployment has tens; more are ids that somebody makes anew at each start. */
const NODES_MAX = 1_000

export const BEAT = defineScript(
  'delivery.beat',
  { args: ['id', 'record', 'kept_ms'], constants: { NODES_MAX }, answer: ignoreReply },
  beatLua,
)
