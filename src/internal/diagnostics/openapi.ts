/** The OpenAPI 3.1 document, generated from the routes of the router. */

import * as z from 'zod'
import { Capabilities, Completeness, SourceName } from '../contract/capabilities.js'
import { FAMILIES } from '../contract/families.js'
import type { Json, JsonObject } from '../contract/json.js'
import { capDefaults, RouterLimits } from '../contract/limits.js'
import { defineOptions, type Input, readOptions, text } from '../contract/options.js'
import { paramNames } from '../http/match.js'
import {
  BASE_COMPONENTS,
  pathParameters,
  problemExamples,
  problemResponses,
  queryParameters,
  ref,
  toSchemas,
} from '../http/operations-document.js'
import type { ProblemCode } from '../http/problem.js'
import { isCompared, queryOf } from '../http/read-route.js'
import { parsePrefix } from '../http/target.js'
import { VERSION } from '../version.js'
import { ActionPage } from '../views/actions.js'
import { BrowserWindowCount, ConnectionCount, ContextCount } from '../views/counts.js'
import { Evidence, Finding, FindingGroup, FindingKind, FindingPage, FindingSummary } from '../views/findings/finding.js'
import { Hit, HitKind, SearchResult } from '../views/search.js'
import { UserObservation, UserSummary } from '../views/user-observation.js'
import { UserPage } from '../views/users.js'
import { DeliveryWhy } from '../views/why-links.js'
import { WorkerCounts, Workers } from '../views/workers.js'
import { RawHistory } from './history.js'
import { type DiagnosticsRoute, OpenApiDocument, RouteEntry, ServiceIndex } from './route.js'
import { SECTIONS } from './routes.js'
import { InstanceStatus } from './rpc.js'
import { SourceList, SourceRow } from './sources.js'

/** Options of `openApiDocument`. */
export const OpenApiOptions = defineOptions({
  /** Limits of the router that the document describes. */
  limits: RouterLimits.prefault({}),
  /** Public path of that router. @default '' */
  prefix: text().default(''),
})
export interface OpenApiOptions extends Input<typeof OpenApiOptions> {}

/** Schemas that belong to no family: responses of views and of single routes. */
const VIEWS = {
  ActionPage,
  BrowserWindowCount,
  ConnectionCount,
  ContextCount,
  DeliveryWhy,
  Evidence,
  Finding,
  FindingGroup,
  FindingKind,
  FindingPage,
  FindingSummary,
  Hit,
  HitKind,
  InstanceStatus,
  OpenApiDocument,
  RawHistory,
  RouteEntry,
  SearchResult,
  ServiceIndex,
  SourceList,
  SourceRow,
  UserObservation,
  UserPage,
  UserSummary,
  WorkerCounts,
  Workers,
}

/** The records, answers and enums that have names. */
const SHARED: Readonly<Record<string, z.ZodType>> = {
  ...BASE_COMPONENTS,
  Capabilities,
  Completeness,
  SourceName,
  ...Object.assign({}, ...Object.values(FAMILIES).map(({ components }) => components)),
  ...VIEWS,
}

const NAMED = new Map(Object.entries(SHARED).map(([name, schema]) => [schema, name]))

/** The name of a response schema: its own name, a page of a named record, or the name of the operation. */
function responseName({ response, operationId }: DiagnosticsRoute): string {
  const items = response instanceof z.ZodObject && response.shape.items
  const element = items instanceof z.ZodArray ? NAMED.get(items.element as z.ZodType) : undefined
  return NAMED.get(response) ?? (element ? `${element}Page` : `Answer_${operationId}`)
}

const ALWAYS: ProblemCode[] = [
  'forbidden',
  'admin_key_required',
  'method_not_allowed',
  'deployment_mismatch',
  'uri_too_long',
  'invalid_query',
  'internal',
]

/** Every problem that a route can return. */
function problemsOf(route: DiagnosticsRoute): ProblemCode[] {
  const codes = [...ALWAYS, ...Object.values(route.refusals ?? {})]
  if (!route.scopable) codes.push('not_narrowable')
  if (route.record) codes.push('not_found')
  if (paramNames(route.path).length > 0) codes.push('invalid_path')
  if (route.page === 'paged') codes.push('invalid_cursor')
  if (route.requires.length > 0) codes.push('inspector_absent', 'operation_absent')
  if (route.requires.length > 0 && !route.reportsFailures) codes.push('inspector_unavailable', 'inspector_timeout')
  if (route.reportsFailures === 'of_some') codes.push('inspector_unavailable')
  return codes
}

function responsesOf(route: DiagnosticsRoute): JsonObject {
  const content = { schema: ref(responseName(route)), example: route.response.parse(route.example) as Json }
  return {
    '200': {
      description: route.summary,
      ...(isCompared(route) && { headers: { ETag: ref('ETag', 'headers') } }),
      content: { 'application/json': content },
    },
    ...(isCompared(route) && { '304': { description: 'The current version matches `If-None-Match`.' } }),
    ...problemResponses(problemsOf(route)),
  }
}

/**
 * The diagnostics API as OpenAPI 3.1: enums, limits, required queries, security, and every status of every route.
 *
 * @throws RangeError or TypeError as `createDiagnosticsRouter` does for the same options.
 */
export function openApiDocument(options: OpenApiOptions = {}): JsonObject {
  const { prefix, ...read } = readOptions(OpenApiOptions, options)
  const limits = capDefaults(read.limits)
  const described = SECTIONS.flatMap(({ tag, routes }) =>
    routes.map((route) => ({ tag, route, query: queryOf(route, limits) })),
  )
  const queryName = ({ operationId }: DiagnosticsRoute) => `Query_${operationId}`
  const schemas = toSchemas({
    ...SHARED,
    ...Object.fromEntries(described.map(({ route }) => [responseName(route), route.response])),
    ...Object.fromEntries(described.map(({ route, query }) => [queryName(route), query])),
  })
  const paths = described.map(({ tag, route, query }) => {
    const { properties = {} } = schemas[queryName(route)] as { properties?: JsonObject }
    delete schemas[queryName(route)]
    const operation: JsonObject = {
      operationId: route.operationId,
      summary: route.summary,
      tags: [tag],
      ...(route.requires[0] === undefined ? {} : { 'x-capability': route.requires[0] }),
      ...(route.requires.length < 2 ? {} : { 'x-any-capability': [...route.requires] }),
      parameters: [
        ...pathParameters(route.path),
        ...queryParameters(query, properties),
        ref('ExpectedDeploymentId', 'parameters'),
        ...(isCompared(route) ? [ref('IfNoneMatch', 'parameters')] : []),
      ],
      responses: responsesOf(route),
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
    servers: [{ url: parsePrefix(prefix).path || '/' }],
    // Either scheme; the `auth` of the host decides which one is accepted.
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
          description: 'Return 412 unless this is the id of the deployment.',
          required: false,
          schema: { type: 'string' },
        },
        IfNoneMatch: {
          name: 'If-None-Match',
          in: 'header',
          description: 'Return 304 if this is the entity tag of the response.',
          required: false,
          schema: { type: 'string' },
        },
      },
      headers: {
        ETag: {
          description:
            "A weak entity tag: the same while nothing changes. Ages and times of observation don't count as changes.",
          schema: { type: 'string' },
        },
      },
      examples: problemExamples(new Set(described.flatMap(({ route }) => problemsOf(route)))),
      schemas,
    },
  }
}
