/** The data that a connecting client reports, limited in size and copied. */
import type { ActionDescriptor, ConnectInput } from '../../contract/connections.js'
import { deepFreeze, type JsonObject, JsonRecord, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { parseInput } from '../../contract/options.js'

const NO_METADATA: JsonObject = Object.freeze({})

/** Maximum size of the client's own data in bytes. The rest of a record is reserved for ids and times. */
const SAID_BYTES = RECORD_BYTES - 4_096

/**
 * Up to this many actions need no measuring: names of 256 bytes, each escaped, stay well below the size limit of a
 * record.
 */
const FEW_ACTIONS = 64

/**
 * Returns a copy of the descriptors, without duplicate names (the last one wins), and of the metadata.
 *
 * @throws Refusal `payload_too_large` if the record would be too large, `invalid_input` if they are not JSON.
 */
export function bounded({ actions, metadata }: ReturnType<typeof ConnectInput.parse>): {
  descriptors: ActionDescriptor[]
  metadata: JsonObject
} {
  const byName = new Map<string, ActionDescriptor>()
  let plain = actions.length <= FEW_ACTIONS
  for (const action of actions) {
    if (typeof action === 'string') byName.set(action, bare(action))
    else byName.set(action.name, action)
    plain &&= typeof action === 'string'
  }
  const descriptors = [...byName.values()]
  for (const _ in metadata) plain = false
  if (plain) return { descriptors, metadata: NO_METADATA }
  const { text } = toJson({ descriptors, metadata }, SAID_BYTES)
  return deepFreeze(JSON.parse(text))
}

/** Returns a copy of new metadata. @throws Refusal as `bounded`. */
export function boundedMetadata(given: unknown): JsonObject {
  const { text } = toJson(parseInput(JsonRecord, given), SAID_BYTES)
  return deepFreeze(JSON.parse(text))
}

const bare = (name: string): ActionDescriptor => ({ name, description: null, parameters_schema: null })
