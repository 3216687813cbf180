/** Which routes a capture reads and which inspector method answers from each part again: derived from the route table. */
import * as z from 'zod'
import { FAMILIES, type FamilyName } from '../internal/contract/families.js'
import type { Family } from '../internal/contract/family.js'
import type { DiagnosticsRoute } from '../internal/diagnostics/route.js'
import { ROUTES } from '../internal/diagnostics/routes.js'
import { paramNames } from '../internal/http/match.js'

/** One route whose answers are kept in an incident. Every other route is computed from these when the file is opened. */
export interface Part {
  /** Its name in the file: the path of the route, followed by the filters that it was asked with. */
  readonly route: string
  /** The path of the route. */
  readonly path: string
  readonly family: FamilyName
  /** The capability that a deployment must have for it. */
  readonly capability: string
  /** The inspector method that answers from it. */
  readonly method: string
  /** The method that finds one of its rows by id, of a family that requires one. */
  readonly get: string | undefined
  /** A list of rows, or one answer. */
  readonly kind: 'list' | 'answer'
  /** Its list takes `order`. It is asked for with the newest rows first, so that a bound cuts the oldest, and kept the other way round. */
  readonly ordered: boolean
  /** How its list is asked for: page by page, or one bounded sample. */
  readonly paged: boolean
  /** Path and query parameters. It is asked for once per value that captured rows have of these fields. */
  readonly keys: readonly string[]
  /** The fields that identify a row; `null` where a row has no id of its own. */
  readonly id: readonly string[] | null
  /** A recording follows its list. */
  readonly watched: boolean
  /** Its list takes this filter for the rows of one user; `null` for none. */
  readonly userFilter: 'user_id' | 'owner' | null
  readonly row: z.ZodType
  /** A row without what changes by the clock alone. */
  compared(row: Readonly<Record<string, unknown>>): object
}

/** Routes of methods that every inspector of a family has: `[method, the method that finds one row]`. */
const REQUIRED: Readonly<Record<string, readonly [method: string, get?: string]>> = {
  '/connections': ['listConnections', 'getConnection'],
  '/actions': ['listActions'],
  '/contexts': ['listContexts', 'getContext'],
  '/browser-windows': ['listBrowserWindows', 'getBrowserWindow'],
  '/rpc/pending': ['listPending', 'getPending'],
  '/rpc/ended': ['listEnded', 'getEnded'],
  '/history/messages': ['readMessages'],
  '/deduplicator/summary': ['summary'],
  '/delivery/summary': ['summary'],
  '/delivery/nodes': ['listNodes'],
  '/delivery/tenants': ['listTenants'],
  '/sites': ['listSites', 'getSite'],
  '/sessions': ['listSessions', 'getSession'],
  '/subscriptions': ['listSubscriptions'],
}

/** Methods that are computed from the rows of other parts. */
const COMPUTED: readonly string[] = ['checkInstance']

/** Routes of one row that another part finds by its id. */
const FOUND: readonly string[] = ['/rpc/ended/{correlation_id}']

/** The fields that identify a row. */
const IDS: Readonly<Record<string, readonly string[]>> = {
  '/actions': ['name'],
  '/browser-windows': ['window_id'],
  '/connections': ['connection_id'],
  '/connections/churn': ['minute'],
  '/connections/events': ['connection_id', 'event'],
  '/contexts': ['context_id'],
  '/delivery/churn': ['minute'],
  // Commands without a user differ only in `scope_id`, which is part of `admission`; clients read whole fields.
  '/delivery/commands': ['user_id', 'client_id', 'command_id', 'admission'],
  '/delivery/mailboxes': ['user_id', 'client_id'],
  '/delivery/nodes': ['node_id'],
  '/delivery/tenants': ['scope_id'],
  '/findings': ['finding_id'],
  '/history/streams': ['stream'],
  '/rpc/ended': ['correlation_id'],
  '/rpc/pending': ['correlation_id'],
  '/sessions': ['session_id'],
  '/sites': ['site_id'],
  '/sources': ['source'],
  '/subscriptions': ['subscription_id'],
  '/users': ['user_id'],
  '/history/messages': ['stream', 'sequence'],
}

/** Each capability: its family, and the method that it stands for; `null` for the family itself. */
const CAPABILITIES = new Map(
  Object.entries<Family>(FAMILIES).flatMap(([family, { capability, operations, listed }]) => [
    [capability, { family: family as FamilyName, method: null as string | null }] as const,
    ...Object.entries({ ...operations, ...listed }).map(
      ([name, method]) => [name, { family: family as FamilyName, method: method as string | null }] as const,
    ),
  ]),
)

const isListed = (response: z.ZodType): response is z.ZodObject<{ items: z.ZodArray }> =>
  response instanceof z.ZodObject && 'items' in response.shape

/** Lists whose rows do not answer these filters. The description of an action is that of the user's own connection. */
const FILTERED: Readonly<Record<string, readonly string[]>> = { '/actions': ['user_id'] }

/** The name of the part that was captured with these filters. */
export const filteredRoute = (path: string, filters: readonly string[]): string =>
  `${path}?${[...filters]
    .sort()
    .map((name) => `${name}={${name}}`)
    .join('&')}`

/** A sum, or a list that its rows cannot filter, under each combination of its filters. Its rows contain their values. */
function filteredOf(part: Part, query: z.ZodObject | undefined): Part[] {
  const names =
    FILTERED[part.path] ?? (part.kind === 'answer' && part.keys.length === 0 ? Object.keys(query?.shape ?? {}) : [])
  const combinations: string[][] = []
  for (const name of names) combinations.push(...combinations.map((some) => [...some, name]), [name])
  return combinations.map((keys) => ({
    ...part,
    route: filteredRoute(part.path, keys),
    get: undefined,
    keys,
    id: [...keys, ...(part.id ?? [])],
    watched: false,
    row: (part.row as z.ZodObject).safeExtend(
      Object.fromEntries(keys.map((name) => [name, (query?.shape[name] as z.ZodOptional).unwrap()])),
    ) as z.ZodType,
  }))
}

function partOf(route: DiagnosticsRoute): Part | null {
  const [capability = ''] = route.requires
  const known = CAPABILITIES.get(capability)
  const [method = known?.method, get] = REQUIRED[route.path] ?? []
  if (!known || route.operation !== undefined || !method || COMPUTED.includes(method)) return null
  if (FOUND.includes(route.path)) return null
  const shape = route.query?.shape ?? {}
  const required = Object.keys(shape).filter((name) => !shape[name].safeParse(undefined).success)
  const isList = route.page !== undefined && isListed(route.response)
  const keys = [...paramNames(route.path), ...required]
  return {
    route: route.path,
    path: route.path,
    family: known.family,
    capability,
    method,
    get,
    kind: isList ? 'list' : 'answer',
    ordered: route.order !== undefined,
    paged: route.page === 'paged',
    keys,
    id: isList ? (IDS[route.path] ?? null) : keys.length > 0 ? keys : null,
    watched: isList && keys.length === 0 && Object.hasOwn(IDS, route.path) && route.path !== '/history/messages',
    userFilter: 'user_id' in shape ? 'user_id' : 'owner' in shape ? 'owner' : null,
    row: isList
      ? ((route.response as z.ZodObject<{ items: z.ZodArray }>).shape.items.element as z.ZodType)
      : route.response,
    compared: (row) => route.compared?.(row as never) ?? row,
  }
}

/** Every part, in the order of the routes; those with keys follow the lists that hold the values of these. */
export const PARTS: readonly Part[] = ROUTES.flatMap((route) => {
  const part = partOf(route)
  return part ? [part, ...filteredOf(part, route.query)] : []
}).sort((a, b) => Math.sign(a.keys.length) - Math.sign(b.keys.length))

export const PART_BY_ROUTE: ReadonlyMap<string, Part> = new Map(PARTS.map((part) => [part.route, part]))

/** Every route that this version knows, kept or computed. */
export const KNOWN_ROUTES: ReadonlySet<string> = new Set(ROUTES.map(({ path }) => path))

export type Row = Readonly<Record<string, unknown>>

/** The id of `row` as a text; a row without one is identified by all of its fields. */
export function rowIdOf(part: Pick<Part, 'id'>, row: Row): string {
  const fields = part.id ?? Object.keys(row)
  const values = fields.map((field) => row[field])
  return values.length === 1 ? String(values[0]) : JSON.stringify(values)
}
