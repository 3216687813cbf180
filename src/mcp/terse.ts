/** Schemas of tools in as few words as they can be said: an agent carries the list of its tools along all the time. */
import * as z from 'zod'

type Json = Record<string, unknown>

/** What a JSON Schema says that follows by itself: its dialect, which is the protocol's own, and members that forbid nothing. */
function without(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(without)
  if (schema === null || typeof schema !== 'object') return schema
  const { $schema, propertyNames, ...rest } = schema as Json
  const said = Object.entries(rest).filter(([name, value]) => {
    const isEmpty = JSON.stringify(value) === '{}'
    return !(isEmpty && (name === 'additionalProperties' || (name === 'properties' && 'additionalProperties' in rest)))
  })
  return Object.fromEntries(said.map(([name, value]) => [name, without(value)]))
}

/** `schema`, which checks as it did and is said tersely. */
export function terse<T extends z.ZodObject>(schema: T) {
  const said = (io: 'input' | 'output') => () => without(z.toJSONSchema(schema, { io })) as Json
  const { vendor, version, validate, types } = schema['~standard']
  return {
    '~standard': { vendor, version, validate, types, jsonSchema: { input: said('input'), output: said('output') } },
  }
}
