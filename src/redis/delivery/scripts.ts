/** The script that writes the entry of a node in the list of nodes. All steps on commands run through library.ts. */
import { ignoreReply } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import beatLua from './beat.lua'

/** Maximum number of listed nodes. A deployment has tens; more means that a host generates a new node id at each start. */
const NODES_MAX = 1_000

export const BEAT = defineScript(
  'delivery.beat',
  { args: ['id', 'record', 'kept_ms'], constants: { NODES_MAX }, answer: ignoreReply },
  beatLua,
)
