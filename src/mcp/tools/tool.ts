/** The definition of a tool: texts, input, output and implementation. */
import * as z from 'zod'
import { escapeHiddenWithin, type ToolResult } from '../answer.js'
import type { RouteResult } from '../source.js'

// Shortens the schemas of tools: an agent keeps the list of tools in its context.

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
const issueText = (issues: readonly Issue[]): string =>
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

/** What a tool can use. */
export interface ToolContext {
  /** Reads a route of the router; `null` for an invalid path. Never rejects. */
  fetchRoute(route: string | null): Promise<RouteResult>
  /** Whether payloads are shown. */
  readonly payloads: boolean
}

/** The result, or the reason of a refusal. */
type Outcome = ToolResult | { readonly refused: string }

export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: z.ZodObject
  readonly output: z.ZodObject
  /** `input`: checked by the schema. */
  run(input: Record<string, unknown>, toolContext: ToolContext): Promise<Outcome>
}

interface TypedTool<Input extends z.ZodObject> {
  name: string
  description: string
  input: Input
  output: z.ZodObject
  run(input: z.output<Input>, toolContext: ToolContext): Promise<Outcome>
}

/** A tool whose `run` is checked against its `input`. */
export const defineTool = <Input extends z.ZodObject>(tool: TypedTool<Input>): Tool => ({
  ...tool,
  async run(input, toolContext) {
    // The protocol has checked it as it was sent: a name may be another one since it is no longer as it was shown.
    const { data, error } = tool.input.safeParse(input)
    return error ? { refused: `invalid arguments: ${issueText(error.issues)}` } : tool.run(data, toolContext)
  },
})

/** `template` with each `{parameter}` from `values`; `null` where one is missing or would leave the route. */
export function pathOf(template: string, values: Readonly<Record<string, string>>): string | null {
  let isPath = true
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? ''
    isPath &&= !['', '.', '..'].includes(value) && value.isWellFormed()
    return isPath ? encodeURIComponent(value) : ''
  })
  return isPath ? path : null
}

/** `path` with `values` as its query. */
export const requestOf = (path: string | null, values: Readonly<Record<string, string>>): string | null =>
  path === null ? null : `${path}?${new URLSearchParams(values)}`
