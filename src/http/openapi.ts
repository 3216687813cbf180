/** Shared parts of the OpenAPI documents: schemas, parameters, problems and references. */
import * as z from 'zod'
import { Id, NAMES } from '../contract/ids.js'
import type { Json, JsonObject } from '../contract/json.js'
import { paramNames } from './match.js'
import { FieldError, PROBLEMS, Problem, ProblemCode, type ProblemExtra, toProblem } from './problem.js'

type Components = Readonly<Record<string, z.ZodType>>

/** Components of every document. */
export const BASE_COMPONENTS: Components = { FieldError, Id, Problem, ProblemCode }

export const ref = (name: string, kind = 'schemas') => ({ $ref: `#/components/${kind}/${name}` })

/**
 * Converts the schemas of all components together, so that shared schemas stay shared.
 *
 * @param io `input` for request schemas, `output` for response schemas.
 */
export function toSchemas(named: Components, io: 'input' | 'output' = 'output'): Record<string, JsonObject> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, {
    target: 'draft-2020-12',
    io,
    uri: (id) => `#/components/schemas/${id}`,
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => {
      const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>
      return [id, rest as JsonObject]
    }),
  )
}

/** The parameters of a template. A name that `NAMES` does not know has no description. */
export function pathParameters(template: string): Json[] {
  return paramNames(template).map((name) => ({
    name,
    in: 'path',
    required: true,
    ...(Object.hasOwn(NAMES, name) ? { description: NAMES[name as keyof typeof NAMES] } : {}),
    schema: ref('Id'),
  }))
}

/** The parameters of a query: `properties` are those of its schema, as `toSchemas` has them. */
export function queryParameters(query: z.ZodObject, properties: JsonObject): Json[] {
  return Object.entries(properties).map(([name, property]) => {
    const { description = null, ...schema } = property as JsonObject
    const required = !(query.shape[name] as z.ZodType).safeParse(undefined).success
    return { name, in: 'query', required, ...(description === null ? {} : { description }), schema }
  })
}

const EXTRA: Partial<Record<ProblemCode, ProblemExtra>> = {
  invalid_query: { errors: [{ in: 'query', name: 'limit', reason: 'must be a whole number from 1 to 500' }] },
  invalid_path: { errors: [{ in: 'path', name: 'user_id', reason: 'must not be blank' }] },
  invalid_body: { errors: [{ in: 'body', name: 'message_id', reason: 'must be at most 256 bytes' }] },
  inspector_absent: { capability: 'registry' },
  operation_absent: { capability: 'registry_connection_history' },
  action_timeout: { outcome: 'unknown' },
}

/** The example bodies of these problems, by code, for `components.examples`. */
export function problemExamples(codes: Iterable<ProblemCode>): JsonObject {
  return Object.fromEntries(
    [...codes].map((code) => [
      code,
      { summary: PROBLEMS[code][1], value: { ...toProblem(code, EXTRA[code]) } as Json },
    ]),
  )
}

const HEADERS: Partial<Record<number, JsonObject>> = {
  405: { Allow: { description: 'The methods of this route.', schema: { type: 'string' } } },
  503: { 'Retry-After': { description: 'Seconds to wait before retrying.', schema: { type: 'integer' } } },
}

/** The content of an event-stream response: schema names by event name. */
export function eventContent(events: Readonly<Record<string, string>>, example: Json): JsonObject {
  const frames = Object.entries(events).map(([event, name]) => ({
    type: 'object',
    properties: { event: { const: event }, data: ref(name) },
    required: ['event', 'data'],
  }))
  const text = { type: 'string', description: 'Server-sent events; each frame matches one of these schemas.' }
  const streamed = { ...text, contentMediaType: 'text/event-stream', contentSchema: { oneOf: frames } }
  return { content: { 'text/event-stream': { schema: streamed, example } } }
}

/** The `responses` entries of these problems: one per status, with an example per code. */
export function problemResponses(codes: Iterable<ProblemCode>): JsonObject {
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of new Set(codes)) {
    const [status] = PROBLEMS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const responses = [...byStatus].map(([status, of]): [string, Json] => [
    String(status),
    {
      description: of.map((code) => `\`${code}\`: ${PROBLEMS[code][1]}.`).join(' '),
      ...(HEADERS[status] && { headers: HEADERS[status] }),
      content: {
        'application/problem+json': {
          schema: ref('Problem'),
          examples: Object.fromEntries(of.map((code) => [code, ref(code, 'examples')])),
        },
      },
    },
  ])
  return Object.fromEntries(responses)
}
