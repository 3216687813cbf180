/** What a connecting client says of itself, bounded and cut loose from the caller's objects. */
import type { ActionDescriptor, ConnectInput } from '../../contract/connections.js'
import { parseInput } from '../../contract/input.js'
import { deepFreeze, type JsonObject, JsonRecord, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'

const NO_METADATA: JsonObject = Object.freeze({})

/** What a client says of itself: ids and times of the record take less than the kibibyte that is set aside for each of them. */
const SAID_BYTES = RECORD_BYTES - 4_096

/** Actions that need no measuring: this many names of 256 bytes, each escaped, stay well below the record bound. */
const FEW_ACTIONS = 64

/**
 * The descriptors, each name once and its last description, and the metadata, cut loose from the caller's objects.
 *
 * @throws Refusal `payload_too_large` when they make a record too large, `invalid_input` for what is not JSON.
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

/** What a client says of itself now, cut loose from the caller's object. @throws Refusal as `bounded`. */
export function boundedMetadata(given: unknown): JsonObject {
  const { text } = toJson(parseInput(JsonRecord, given), SAID_BYTES)
  return deepFreeze(JSON.parse(text))
}

const bare = (name: string): ActionDescriptor => ({ name, description: null, parameters_schema: null })
