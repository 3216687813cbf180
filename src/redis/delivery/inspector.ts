/** Reads the dispatcher of a shared store: counts, nodes, scopes and single records, never a payload. */
import {
  CommandKey,
  type DeliveryInspector,
  DeliveryMailbox,
  type DeliveryTenant,
  type MailboxFilter,
} from '../../internal/contract/delivery.js'
import { requireIdentity, shownCapacity } from '../../internal/contract/delivery-rules.js'
import { checkId, encodePart, toTimestamp } from '../../internal/contract/ids.js'
import { type InspectionContext, type Page, type PageQuery, scanLimit } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { count, listOf, parseText, type StoreReply, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import {
  type IndexPosition,
  parseToken,
  type Run,
  readPage,
  type Stretch,
  shardRange,
  toToken,
  walkPage,
} from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow, Millis, readIndex } from '../table/rows.js'
import { readDeliveryChurn } from './churn.js'
import { listCommands } from './commands.js'
import { CHUNK } from './library.js'
import { NODES } from './nodes.js'
import { scripts } from './reads.lua'
import { decodePart, RECORD_TEXT_BYTES, readRecord, refOf, withRecords } from './record.js'
import scopeLua from './scope.lua'
import { type LegacyStream, readSummary } from './summary.js'

// Reads the reservations of each scope of a deployment.

/** Maximum number of scopes that one call of the store reads. */
const ROUND = 100

/** A scope and its position in the list; `null` for a member that is not a scope. */
interface Entry {
  position: IndexPosition
  scope: string | null
}

/** Lists the scopes with reservations, shard by shard, in the order of their first reservation. */
async function listScopes(store: Store, page: PageQuery, ctx: InspectionContext): Promise<Page<DeliveryTenant>> {
  const shards = await store.shards(ctx)
  let at: IndexPosition = page.cursor === null ? { shard: 0, sequence: 0 } : parseToken(page.cursor, 0, shards - 1)
  const bound = scanLimit(ctx)
  const shown: Entry[] = []
  let examined = 0
  let isTruncated = false
  let foreign = 0
  // Read the current shard first. After its end, read all following shards in parallel.
  for (let round = 0; at.shard < shards && !isTruncated; round++) {
    const width = round === 0 ? 1 : Math.min(shards - at.shard, bound - examined)
    const most = width === 0 ? 0 : Math.min(page.limit - shown.length, Math.floor((bound - examined) / width))
    const first = at
    const starts = Array.from({ length: width }, (_, i) => (i === 0 ? first : { shard: first.shard + i, sequence: 0 }))
    const runs = await Promise.all(starts.map((from) => readIndexOf(store, from, most, ctx)))
    for (const { entries } of runs) examined += Math.min(most, entries.length)
    isTruncated = width === 0
    for (const { entries, beyond } of runs) {
      foreign += beyond
      const fits = entries.slice(0, Math.min(most, page.limit - shown.length))
      shown.push(...fits)
      isTruncated = entries.length > fits.length
      at = isTruncated ? (fits.at(-1)?.position ?? at) : { shard: at.shard + 1, sequence: 0 }
      if (isTruncated) break
    }
  }
  const inShards = Array.from({ length: shards }, (_, shard) =>
    readScopes(
      store,
      shard,
      shown.flatMap(({ position, scope }) => (position.shard === shard && scope !== null ? scope : [])),
      ctx,
    ),
  )
  const tenants = (await Promise.all(inShards)).flat()
  const items = tenants.filter((tenant) => tenant !== null && tenant.reserved_commands > 0) as DeliveryTenant[]
  const omitted =
    foreign + shown.filter(({ scope }) => scope === null).length + tenants.filter((tenant) => tenant === null).length
  const next_cursor = isTruncated ? toToken(at) : null
  return { items, next_cursor, has_more: isTruncated, examined, ...(omitted > 0 ? { omitted } : {}) }
}

/** Returns a scope by its id; `null` if it has no reservations. @throws BadRow if their number is invalid. */
async function getScope(store: Store, scope: string, ctx: InspectionContext): Promise<DeliveryTenant | null> {
  const [tenant] = await readScopes(store, await store.shardOf(scope, ctx), [scope], ctx)
  if (tenant === null) throw new BadRow('the reservations of the scope are not a number')
  return tenant && tenant.reserved_commands > 0 ? tenant : null
}

/**
 * Reads the scopes of one shard after `from`: one more than `most`, to detect the end. `beyond` counts what is foreign in
 * the list and has no place in it: the whole key, or members before its first position.
 */
async function readIndexOf(store: Store, from: IndexPosition, most: number, ctx: InspectionContext) {
  const { shard, sequence } = from
  const key = store.key(shard, 'delivery', 'scope-order')
  const range = ['ZRANGE', key, `(${sequence}`, '+inf', 'BYSCORE', 'LIMIT', '0', String(most + 1), 'WITHSCORES']
  const [reply, before] = await Promise.all([
    readIndex(store, range, ctx),
    sequence === 0 ? readIndex(store, ['ZCOUNT', key, '-inf', '0'], ctx) : 0,
  ])
  const entries = scored(reply).map(({ member, score }): Entry => {
    const scope = decodePart(member)
    const isScope = checkId(scope) === undefined && encodePart(scope) === member
    if (!isScope) store.onError(new BadRow(`${key} holds a member that is not a scope`), ctx)
    return { position: { shard, sequence: score }, scope: isScope ? scope : null }
  })
  const beyond = reply === null ? 1 : count(before)
  if (beyond > 0 && reply !== null) store.onError(new BadRow(`${key} holds a score that is not a position`), ctx)
  return { entries, beyond }
}

/** Maximum number of commands, and of list entries, that are examined for one scope: a millisecond or two of the store. */
const RECORDS_MAX = 1_000
const ENTRIES_MAX = 20_000

const SCOPES = defineReadScript(
  {
    args: ['max_records', 'max_entries'],
    rest: 'scopes',
    constants: { CHUNK, RECORD_BYTES: RECORD_TEXT_BYTES },
    answer: ([found]) =>
      listOf(found).map((one) => {
        const [held = null, earliest, capacity] = listOf(one)
        return {
          // `null` if the number of reservations is not valid.
          held: held === null ? null : count(held),
          earliest: earliest === '' ? undefined : Millis.safeParse(Number(earliest)).data,
          capacity: capacity === '' ? Number.NaN : Number(capacity),
        }
      }),
  },
  withRecords(scopeLua),
)

/** Reads scopes of one shard (`null` for one with an invalid number of reservations), as many with each call of the store as it examines at once. */
async function readScopes(
  store: Store,
  shard: number,
  scopes: readonly string[],
  ctx: InspectionContext,
): Promise<(DeliveryTenant | null)[]> {
  const tenants: (DeliveryTenant | null)[] = []
  while (tenants.length < scopes.length) {
    const some = scopes.slice(tenants.length, tenants.length + ROUND)
    const given = { max_records: RECORDS_MAX, max_entries: ENTRIES_MAX, scopes: some.map(encodePart) }
    const found = await readShard(store, SCOPES, shard, given, ctx)
    if (found.length === 0) break
    for (const [i, { held, earliest, capacity }] of found.entries())
      tenants.push(
        held === null
          ? null
          : {
              scope_id: some[i] as string,
              reserved_commands: held,
              oldest_deadline_at: earliest === undefined ? null : toTimestamp(earliest),
              // An invalid value was written by another application.
              capacity: capacity >= 0 ? shownCapacity(capacity) : null,
            },
      )
  }
  return tenants
}

// Lists the mailboxes with an attached client, shard by shard, in the order of their attaches.

/** Maximum number of mailboxes that one call of the store examines: a few milliseconds of its time. */
const MAILBOXES_MAX = 1_000
/** Number of entries of the list that are read at a time. */
const BATCH = 64

const MAILBOXES = defineReadScript(
  {
    args: ['after', 'at', 'most', 'wanted', 'user', 'client', 'node'],
    constants: { BATCH, CHUNK, RECORD_BYTES: RECORD_TEXT_BYTES },
    answer: ([cut, last, examined, found]) => ({
      isTruncated: cut === 1,
      last: Number(last),
      examined: Number(examined),
      found: listOf(found).map((one) => listOf(one)),
    }),
  },
  withRecords(scripts.mailboxes),
)

const partOf = (part: StoreReply | undefined) => decodePart(parseText(part) ?? '')

async function readStretch(
  store: Store,
  filter: MailboxFilter,
  { shard, sequence }: IndexPosition,
  { wanted, budget }: Stretch,
  ctx: InspectionContext,
): Promise<Run<DeliveryMailbox>> {
  const now = await store.time(ctx)
  const [user, client, node] = [filter.user_id, filter.client_id, filter.node_id].map((id) => encodePart(id ?? '')) as [
    string,
    string,
    string,
  ]
  const given = { after: sequence, at: now, most: Math.min(budget, MAILBOXES_MAX), wanted, user, client, node }
  const { found, last, examined, isTruncated } = await readShard(store, MAILBOXES, shard, given, ctx)
  const entries: Run<DeliveryMailbox>['entries'] = found.map(
    ([score, userPart, clientPart, instance, at, since, waiting]) => {
      const attachedAt = Millis.safeParse(Number(since || Number.NaN))
      const read = DeliveryMailbox.safeParse({
        user_id: partOf(userPart) || null,
        client_id: partOf(clientPart) || null,
        instance_id: parseText(instance) || null,
        node_id: partOf(at) || null,
        attached_at: attachedAt.success ? toTimestamp(attachedAt.data) : null,
        waiting_commands: count(waiting ?? null),
      })
      if (!read.success) store.onError(new BadRow(`Invalid mailbox in shard ${shard}`), ctx)
      return { position: { shard, sequence: Number(score) }, record: read.data, isBad: !read.success }
    },
  )
  // The next page continues after the last examined mailbox, not after the last match.
  if (last !== entries.at(-1)?.position.sequence)
    entries.push({ position: { shard, sequence: last }, record: undefined, isBad: false })
  return { shard, entries, examined, isTruncated }
}

/** Returns a page of the mailboxes with an attached client. @throws Refusal as `walkPage`. */
async function listMailboxes(
  store: Store,
  filter: MailboxFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryMailbox>> {
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  return walkPage(reach, page, ctx, (from, stretch) => readStretch(store, filter, from, stretch, ctx))
}

const STATUS = defineReadScript(
  {
    args: ['ref', 'at'],
    constants: { CHUNK, RECORD_BYTES: RECORD_TEXT_BYTES },
    answer: ([record = null]) => record,
  },
  withRecords(scripts.status),
)

/**
 * @param legacy An older command stream to include in the summary.
 * @param isOfNode Whether it is the one of a dispatcher, which counts commands even before the first.
 */
export function createDeliveryInspector(
  store: Store,
  legacy: LegacyStream | undefined = undefined,
  isOfNode = false,
): DeliveryInspector {
  return {
    summary: (ctx) => readSummary(store, legacy, isOfNode, ctx),
    listNodes: (page, ctx) => readPage(store, NODES, {}, page, ctx),
    deliveryChurn: (filter, ctx) => readDeliveryChurn(store, filter, ctx),
    listCommands: (filter, page, ctx) => listCommands(store, filter, page, ctx),
    listMailboxes: (filter, page, ctx) => listMailboxes(store, filter, page, ctx),
    listTenants: (page, ctx) => listScopes(store, page, ctx),
    getTenant: (scopeId, ctx) => getScope(store, scopeId, ctx),

    async status(given, ctx) {
      const read = CommandKey.safeParse(given)
      if (!read.success) throw new Refusal('invalid_identity', 'the ids are malformed')
      requireIdentity(read.data)
      const { user_id, client_id, command_id } = read.data
      const shard = await store.shardOf(user_id, ctx)
      const key = store.key(shard, 'delivery', 'command', user_id, client_id, command_id)
      const asked = { ref: refOf(read.data), at: 0 }
      const [now, record] = await Promise.all([store.time(ctx), readShard(store, STATUS, shard, asked, ctx)])
      if (record === '') return null
      const found = readRecord(record, read.data, now)
      if (!found) {
        store.onError(new BadRow(`${key} should hold the record of a command, and holds something else`), ctx)
        return null
      }
      return found.untilMs !== null && found.untilMs <= now ? null : found.status
    },
  }
}
