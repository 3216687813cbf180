/** A message as the protocol's SDK is given it: what that repeats in its errors is bounded before. */
import { escapeHiddenWithin } from './answer.js'

type Json = Record<string, unknown>

/** More than any tool is called. */
const NAME = 64

const isObject = (value: unknown): value is Json => value !== null && typeof value === 'object' && !Array.isArray(value)

/** `message`, where it calls a tool by no longer name than one has: the SDK says in full which one it does not know. */
export function withShortName<T>(message: T): T {
  if (!isObject(message) || !isObject(message.params)) return message
  const { name } = message.params
  if (typeof name !== 'string' || name.length <= NAME) return message
  return { ...message, params: { ...message.params, name: `${escapeHiddenWithin(name, NAME)}…` } }
}
