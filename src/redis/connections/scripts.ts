/** The scripts of the connection registry: connect, heartbeat and disconnect. */
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
  // How long a minute is kept: as long as it is reported, plus a margin for clock differences.
  CHURN_KEPT_MS: (CHURN_MINUTES + 5) * MINUTE_MS,
  CHURN_COMBINATIONS,
  OTHER,
  UNSPECIFIED,
  HEARTBEAT_LOST: REASON.heartbeat_lost,
}

// `lost_after`: ms without a heartbeat until a connection is lost; `max_ended`: maximum number of disconnected ones
// that are kept.
const SWEEP_ARGS = ['lost_after', 'retention', 'max_ended'] as const
/**
 * Returns the time, and how often the client has been superseded. A repeated call returns the first result and changes
 * nothing.
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
 * Returns whether the connection is connected. `content`: new metadata of the client, or ''. `sent`: the reporter and
 * its sequence number; `content` of a repeated or outdated report is ignored.
 */
export const HEARTBEAT = defineScript(
  'connections.heartbeat',
  { args: [...SWEEP_ARGS, 'id', 'content', 'sent'], constants: CONSTANTS, answer: parseFlag },
  heartbeatLua,
)

/** Returns whether the connection was connected. `reason` may be ''. */
export const DISCONNECT = defineScript(
  'connections.disconnect',
  { args: [...SWEEP_ARGS, 'id', 'reason', 'attempt'], constants: CONSTANTS, answer: parseFlag },
  disconnectLua,
)

/** Ends lost connections and deletes expired ones, for the loop of a node. Returns whether there is more. */
export const SWEEP_CONNECTIONS = defineScript(
  'connections.sweep',
  { args: SWEEP_ARGS, constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  sweepLua,
)

/** Returns the instance that holds the client, or `null`. */
export const CURRENT_INSTANCE = defineScript(
  'connections.current',
  { args: [...SWEEP_ARGS, 'user', 'client'], constants: CONSTANTS, answer: parseText },
  currentLua,
)
