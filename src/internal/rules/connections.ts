/** What a connecting client says of itself, limited in size and copied, and the record of its connection: for each store. */

import { type ActionDescriptor, ConnectInput, type Connection } from '../contract/connections.js'
import { deepFreeze, type JsonObject, JsonRecord, toJson } from '../contract/json.js'
import { RECORD_BYTES } from '../contract/limits.js'
import { parseInput } from '../contract/options.js'

const NO_METADATA: JsonObject = Object.freeze({})

/** Maximum size of the client's own data in bytes. The rest of a record is reserved for ids, times and JSON syntax. */
const SAID_BYTES = RECORD_BYTES - 4_096

/**
 * Up to this many actions need no measuring: names of 256 bytes, each escaped, stay well below the size limit of a
 * record.
 */
const FEW_ACTIONS = 64

const bare = (name: string): ActionDescriptor => ({ name, description: null, parameters_schema: null })

/** The input of `connect`: who connects, its actions without duplicate names (the last one wins), and its metadata. */
interface ConnectingClient {
  client: Omit<ReturnType<typeof ConnectInput.parse>, 'actions' | 'metadata'>
  descriptors: ActionDescriptor[]
  metadata: JsonObject
}

/** @throws Refusal `invalid_input`, also if they are not JSON; `payload_too_large` if the record would be too large. */
export function readConnect(given: unknown): ConnectingClient {
  const { actions, metadata, ...client } = parseInput(ConnectInput, given)
  const byName = new Map(actions.map((one) => (typeof one === 'string' ? [one, bare(one)] : [one.name, one])))
  const descriptors = [...byName.values()]
  const isPlain = actions.length <= FEW_ACTIONS && actions.every((one) => typeof one === 'string')
  if (isPlain && Object.keys(metadata).length === 0) return { client, descriptors, metadata: NO_METADATA }
  return { client, ...deepFreeze(JSON.parse(toJson({ descriptors, metadata }, SAID_BYTES).text)) }
}

/** Returns a copy of new metadata, as JSON. @throws Refusal as `readConnect`. */
export const readMetadata = (given: unknown): string => toJson(parseInput(JsonRecord, given), SAID_BYTES).text

type New = Pick<Connection, 'connection_id' | 'node_id' | 'connected_at' | 'superseded_count'>

/** Returns the record of a connection that was just made: a literal, which takes a third of the time of spread objects. */
export const connectedRecord = ({ client, descriptors, metadata }: ConnectingClient, made: New): Connection =>
  Object.freeze({
    connection_id: made.connection_id,
    user_id: client.user_id,
    client_id: client.client_id,
    instance_id: client.instance_id,
    client_type: client.client_type,
    node_id: made.node_id,
    status: 'connected',
    connected_at: made.connected_at,
    last_seen_at: made.connected_at,
    disconnected_at: null,
    ended_reason: null,
    superseded_count: made.superseded_count,
    actions: Object.freeze(descriptors.map(({ name }) => name)) as string[],
    metadata,
  })
