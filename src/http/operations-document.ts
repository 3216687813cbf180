/** The OpenAPI 3.1 document of a router whose routes are operations: the relay’s, and the control server’s. */
import type * as z from 'zod'
import type { Json, JsonObject } from '../contract/json.js'
import { VERSION } from '../version.js'
import type { Route } from './engine.js'
import { paramNames } from './match.js'
import {
  BASE_COMPONENTS,
  eventContent,
  pathParameters,
  problemExamples,
  problemResponses,
  ref,
  toSchemas,
} from './openapi.js'
import type { ProblemCode } from './problem.js'
import { parsePrefix } from './target.js'

type Components = Readonly<Record<string, z.ZodType>>

/** A router to be described. */
export interface DescribedRouter<R extends Route<Operation<unknown>>> {
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
] as const satisfies readonly ProblemCode[]
