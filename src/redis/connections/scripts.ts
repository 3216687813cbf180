/** The scripts of the connection registry: fencing and signs of life. */
import {
  CHURN_COMBINATIONS,
  CHURN_MINUTES,
  LifecycleReason,
  MINUTE_MS,
  OTHER,
  UNSPECIFIED,
} from '../../contract/connections.js'
import { count, listOf, parseFlag, parseText } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import connectLua from './connect.lua'
import currentLua from './current.lua'
import disconnectLua from './disconnect.lua'
import heartbeatLua from './heartbeat.lua'
import sweepLua from './sweep.lua'

const REASON = LifecycleReason.enum

const CONSTANTS = {
  MINUTE_MS,
  // How long a minute is kept: as long as it is reported, and a little longer for clocks that differ.
  CHURN_KEPT_MS: (CHURN_MINUTES + 5) * MINUTE_MS,
  CHURN_COMBINATIONS,
  OTHER,
  UNSPECIFIED,
  HEARTBEAT_LOST: REASON.heartbeat_lost,
}

// A silent connection is lost after `lost_after`; `max_ended` are the disconnected ones that are kept.
const SWEEP_ARGS = ['lost_after', 'retention', 'max_ended'] as const
/**
 * Answers the time, and how often the client has been superseded; a second arrival the first one's, and changes nothing.
 */
export const CONNECT = defineScript(
  'connections.connect',
  {
    args: [...SWEEP_ARGS, 'id', 'fields', 'content', 'max_per_user', 'max_connections'],
    constants: { ...CONSTANTS, RECONNECTED: REASON.reconnected, NEW_INSTANCE: REASON.new_instance },
    answer: (reply) => {
      const [connectedAt = null, superseded = null] = listOf(reply)
      return { connectedAt: count(connectedAt), superseded: count(superseded) }
    },
  },
  connectLua,
)

/**
 * `content` is the body of what the client says of itself now, or ''. `sent` is who says so and their count: what arrives behind
 * something later of theirs, or again, is a sign of life and no more.
 */
export const HEARTBEAT = defineScript(
  'connections.heartbeat',
  { args: [...SWEEP_ARGS, 'id', 'content', 'sent'], constants: CONSTANTS, answer: parseFlag },
  heartbeatLua,
)

/** `reason` may be ''. */
export const DISCONNECT = defineScript(
  'connections.disconnect',
  { args: [...SWEEP_ARGS, 'id', 'reason', 'attempt'], constants: CONSTANTS, answer: parseFlag },
  disconnectLua,
)

/** What the loop of a node sweeps without a write of this family. Answers whether there is more. */
export const SWEEP_CONNECTIONS = defineScript(
  'connections.sweep',
  { args: SWEEP_ARGS, constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  sweepLua,
)

/** Answers the instance that holds the client, or nothing. */
export const CURRENT_INSTANCE = defineScript(
  'connections.current',
  { args: [...SWEEP_ARGS, 'user', 'client'], constants: CONSTANTS, answer: parseText },
  currentLua,
)
