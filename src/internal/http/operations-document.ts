/** The OpenAPI 3.1 document of a router whose routes are operations: the relay’s, and the control server’s. */
import * as z from 'zod'
import { Id, NAMES } from '../contract/ids.js'
import type { Json, JsonObject } from '../contract/json.js'
import { VERSION } from '../version.js'
import type { Route } from './engine.js'
import { paramNames } from './match.js'
import { FieldError, PROBLEMS, Problem, ProblemCode, type ProblemExtra, toProblem, UNKNOWN_OUTCOME } from './problem.js'
import { parsePrefix } from './target.js'

// Shared parts of the OpenAPI documents: schemas, parameters, problems and references.

/** Components of every document. */
export const BASE_COMPONENTS: Readonly<Record<string, z.ZodType>> = { FieldError, Id, Problem, ProblemCode }

export const ref = (name: string, kind = 'schemas') => ({ $ref: `#/components/${kind}/${name}` })

/**
 * Converts the schemas of all components together, so that shared schemas stay shared.
 *
 * @param io `input` for request schemas, `output` for response schemas.
 */
export function toSchemas(
  named: Readonly<Record<string, z.ZodType>>,
  io: 'input' | 'output' = 'output',
): Record<string, JsonObject> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, {
    target: 'draft-2020-12',
    io,
    uri: (id) => `#/components/schemas/${id}`,
    // What an inspector may leave out is always there in a response.
    override: ({ jsonSchema }) => {
      const { default: given } = jsonSchema
      if (io === 'output' && (given === null || (Array.isArray(given) && given.length === 0))) delete jsonSchema.default
    },
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
  ...Object.fromEntries(UNKNOWN_OUTCOME.map((code) => [code, { outcome: 'unknown' }])),
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
function eventContent(events: Readonly<Record<string, string>>, example: Json): JsonObject {
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

type Components = Readonly<Record<string, z.ZodType>>

/** A router to be described. */
interface DescribedRouter<R extends Route<Operation<unknown>>> {
  info: { title: string; summary: string; description: string }
  /** The path prefix of the router. */
  prefix: string
  routes: readonly R[]
  /** Named schemas of request and response bodies. */
  taken: Components
  answered: Components
  /** Problems that every route can return. */
  always: readonly ProblemCode[]
  securitySchemes: JsonObject
  /** Returns the security scheme of a route. */
  securityOf(route: R): string
}

function contentOf(
  { schema, example, events }: Operation<unknown>['answers'][number],
  nameOf: (schema: z.ZodType) => string,
) {
  if (events) {
    const names = Object.entries(events).map(([event, data]): [string, string] => [event, nameOf(data)])
    return eventContent(Object.fromEntries(names), example as Json)
  }
  if (!schema) return {}
  return { content: { 'application/json': { schema: ref(nameOf(schema)), example: example as Json } } }
}

/** The problems that a method of a path can return. */
function problemsOf(path: string, { problems }: Operation<unknown>, always: readonly ProblemCode[]): ProblemCode[] {
  return [...always, ...(paramNames(path).length > 0 ? (['invalid_path'] as const) : []), ...problems]
}

/** The document. @throws TypeError for an unusable prefix. */
export function operationsDocument<R extends Route<Operation<unknown>>>(router: DescribedRouter<R>): JsonObject {
  const { info, prefix, routes, taken, answered, always, securitySchemes, securityOf } = router
  const names = new Map([...Object.entries(taken), ...Object.entries(answered)].map(([name, schema]) => [schema, name]))
  const nameOf = (schema: z.ZodType) => names.get(schema) ?? 'Unnamed'
  const toOperation = (route: R, operation: Operation<unknown>): JsonObject => {
    const { operationId, summary, headers = {}, body, answers } = operation
    const parameters = [
      ...pathParameters(route.path),
      ...Object.entries(headers).map(([name, description]) => ({
        name,
        in: 'header',
        required: false,
        description,
        schema: { type: 'string' },
      })),
    ]
    const responses = Object.entries(answers).map(([status, answer]) => [
      status,
      { description: answer.description, ...contentOf(answer, nameOf) },
    ])
    return {
      operationId,
      summary,
      security: [{ [securityOf(route)]: [] }],
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(body && {
        requestBody: {
          required: true,
          content: { 'application/json': { schema: ref(nameOf(body.schema)), example: body.example as Json } },
        },
      }),
      responses: {
        ...Object.fromEntries(responses),
        ...problemResponses(problemsOf(route.path, operation, always)),
      },
    }
  }
  const codes = routes.flatMap(({ path, methods }) =>
    Object.values(methods).flatMap((operation) => problemsOf(path, operation, always)),
  )
  return {
    openapi: '3.1.0',
    info: { ...info, version: VERSION, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: parsePrefix(prefix).path || '/' }],
    paths: Object.fromEntries(
      routes.map((route) => [
        route.path,
        Object.fromEntries(
          Object.entries(route.methods).map(([method, operation]) => [
            method.toLowerCase(),
            toOperation(route, operation),
          ]),
        ),
      ]),
    ),
    components: {
      securitySchemes,
      examples: problemExamples(new Set(codes)),
      schemas: {
        ...toSchemas({ ...BASE_COMPONENTS, ...taken }, 'input'),
        ...toSchemas({ ...BASE_COMPONENTS, ...answered }),
      },
    },
  }
}

// The description of one method of a route, from which the document is built.

/** One successful response. Without a schema it has no body. */
interface Answer {
  description: string
  schema?: z.ZodType
  example?: unknown
  /** It is a stream of events: what `data` of each carries, by the event’s name. */
  events?: Readonly<Record<string, z.ZodType>>
}

/** Input, responses, problems and handler of a method. */
export interface Operation<Handle> {
  /** The name in generated clients: a verb and its result. It must never change. */
  operationId: string
  summary: string
  /** Headers that mean something here, each with what. */
  headers?: Readonly<Record<string, string>>
  /** The JSON that it takes. */
  body?: { schema: z.ZodType; example: unknown }
  /** By status. */
  answers: Readonly<Record<number, Answer>>
  /** Problems besides those that every route can return. */
  problems: readonly ProblemCode[]
  handle: Handle
}

/** A body as `schema` reads it. */
export const bodyOf = <S extends z.ZodType>(schema: S, example: NoInfer<z.input<S>>) => ({ schema, example })

/** Documents a response with this schema and example. */
export const documentedResponse = <S extends z.ZodType>(
  description: string,
  schema: S,
  example: NoInfer<z.output<S>>,
): Answer => ({
  description,
  schema,
  example,
})

/** Documents a stream that stays open until the client disconnects. `example`: its first frames. */
export const streamOf = (
  description: string,
  events: Readonly<Record<string, z.ZodType>>,
  example: string,
): Answer => ({
  description,
  events,
  example,
})

/** What reading a JSON body can be refused with. */
export const BODY_PROBLEMS = [
  'unsupported_media_type',
  'body_too_large',
  'invalid_json',
  'invalid_body',
  'body_consumed',
] as const satisfies readonly ProblemCode[]
