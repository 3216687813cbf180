/** Inspectors that answer from an incident, so that the unchanged router shows what the deployment showed then. */
import type { ActionFilter, ClientOfUser, ConnectionAnswer, Instance } from '../internal/contract/connections.js'
import {
  type CommandFilter,
  type CommandKey,
  type DeliveryCommandAnswer,
  DeliveryStatusAnswer,
} from '../internal/contract/delivery.js'
import { addressOf, admitsCommand } from '../internal/contract/delivery-rules.js'
import { type Deployment, type FamilyName, familyEntries, type Inspectors } from '../internal/contract/families.js'
import { checkSegmentId, commandKey, utf8Length } from '../internal/contract/ids.js'
import type { JsonObject } from '../internal/contract/json.js'
import {
  fieldOfFilter,
  matcherOf,
  omittedCount,
  type Page,
  type PageQuery,
  type Sample,
} from '../internal/contract/page.js'
import { hasAll, type KnownAction, pageOfActions, pageOfRows } from '../internal/contract/rows.js'
import { admitsCall, type PendingCallAnswer } from '../internal/contract/rpc.js'
import { EXTENSIONS_BYTES } from '../internal/diagnostics/options.js'
import { Refusal } from '../internal/refusal.js'
import { type Incident, type Missing, missingOf } from './format.js'
import { filteredRoute, PARTS, type Part, type Row } from './parts.js'
import { type IncidentFile, readIncident } from './read.js'

/** The token of the page that the file does not hold. */
const CUT = 'cut'

/** Reasons that say nothing of whether a list is whole. */
const WHOLE: readonly Missing['reason'][] = ['unsteady', 'unreadable', 'not_deployed', 'unknown_route']

/** Epoch ms of the instant that the incident shows, by the clock of the node where that is known. */
export const instantOf = ({ clocks }: Incident): number => Date.parse((clocks.node ?? clocks.observer).to)

/** The rows of an incident by route, and what is missing of each. */
interface Kept {
  readonly rows: ReadonlyMap<string, readonly Row[]>
  readonly answers: ReadonlyMap<string, Row>
  readonly missing: ReadonlyMap<string, readonly Missing[]>
  /** The users whose rows are all in the file, if it lacks those of others. */
  readonly users: ReadonlySet<unknown>
  readonly at: number
}

function keptOf(incident: Incident): Kept {
  const missing = new Map<string, Missing[]>()
  for (const one of incident.missing) missing.set(one.route, [...(missing.get(one.route) ?? []), one])
  const rows = new Map(incident.parts.flatMap(({ route, rows }) => (rows ? [[route, rows] as const] : [])))
  const sessions = rows.get('/sessions')
  // The router asks the connections for it again, and shows what it was found by.
  if (sessions && rows.has('/connections') && !missing.has('/connections'))
    rows.set(
      '/sessions',
      sessions.map((session) => ({ ...session, connector_connected: null })),
    )
  return {
    rows,
    answers: new Map(incident.parts.flatMap(({ route, answer }) => (answer ? [[route, answer]] : []))),
    missing,
    users: new Set(
      incident.user === null
        ? incident.parts.flatMap(({ rows = [] }) => rows.flatMap(({ owner, user_id = owner }) => user_id ?? []))
        : [incident.user],
    ),
    at: instantOf(incident),
  }
}

const notKept = (route: string, why = 'is not in this incident') => new Refusal('unavailable', `${route} ${why}`)

/** Whether the file may lack rows of `route` under `filter`: an absent row is then unknown, and not gone. */
function isTruncated({ missing, users }: Kept, route: string, filter: Row = {}): boolean {
  return (missing.get(route) ?? []).some(({ reason, of }) => {
    if (WHOLE.includes(reason)) return false
    if (reason === 'other_users') return !users.has(filter.user_id) && !users.has(filter.owner)
    return of === null || hasAll(filter, Object.entries(of))
  })
}

/** The same for what was asked for by a key. It is whole where there is any of it, unless that key is named as missing. */
const isKeyTruncated = (kept: Kept, route: string, key: Row, rows: number): boolean =>
  rows === 0
    ? isTruncated(kept, route, key)
    : (kept.missing.get(route) ?? []).some(({ of }) => of !== null && hasAll(key, Object.entries(of)))

const isPage = (given: unknown): given is PageQuery =>
  typeof given === 'object' && given !== null && 'limit' in given && 'cursor' in given

/** Filters whose values are no fields of a row. */
const ADMITS: Readonly<Record<string, (filter: Row, row: Row) => boolean>> = {
  '/delivery/commands': (filter, row) =>
    admitsCommand(filter as CommandFilter, row as unknown as DeliveryCommandAnswer),
  '/rpc/pending': (filter, row) => admitsCall(filter, row as unknown as PendingCallAnswer),
}

/** @throws Refusal `unavailable` for a filter that the rows cannot answer. */
function filtered({ rows }: Kept, { route }: Part, filter: Row): readonly Row[] {
  const kept = rows.get(route)
  if (!kept) throw notKept(route)
  const admits = ADMITS[route]
  if (admits) return kept.filter((row) => admits(filter, row))
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const unknown = kept.length > 0 && wanted.find(([name]) => !kept.some((row) => fieldOfFilter(name, row) in row))
  if (unknown) throw notKept(route, `cannot be filtered by ${unknown[0]} in an incident`)
  return wanted.length === 0 ? kept : kept.filter(matcherOf(filter))
}

/** One page of a list. After the last row of a list that was cut stands a page that cannot be read. */
function listPage(kept: Kept, part: Part, filter: Row, page: PageQuery): Page<Row> {
  if (page.cursor === CUT) throw notKept(part.route, 'was cut here')
  // What was cut are the oldest rows.
  if (page.order === 'oldest' && part.keys.length === 0 && isTruncated(kept, part.route, filter))
    throw notKept(part.route, 'has only its newest rows')
  const unreadable = (kept.missing.get(part.route) ?? []).find(({ reason }) => reason === 'unreadable')
  const listed = {
    ...pageOfRows(filtered(kept, part, filter), page),
    ...omittedCount(page.cursor === null ? (unreadable?.count ?? 0) : 0),
  }
  const rows = part.keys.length > 0 ? listed.items.length : 0
  const isShort = !listed.has_more && isKeyTruncated(kept, part.route, filter, rows)
  return isShort ? { ...listed, has_more: true, next_cursor: CUT } : listed
}

/** The row with these values; `null` only where the file would have it. */
function findRow(kept: Kept, part: Part, key: Row): Row | null {
  const { route } = part
  const wanted = Object.entries(key)
  const rows = kept.rows.get(route)
  const found = rows?.find((row) => hasAll(row, wanted))
  if (found) return found
  if (!rows || isTruncated(kept, route, key)) throw notKept(route)
  return null
}

const given = (filter: Row): Row =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))

/** The answer under a filter, as the file has it. @throws Refusal `unavailable` */
function filteredAnswer(kept: Kept, part: Part, filter: Row): Row {
  const route = filteredRoute(part.path, Object.keys(filter))
  const found = kept.rows.get(route)?.find((row) => hasAll(row, Object.entries(filter)))
  if (!found) throw notKept(route)
  return found
}

/** The method of an optional or required list, answer, or list by a key. */
function methodOf(kept: Kept, part: Part) {
  const { route, kind, keys, paged } = part
  return (...args: unknown[]): unknown => {
    const page = args.find(isPage)
    const [first] = args
    const filter =
      typeof first === 'string' ? { [keys[0] as string]: first } : first === page || args.length < 2 ? {} : first
    if (kind === 'answer' && keys.length > 0) return findRow(kept, part, filter as Row)
    if (kind === 'answer') {
      const wanted = given(filter as Row)
      if (Object.keys(wanted).length > 0) return filteredAnswer(kept, part, wanted)
      const answer = kept.answers.get(route)
      if (!answer) throw notKept(route)
      return answer
    }
    if (!paged) return sampleOf(kept, part, filter as { stream: string; limit: number })
    const listed = listPage(kept, part, filter as Row, page as PageQuery)
    if (keys.length === 0 || listed.items.length > 0 || isNamed(kept, filter as Row)) return listed
    if (listed.has_more) throw notKept(route)
    return null
  }
}

/** Whether any row has these values. */
const isNamed = ({ rows }: Kept, key: Row): boolean =>
  [...rows.values()].some((list) => list.some((row) => hasAll(row, Object.entries(key))))

/** The newest rows of what the filter names. */
function sampleOf(kept: Kept, part: Part, { limit, ...filter }: { limit: number }): Sample<Row> {
  const rows = filtered(kept, part, filter)
  const isShort = isKeyTruncated(kept, part.route, filter, rows.length)
  if (rows.length === 0 && isShort) throw notKept(part.route)
  return { items: rows.slice(-limit), truncated: isShort || rows.length > limit }
}

const described = ({ name, description, parameters_schema }: KnownAction): KnownAction => ({
  name,
  description,
  parameters_schema,
})

/** Methods that only a deployment with their capability has. */
const OPTIONAL: readonly string[] = ['checkInstance']

/** What is computed from the rows of several parts. */
function computed(kept: Kept, part: (route: string) => Part): Partial<Record<FamilyName, Record<string, unknown>>> {
  const rowsOf = <T>(route: string) => (kept.rows.get(route) ?? []) as readonly T[]
  const instanceOf = ({ user_id, client_id }: ClientOfUser) =>
    findRow(kept, part('/connections'), { user_id, client_id, status: 'connected' })?.instance_id ?? null
  return {
    registry: {
      currentInstances: (clients: readonly ClientOfUser[]) => clients.map(instanceOf),
      listActions({ user_id, client_type }: ActionFilter, page: PageQuery) {
        const ofUser = given({ user_id })
        const wanted = given({ user_id, client_type })
        const from = user_id === undefined ? part('/actions') : part(filteredRoute('/actions', ['user_id']))
        const known = filtered(kept, from, ofUser) as unknown as readonly KnownAction[]
        // Without this filter the numbers are those of the router then.
        const listed =
          client_type === undefined
            ? pageOfActions(known, [], {}, page)
            : pageOfActions(known.map(described), rowsOf<ConnectionAnswer>('/connections'), wanted, page)
        const isShort = isKeyTruncated(kept, from.route, ofUser, user_id === undefined ? 0 : known.length)
        return {
          ...listed,
          truncated: isShort || (client_type !== undefined && isTruncated(kept, '/connections', wanted)),
        }
      },
    },
    rpc: {
      checkInstance({ instance_id, ...client }: Instance) {
        const held = instanceOf(client)
        return { current: held === instance_id, current_instance_id: held }
      },
    },
    delivery: {
      getTenant: (scope_id: string) => findRow(kept, part('/delivery/tenants'), { scope_id }),
      status(key: CommandKey) {
        if (checkSegmentId(key.client_id) || checkSegmentId(key.command_id)) throw new Refusal('invalid_identity')
        const asked = commandKey(key)
        const commands = rowsOf<DeliveryCommandAnswer>('/delivery/commands')
        const found = commands.find((command) => commandKey(addressOf(command)) === asked)
        if (found) return DeliveryStatusAnswer.parse(found)
        if (!kept.rows.has('/delivery/commands') || isTruncated(kept, '/delivery/commands', { ...key }))
          throw notKept('/delivery/commands')
        return null
      },
    },
  }
}

/**
 * Inspectors over an incident: hand them to `createDiagnosticsRouter`, or call them from a test. They have the capabilities
 * that the deployment had. What the file does not hold is refused with `unavailable`, and a list that was cut ends with a
 * page that is, so that nothing unknown reads as absent.
 *
 * @param file The text or bytes of the file, or what was parsed of it.
 * @throws IncidentRefused for a file that is damaged or hostile.
 * @example
 * const inspectors = createIncidentInspectors(await readFile('incident.json'))
 * const router = createDiagnosticsRouter({ inspectors, auth: noopAuth() })
 */
export function createIncidentInspectors(file: IncidentFile): Inspectors {
  const incident = readIncident(file)
  const kept = keptOf(incident)
  const offered = new Set(incident.capabilities)
  const byRoute = new Map(PARTS.map((part) => [part.route, part]))
  const special = computed(kept, (route) => byRoute.get(route) as Part)
  const inspectors: Record<string, object> = {}
  for (const [name, { capability, methods, operations, listed }] of familyEntries()) {
    if (!offered.has(capability)) continue
    const optional = Object.entries({ ...operations, ...listed }).filter(([operation]) => offered.has(operation))
    const promised = [...Object.keys(methods), ...optional.map(([, method]) => method)]
    const inspector: Record<string, unknown> = Object.fromEntries(
      promised.map((method) => [
        method,
        () => {
          throw notKept(`${capability}.${method}`)
        },
      ]),
    )
    const answering = PARTS.filter(
      ({ family, method, route, path }) => family === name && route === path && promised.includes(method),
    )
    for (const part of answering) {
      inspector[part.method] = methodOf(kept, part)
      const id = part.id?.[0] as string
      if (part.get !== undefined) inspector[part.get] = (value: string) => findRow(kept, part, { [id]: value })
    }
    const own = Object.entries(special[name] ?? {}).filter(
      ([method]) => !OPTIONAL.includes(method) || promised.includes(method),
    )
    inspectors[name] = Object.assign(inspector, Object.fromEntries(own))
  }
  return inspectors as Inspectors
}

/** The entry `incident` of `capabilities.extensions`: that nothing is live, and what the file lacks. */
export interface IncidentBanner
  extends Pick<Incident, 'clocks' | 'user' | 'limited' | 'since' | 'consistent' | 'recording'> {
  readonly redacted: boolean
  /** At most 50; the gaps of `recording` are at most 250. */
  readonly missing: readonly Missing[]
  /** How many more are missing. */
  readonly missing_omitted: number
}

/** Most bytes of the entry and of the entries of the host, which a router takes together. */
const ENTRIES_BYTES = EXTENSIONS_BYTES - 1_024
/** An entry without gaps, and with nothing that is missing, takes less. */
const BANNER_BYTES = 4_096

/** The entries of the host and this one, within the bound: what is missing first, and the newest gaps. */
function extensionsOf(incident: Incident): JsonObject {
  const { clocks, user, limited, since, redaction, consistent, missing, recording } = incident
  const remaining = ENTRIES_BYTES - utf8Length(JSON.stringify(incident.extensions))
  const isTooLarge = remaining < BANNER_BYTES
  const lacking = missing.filter(({ reason }) => reason !== 'not_deployed')
  if (isTooLarge) lacking.unshift(missingOf('/capabilities', 'cut', 'the extensions of the host are too large to show'))
  for (let most = 50; ; most = Math.floor(most / 2)) {
    const gaps = recording?.gaps.slice(Math.max(0, recording.gaps.length - 5 * most)) ?? []
    const shown = lacking.slice(0, most)
    const banner: IncidentBanner = {
      clocks,
      user,
      limited,
      since,
      redacted: redaction !== null,
      consistent,
      missing: shown,
      missing_omitted: lacking.length - shown.length,
      recording: recording && {
        ...recording,
        gaps,
        gaps_omitted: recording.gaps_omitted + recording.gaps.length - gaps.length,
      },
    }
    if (most === 0 || utf8Length(JSON.stringify(banner)) <= (isTooLarge ? ENTRIES_BYTES : remaining))
      return { ...(isTooLarge ? {} : incident.extensions), incident: banner } as unknown as JsonObject
  }
}

/**
 * What a router over an incident is built from: its inspectors, its deployment, the clock stopped at the capture, and the
 * entry `incident` of `capabilities.extensions`, by which the dashboard shows that nothing of it is live.
 *
 * @throws IncidentRefused for a file that is damaged or hostile.
 * @example
 * const router = createDiagnosticsRouter({ ...incidentComposition(file), auth: noopAuth() })
 */
export function incidentComposition(file: IncidentFile): {
  inspectors: Inspectors
  deployment: Deployment
  extensions: JsonObject
  now: () => number
} {
  const incident = readIncident(file)
  const at = instantOf(incident)
  return {
    inspectors: createIncidentInspectors(incident),
    deployment: { id: incident.deployment.id, mode: incident.deployment.mode },
    extensions: extensionsOf(incident),
    now: () => at,
  }
}
