/** The OpenAPI 3.1 document, made of the same routes that the router answers from. */

import * as z from 'zod'
import { Capabilities } from '../contract/capabilities.js'
import { Completeness, SourceName } from '../contract/completeness.js'
import { FAMILIES } from '../contract/families.js'
import { Id } from '../contract/ids.js'
import type { Json, JsonObject } from '../contract/json.js'
import { type RouterLimits, resolveLimits } from '../contract/limits.js'
import { checkOptions, OBJECT, type Shape, TEXT } from '../contract/options.js'
import { fillTemplate, paramNames } from '../http/match.js'
import { PROBLEMS, Problem, type ProblemCode } from '../http/problem.js'
import { queryOf } from '../http/read-route.js'
import { parsePrefix } from '../http/target.js'
import { VERSION } from '../version.js'
import { UserObservation } from '../views/user-observation.js'
import { UserSummary } from '../views/user-summary.js'
import type { DiagnosticsRoute } from './route.js'
import { SECTIONS } from './routes.js'
import { ServiceIndex } from './service-index.js'

export interface OpenApiOptions {
  /** The limits of the router that is described. */
  limits?: Partial<RouterLimits> | undefined
  /** Where it is mounted. @default '' */
  prefix?: string | undefined
}

/** The records and enums that several routes share; what only one route answers is named after the route. */
const SHARED: Readonly<Record<string, z.ZodType>> = {
  Capabilities,
  Completeness,
  Id,
  Problem,
  ServiceIndex,
  SourceName,
  UserObservation,
  UserSummary,
  ...Object.assign({}, ...Object.values(FAMILIES).map(({ components }) => components)),
}

const pascal = (text: string) => text.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, c: string) => c.toUpperCase())

/** `/connections/{connection_id}/history` is `connectionsByIdHistory`. */
function operationId(path: string): string {
  const name = pascal(fillTemplate(path, () => 'by_id').replace(/\.json$/, ''))
  return name === '' ? 'index' : name.charAt(0).toLowerCase() + name.slice(1)
}

const ALWAYS: ProblemCode[] = [
  'forbidden',
  'method_not_allowed',
  'deployment_mismatch',
  'uri_too_long',
  'invalid_query',
  'internal',
]

/** Every problem that a route can answer with. */
function problemsOf(route: DiagnosticsRoute): ProblemCode[] {
  const codes = [...ALWAYS, ...Object.values(route.refusals ?? {})]
  if (!route.narrows) codes.push('not_narrowable')
  if (route.record) codes.push('not_found')
  if (paramNames(route.path).length > 0) codes.push('invalid_path')
  if (route.page === 'paged') codes.push('invalid_cursor')
  if (route.needs.length > 0) codes.push('inspector_absent', 'operation_absent')
  if (route.needs.length > 0 && !route.reportsFailures) codes.push('inspector_unavailable', 'inspector_timeout')
  return codes
}

function responsesOf(route: DiagnosticsRoute, schema: string): JsonObject {
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of problemsOf(route))
    byStatus.set(PROBLEMS[code][0], [...(byStatus.get(PROBLEMS[code][0]) ?? []), code])
  const problems = [...byStatus].map(([status, codes]): [string, Json] => [
    String(status),
    {
      description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code][1]}.`).join(' '),
      content: { 'application/problem+json': { schema: ref('Problem') } },
    },
  ])
  return {
    '200': { description: route.summary, content: { 'application/json': { schema: ref(schema) } } },
    ...Object.fromEntries(problems),
  }
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

function parametersOf(template: string, taken: z.ZodObject, properties: JsonObject): Json[] {
  const path = paramNames(template).map((name) => ({ name, in: 'path', required: true, schema: ref('Id') }))
  const query = Object.entries(properties).map(([name, schema]) => {
    const field = taken.shape[name] as z.ZodType
    return { name, in: 'query', required: !field.safeParse(undefined).success, schema: schema as Json }
  })
  return [...path, ...query, { $ref: '#/components/parameters/ExpectedDeploymentId' }]
}

/** The schemas of all components and queries, converted together so that what they share stays shared. */
function toSchemas(named: Map<string, z.ZodType>): Record<string, JsonObject> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of named) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, {
    target: 'draft-2020-12',
    io: 'output',
    uri: (id) => `#/components/schemas/${id}`,
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => {
      const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>
      return [id, rest as JsonObject]
    }),
  )
}

/**
 * The diagnostics API as OpenAPI 3.1: enums, limits, required queries, security, and every status of every route.
 *
 * @throws RangeError or TypeError as `createDiagnosticsRouter` does for the same options.
 */
export function openApiDocument(options: OpenApiOptions = {}): JsonObject {
  checkOptions(options, { limits: OBJECT, prefix: TEXT } satisfies Shape<OpenApiOptions>)
  const limits = resolveLimits(options.limits)
  const named = new Map<string, z.ZodType>(Object.entries(SHARED))
  const shared = new Map(Object.entries(SHARED).map(([name, schema]) => [schema as z.ZodType, name]))
  const described = SECTIONS.flatMap(({ tag, routes }) => routes.map((route) => ({ tag, route }))).map(
    ({ tag, route }) => {
      const id = operationId(route.path)
      const response = shared.get(route.response) ?? pascal(id)
      const query = queryOf(route, limits)
      named.set(response, route.response).set(`${pascal(id)}Query`, query)
      return { tag, route, id, response, query }
    },
  )
  const schemas = toSchemas(named)
  const paths = described.map(({ tag, route, id, response, query }) => {
    const { properties = {} } = schemas[`${pascal(id)}Query`] as { properties?: JsonObject }
    delete schemas[`${pascal(id)}Query`]
    const operation: JsonObject = {
      operationId: id,
      summary: route.summary,
      tags: [tag],
      ...(route.needs[0] === undefined ? {} : { 'x-capability': route.needs[0] }),
      ...(route.needs.length < 2 ? {} : { 'x-any-capability': [...route.needs] }),
      parameters: parametersOf(route.path, query, properties),
      responses: responsesOf(route, response),
    }
    return [route.path, { get: operation }] as const
  })
  return {
    openapi: '3.1.0',
    info: {
      title: 'relayscope diagnostics',
      version: VERSION,
      summary: 'A read-only view of a live relay.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: parsePrefix(options.prefix ?? '').path || '/' }],
    // Either; which of them, the host says by its `auth`.
    security: [{ adminKey: [] }, { bearerKey: [] }],
    tags: SECTIONS.map(({ tag, about }) => ({ name: tag, description: about })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        adminKey: { type: 'apiKey', in: 'header', name: 'X-Admin-Key' },
        bearerKey: { type: 'http', scheme: 'bearer' },
      },
      parameters: {
        ExpectedDeploymentId: {
          name: 'X-Expected-Deployment-Id',
          in: 'header',
          description: 'Answer 412 unless this is the id of the deployment.',
          required: false,
          schema: { type: 'string' },
        },
      },
      schemas,
    },
  }
}
