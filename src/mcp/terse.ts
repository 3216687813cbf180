/** Shortens the schemas of tools: an agent keeps the list of tools in its context. */
import * as z from 'zod'
import { escapeHiddenWithin } from './answer.js'

type Json = Record<string, unknown>

/** Parts of a JSON Schema that carry no information: its dialect, and members that forbid nothing. */
function without(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(without)
  if (schema === null || typeof schema !== 'object') return schema
  const { $schema, propertyNames, ...rest } = schema as Json
  const kept = Object.entries(rest).filter(([name, value]) => {
    const isEmpty = JSON.stringify(value) === '{}'
    return !(
      isEmpty &&
      (name === 'additionalProperties' || (name === 'properties' && typeof rest.additionalProperties === 'object'))
    )
  })
  return Object.fromEntries(kept.map(([name, value]) => [name, without(value)]))
}

/**
 * The maximum number of errors in a router's problem, each limited in length: together they are smaller than the
 * smallest result.
 */
const ISSUES = 8
const WORDS = 300

interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** Path and error in one line; the path is client-supplied and limited in length. */
const textFrom = ({ path = [], message }: Issue): string => {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return escapeHiddenWithin(place === '' ? message : `${escapeHiddenWithin(place, WORDS / 2)}: ${message}`, WORDS)
}

const bounded = (issues: readonly Issue[]): Issue[] =>
  issues.slice(0, ISSUES).map((issue) => ({ message: textFrom(issue) }))

/** Describes invalid arguments in one line. */
export const issueText = (issues: readonly Issue[]): string =>
  bounded(issues)
    .map(({ message }) => message)
    .join(', ')

interface Terse<T extends z.ZodObject> {
  '~standard': Pick<T['~standard'], 'vendor' | 'version' | 'validate' | 'types'> & {
    jsonSchema: { input: () => Json; output: () => Json }
  }
}

/** Returns `schema` with the same checks, a shorter JSON schema, and a bounded message where it refuses. */
export function terse<T extends z.ZodObject>(schema: T): Terse<T> {
  const schemaOf = (io: 'input' | 'output') => () => without(z.toJSONSchema(schema, { io })) as Json
  const { vendor, version, validate: check, types } = schema['~standard']
  const validate: typeof check = async (value) => {
    const checked = await check(value)
    return checked.issues === undefined ? checked : { issues: bounded(checked.issues) }
  }
  return {
    '~standard': {
      vendor,
      version,
      validate,
      types,
      jsonSchema: { input: schemaOf('input'), output: schemaOf('output') },
    },
  }
}
