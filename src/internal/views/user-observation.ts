/** One user as the sources see it together. */
import * as z from 'zod'
import { readSummary } from '../contract/answer.js'
import { requireRequested } from '../contract/bad-record.js'
import { WindowStatus } from '../contract/browser-windows.js'
import { CAPABILITIES, type Capability, Completeness, SourceName } from '../contract/capabilities.js'
import { ClientType } from '../contract/connections.js'
import { ContextStatus } from '../contract/contexts.js'
import { DeduplicatorUserSummaryAnswer } from '../contract/deduplicator.js'
import { DeliveryCommandAnswer, DeliveryMailboxAnswer } from '../contract/delivery.js'
import { type FamilyName, familyEntries, type Inspectors } from '../contract/families.js'
import { compareIds, idField, Timestamp } from '../contract/ids.js'
import { OBSERVED_MAX, UNINDEXED_ENTRIES } from '../contract/limits.js'
import { addNames, type FoldedPart, type UserIndex, type UserPart } from '../contract/observation.js'
import {
  type Awaitable,
  type InspectionContext,
  type Page,
  type PageQuery,
  scanLimit,
  withScanBudget,
} from '../contract/page.js'
import { EndedCallAnswer } from '../contract/rpc.js'
import { SessionRowAnswer } from '../contract/sessions.js'
import { SiteRowAnswer } from '../contract/sites.js'
import { SubscriptionRowAnswer } from '../contract/subscriptions.js'
import { countsBy } from './counts.js'
import {
  budgetOf,
  completenessOf,
  examinedOf,
  joinReadings,
  readOnce,
  type SourceReading,
  type ViewContext,
  viewForSource,
  walkEntries,
} from './reading.js'

/** A number of an aggregate; `null` where its source is absent or failed. */
const ObservedCount = z.int().min(0).nullable()

/**
 * One user as the sources see it. A number is `null` where its source is absent or failed; lists are sorted, unique,
 * and at most 100 long.
 */
export const UserObservation = z
  .object({
    user_id: idField('user_id'),
    sources: z.array(z.string()).describe('The sources that know the user.'),
    observed_connections: ObservedCount.describe('Connections with status `connected`.'),
    observed_client_types: z.array(ClientType).describe('Types of clients that have a connection or a live context.'),
    observed_action_types: z.array(z.string()).describe('Names of the actions that connected clients offer.'),
    observed_contexts: ObservedCount.describe('Execution contexts with status `active` or `idle`.'),
    observed_browser_windows: ObservedCount.describe('Browser windows with status `open`.'),
    last_seen_at: Timestamp.nullable().describe(
      "Time of the last heartbeat of any of the user's connections; `null` if there is none.",
    ),
  })
  .describe(
    `One user as the sources see it together. A number is \`null\` where its source is absent or failed; lists are sorted, unique, and at most ${OBSERVED_MAX} long.`,
  )
export type UserObservation = z.infer<typeof UserObservation>

/**
 * One user, as each reading has it: `null` if it knows for certain that there is no such user, missing if it is unknown.
 * The reading with the numbers of a source comes before those that only mention users.
 */
type SourceParts = readonly (readonly [SourceName, UserPart | null])[]

export const partsOf = (userId: string, readings: readonly UserReading[]): SourceParts =>
  readings.flatMap(({ source, value }) => {
    const part = value?.parts.get(userId) ?? (value?.exhaustive ? null : undefined)
    return part === undefined ? [] : [[source, part] as const]
  })

/** What the first reading of `source` has. */
const partIn = (parts: SourceParts, source: SourceName) => parts.find(([name]) => name === source)?.[1]

/** Combines what the sources have of one user, and lists the sources that do not show all of it. */
export function observe(userId: string, parts: SourceParts): { user: UserObservation; cut: SourceName[] } {
  const types = namesOf('observed_client_types', parts)
  const actions = namesOf('observed_action_types', parts)
  const user = {
    user_id: userId,
    sources: sourcesOf(parts, () => true),
    observed_connections: countOf('observed_connections', partIn(parts, 'registry')),
    // Validated by the schema when the response is encoded.
    observed_client_types: types.names as ClientType[],
    observed_action_types: actions.names,
    observed_contexts: countOf('observed_contexts', partIn(parts, 'context_registry')),
    observed_browser_windows: countOf('observed_browser_windows', partIn(parts, 'browser_window_registry')),
    last_seen_at: parts.find(([, part]) => part?.last_seen_at)?.[1]?.last_seen_at ?? null,
  }
  return { user, cut: [...sourcesOf(parts, (part) => part.truncated === true), ...types.cut, ...actions.cut] }
}

type CountField =
  | 'observed_connections'
  | 'observed_contexts'
  | 'observed_browser_windows'
  | 'observed_streams'
  | 'pending_rpc'

/** The number in a part: 0 if its source has no such user, `null` if unknown. */
function countOf(field: CountField, part: UserPart | null | undefined): number | null {
  return part === null ? 0 : (part?.[field] ?? null)
}

/** The sorted union of what the sources list, and the sources whose list was cut. */
function namesOf(
  field: 'observed_client_types' | 'observed_action_types' | 'observed_client_ids',
  parts: SourceParts,
): { names: string[]; cut: SourceName[] } {
  const names = new Set(parts.flatMap(([, part]) => [...(part?.[field] ?? [])]))
  const cut = names.size > OBSERVED_MAX ? sourcesOf(parts, (part) => part[field] !== undefined) : []
  return { names: [...names].sort(compareIds).slice(0, OBSERVED_MAX), cut }
}

const sourcesOf = (parts: SourceParts, isMeant: (part: UserPart) => boolean) => [
  ...new Set(parts.flatMap(([source, part]) => (part && isMeant(part) ? source : []))),
]

// What one source has of some users: from its own index, otherwise from its entries.

type Parts = Map<string, UserPart>

/** The parts of some users, as one source has them. */
export interface KnownUsers {
  readonly parts: Parts
  /** A user without a part is unknown to the source. Otherwise it may only not have been reached. */
  readonly exhaustive: boolean
}

export type UserReading = SourceReading<KnownUsers>

/** Reads these users from the index of `source`, otherwise by walking the entries of each user. */
export async function readUsers(
  source: UserSource,
  userIds: readonly string[],
  view: ViewContext,
): Promise<UserReading> {
  return (await readIndex(source, userIds, view)) ?? (await readEach(source, userIds, view))
}

/** Reads these users from the index of `source`; `null` if it has no index. */
export async function readIndex(
  { index, name }: UserSource,
  userIds: readonly string[],
  view: ViewContext,
): Promise<UserReading | null> {
  const parts: Parts = new Map()
  const read = async () => {
    const known = index.observeUsers ? await index.observeUsers(userIds, view.ctx) : null
    for (const part of known ?? []) parts.set(part.user_id, part)
    return known
  }
  const reading = await readOnce(name, read, view, (known) =>
    known.examined === undefined ? parts.size : examinedOf(known, 0),
  )
  return reading && toUserReading({ ...reading, value: reading.value && parts })
}

/** Reads the users for which `isWanted` is true from the entries of `source`. */
export async function readEntries(
  source: UserSource,
  view: ViewContext,
  isWanted: (userId: string) => boolean,
): Promise<UserReading> {
  const list = (page: PageQuery, ctx: InspectionContext) => source.list({}, page, ctx)
  const from = { entry: source.entry, id: source.id, list }
  const reading = await walkEntries<UserEntry, Parts>(source.name, from, view, new Map(), adderOf(source, isWanted))
  return toUserReading(reading)
}

async function readEach(source: UserSource, userIds: readonly string[], view: ViewContext): Promise<UserReading> {
  const parts: Parts = new Map()
  const budget = budgetOf(view)
  let whole: SourceReading<Parts> = { source: source.name, examined: 0, truncated: false, value: undefined }
  for (const user_id of userIds) {
    const list = (page: PageQuery, ctx: InspectionContext) => source.list({ user_id }, page, ctx)
    const isWanted = (id: string) => id === user_id
    const from = { entry: source.entry, id: source.id, list }
    const reading = await walkEntries<UserEntry, Parts>(
      source.name,
      from,
      view,
      parts,
      adderOf(source, isWanted),
      budget,
    )
    whole = { ...joinReadings(whole, reading), value: whole.value ?? reading.value }
    if (!reading.value) break
  }
  return toUserReading(whole)
}

/** Adds the entries of one page to the parts of their users. */
const adderOf = (source: UserSource, isWanted: (userId: string) => boolean) => (parts: Parts, page: UserEntry[]) => {
  for (const entry of page) {
    // The user of a command may be unknown.
    if (!entry.user_id || !isWanted(entry.user_id)) continue
    const part = parts.get(entry.user_id) ?? { user_id: entry.user_id }
    parts.set(entry.user_id, part)
    source.add(part, entry)
  }
}

const toUserReading = (reading: SourceReading<Parts>): UserReading => ({
  ...reading,
  value: reading.value && { parts: reading.value, exhaustive: !reading.truncated },
})

// The sources that know users: the index of each if it keeps one, and how users are derived from its entries.

type List = (filter: { user_id?: string }, page: PageQuery, ctx: InspectionContext) => Awaitable<Page<unknown>>

/** One source of users: its index if it keeps one, its list, and how an entry adds to its user. */
export interface UserSource {
  name: SourceName
  index: UserIndex
  list: List
  entry: z.ZodType<UserEntry>
  /** The field that holds the id of an entry. */
  id: string
  /** How many lists of its source are read for users. */
  lists: number
  /** Entries that are read of it where no user is given. */
  walkMax: number
  /** Adds one entry to the part of its user, which starts as `{ user_id }`. */
  add(part: UserPart, entry: UserEntry): void
}

/** An entry of any family that belongs to a user. */
type UserEntry = { user_id: string; [field: string]: unknown }

interface UserList {
  inspector: FamilyName
  list: string
  /** That its entries can be listed. */
  requires: Capability
  /** Whether the inspector keeps an index of these users. */
  isIndexed: boolean
  source: Omit<UserSource, 'index' | 'list' | 'lists' | 'walkMax'>
  /** The filter of the list that names the user. */
  by: 'user_id' | 'owner'
}

const LISTS: readonly UserList[] = familyEntries().flatMap(([inspector, family]) => {
  const { users, capability, operations } = family
  if (!users) return []
  const { list, entry, id, fold } = users
  const [optional] = Object.entries(operations).find(([, method]) => method === list) ?? []
  return [
    {
      inspector,
      list,
      requires: (optional ?? capability) as Capability,
      isIndexed: true,
      by: 'user_id',
      source: {
        name: capability as SourceName,
        entry: entry as UserSource['entry'],
        id,
        add: fold as UserSource['add'],
      },
    },
  ]
})

/** A list whose entries mention users and their clients, without numbers of them. */
function mentions(
  inspector: FamilyName,
  list: string,
  requires: Capability,
  record: z.ZodType<object>,
  by: UserList['by'] = 'user_id',
): UserList {
  const entry = record.transform((read) => {
    const { [by]: user_id, client_id } = read as Record<string, string | null | undefined>
    return { user_id: user_id as string, client_id, key: JSON.stringify([user_id, client_id]) }
  })
  const add = (part: FoldedPart, { client_id }: UserEntry) =>
    client_id && addNames(part, 'observed_client_ids', [client_id as string])
  const name = CAPABILITIES.inspectorOf(requires) as SourceName
  return { inspector, list, requires, isIndexed: false, by, source: { name, entry, id: 'key', add: add as never } }
}

const placeOf = ({ source }: UserList) => SourceName.options.indexOf(source.name)
const SOURCES: readonly UserList[] = [
  ...LISTS,
  mentions('rpc', 'listEnded', 'rpc_ended', EndedCallAnswer),
  mentions('delivery', 'listCommands', 'delivery_commands', DeliveryCommandAnswer),
  mentions('delivery', 'listMailboxes', 'delivery_mailboxes', DeliveryMailboxAnswer),
  mentions('sites', 'listSites', 'sites', SiteRowAnswer, 'owner'),
  mentions('sessions', 'listSessions', 'sessions', SessionRowAnswer, 'owner'),
  mentions('subscriptions', 'listSubscriptions', 'subscriptions', SubscriptionRowAnswer),
].sort((a, b) => placeOf(a) - placeOf(b))

/** Capabilities of which each makes a source of users. */
export const USER_SOURCES: readonly Capability[] = SOURCES.map(({ requires }) => requires)

/** The sources of users among `inspectors`, in the order of responses. */
export function userSources(inspectors: Inspectors): UserSource[] {
  const offered = SOURCES.filter(({ requires }) => CAPABILITIES.offers(inspectors, requires))
  return offered.map(({ inspector, list, isIndexed, by, source }) => {
    const owner = inspectors[inspector] as UserIndex
    return {
      ...source,
      index: isIndexed ? owner : {},
      walkMax: isIndexed ? Number.POSITIVE_INFINITY : UNINDEXED_ENTRIES,
      lists: offered.filter((other) => other.inspector === inspector).length,
      list: ({ user_id }, ...asked) =>
        Reflect.apply(Reflect.get(owner, list), owner, [user_id === undefined ? {} : { [by]: user_id }, ...asked]),
    }
  })
}

/** The view of one list of a source: the lists of a source share its bound. */
export function viewForList(view: ViewContext, { name, lists }: UserSource): ViewContext {
  const own = viewForSource(view, name)
  const bound = Math.max(1, Math.floor(scanLimit(own.ctx) / lists))
  return lists === 1 ? own : { ...own, ctx: withScanBudget(own.ctx, bound) }
}

// The user summary: everything that all sources together know of one user.

/** One user in full. */
export const UserSummary = UserObservation.extend({
  observed_client_ids: z.array(z.string()).describe('Clients of the user that any source knows.'),
  contexts_by_status: countsBy(ContextStatus)
    .nullable()
    .describe('All contexts by status, closed and stale ones too; `null` if they are not counted.'),
  browser_windows_by_status: countsBy(WindowStatus)
    .nullable()
    .describe('All browser windows by status, closed and stale ones too; `null` if they are not counted.'),
  observed_streams: ObservedCount.describe('Streams that retain messages.'),
  pending_rpc: ObservedCount.describe('Calls that wait for their reply.'),
  deduplicator: DeduplicatorUserSummaryAnswer.nullable().describe(
    "The user's part of the deduplicator; `null` for none.",
  ),
  completeness: Completeness.describe('What this response may be missing.'),
}).describe('What all sources together know of one user.')
export type UserSummary = z.infer<typeof UserSummary>

/** Everything known of one user, or `null` when no source knows the user and every one was fully examined. */
export async function summarizeUser(
  inspectors: Inspectors,
  userId: string,
  view: ViewContext,
): Promise<UserSummary | null> {
  const [readings, counted] = await Promise.all([
    Promise.all(userSources(inspectors).map((source) => readUsers(source, [userId], viewForList(view, source)))),
    readDeduplicator(inspectors, userId, view),
  ])
  const parts = partsOf(userId, readings)
  const { user, cut } = observe(userId, parts)
  const clients = namesOf('observed_client_ids', parts)
  const completeness = completenessOf([...readings, ...counted], view, [...cut, ...clients.cut])
  const deduplicator = counted[0]?.value?.summary ?? null
  const sources = deduplicator ? [...user.sources, 'deduplicator'] : user.sources
  if (sources.length === 0 && completeness.complete) return null
  return {
    ...user,
    sources,
    observed_client_ids: clients.names,
    contexts_by_status: countsOf(ContextStatus, 'contexts_by_status', partIn(parts, 'context_registry')),
    browser_windows_by_status: countsOf(
      WindowStatus,
      'browser_windows_by_status',
      partIn(parts, 'browser_window_registry'),
    ),
    observed_streams: countOf('observed_streams', partIn(parts, 'history')),
    pending_rpc: countOf('pending_rpc', partIn(parts, 'rpc')),
    deduplicator,
    completeness,
  }
}

/** None where the deduplicator keeps no summary of users. */
async function readDeduplicator({ deduplicator }: Inspectors, userId: string, view: ViewContext) {
  const { userSummary } = deduplicator ?? {}
  if (!userSummary) return []
  const source = 'deduplicator'
  const read = async () => {
    const summary = await userSummary.call(deduplicator, userId, view.ctx)
    requireRequested(summary, { user_id: userId })
    if (summary === null) return null
    const read = readSummary(DeduplicatorUserSummaryAnswer, summary, (error) => view.onError(source, error))
    const { examined = 0 } = summary
    return { summary: read, examined, truncated: read.omitted !== undefined }
  }
  // Kept numbers: the source examined nothing unless it reports otherwise.
  const reading = await readOnce(source, read, view, (found) => examinedOf(found, 0))
  return [reading ?? ({ source, examined: 0, truncated: false, value: null } as const)]
}

/** Counts with every enum value present, or `null` where the source is absent or failed. */
function countsOf<Status extends string>(
  statuses: z.ZodEnum<Record<Status, Status>>,
  field: 'contexts_by_status' | 'browser_windows_by_status',
  part: UserPart | null | undefined,
): Record<Status, number> | null {
  const counts = part === null ? {} : part?.[field]
  if (!counts) return null
  return Object.fromEntries(statuses.options.map((status) => [status, counts[status] ?? 0])) as Record<Status, number>
}
