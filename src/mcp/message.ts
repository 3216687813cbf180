/** Bounds parts of a message that the protocol's SDK repeats in its errors. */
import { escapeHiddenWithin } from './answer.js'

type Json = Record<string, unknown>

/** More than any tool is called. */
const NAME = 64

const isObject = (value: unknown): value is Json => value !== null && typeof value === 'object' && !Array.isArray(value)

/** Shortens an overlong tool name: the SDK repeats unknown names in full. */
export function withShortName<T>(message: T): T {
  if (!isObject(message) || !isObject(message.params)) return message
  const { name } = message.params
  if (typeof name !== 'string' || name.length <= NAME) return message
  return { ...message, params: { ...message.params, name: `${escapeHiddenWithin(name, NAME)}…` } }
}
