/** Reads the lists of commands of a deployment, shard by shard, in the order of their admission. */
import { type CommandFilter, type DeliveryCommand, NO_REASON } from '../../internal/contract/delivery.js'
import { toDeliveryCommand } from '../../internal/contract/delivery-rules.js'
import { encodePart } from '../../internal/contract/ids.js'
import type { InspectionContext, Order, Page, PageQuery } from '../../internal/contract/page.js'
import { listOf, type StoreReply } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { mergePage, type Run, type Stretch, shardRange, walkPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { type Scores, scoreOf } from '../table/spans.js'
import { BUCKET_MS, CHUNK } from './library.js'
import { scripts } from './reads.lua'
import { keyOfRef, OPEN_LETTERS, RECORD_TEXT_BYTES, readRecord, refOf, STATE_LETTERS, withRecords } from './record.js'

/** Maximum number of records that one call of the store examines: a few milliseconds of its time. */
const RECORDS_MAX = 1_000
/** Size of a reply in bytes at which it ends; the record that reaches it is still included. */
const ANSWER_BYTES = 8_388_608

const COMMANDS = defineReadScript(
  {
    args: [
      'after',
      'at',
      'max_records',
      'wanted',
      'max_bytes',
      'states',
      'user',
      'client',
      'command',
      'scope',
      'overdue',
      'action',
      'trace_id',
      'reason',
      'from',
      'to',
      'descending',
      'by_stamp',
    ],
    constants: {
      CHUNK,
      RECORD_BYTES: RECORD_TEXT_BYTES,
      // BATCH: entries of a list that are read at a time. CHUNKS: state columns that one call reads (a million commands).
      BATCH: 64,
      CHUNKS: 4_096,
      // Deadlines that a search for overdue commands reads. If there are more, it scans the state columns instead.
      ENTRIES: 50_000,
      BUCKET: BUCKET_MS,
      OPEN: OPEN_LETTERS,
      NO_REASON,
      ALL: Object.values(STATE_LETTERS).join(''),
    },
    answer: ([cut, last, examined, found]) => ({
      isTruncated: cut === 1,
      last: last === '' ? null : Number(last),
      examined: Number(examined),
      found: listOf(found).map((one) => {
        const [sequence, ref, record = null, attached] = listOf(one)
        return { sequence: Number(sequence), ref: String(ref), record, isAttached: attached === 1 }
      }),
    }),
  },
  withRecords(scripts.commands),
)

const encoded = (id: string | undefined) => (id === undefined ? '' : encodePart(id))
const instantOf = (at: string | undefined) => (at === undefined ? '' : Date.parse(at))

/** Where a stretch starts: after a number of the shard, or after a stamp, which orders the commands of all shards. */
interface Place {
  after: number
  order: Order | undefined
  byStamp: boolean
}

/** Returns the place after which the range of `scores` starts. Stamps are whole numbers. */
function placeIn({ from, order }: Scores): Place {
  const after = scoreOf(from)
  const isIncluded = !from.startsWith('(')
  return { after: isIncluded ? after + (order === 'newest' ? 1 : -1) : after, order, byStamp: true }
}

/** Reads one stretch of a shard: the commands that match `filter`. */
async function readStretch(
  store: Store,
  filter: CommandFilter,
  shard: number,
  { after, order, byStamp }: Place,
  { wanted, budget }: Stretch,
  ctx: InspectionContext,
): Promise<Run<DeliveryCommand>> {
  const now = await store.time(ctx)
  const given = {
    after: after > 0 && after < Number.POSITIVE_INFINITY ? after : '',
    at: now,
    max_records: Math.min(budget, RECORDS_MAX),
    wanted,
    max_bytes: ANSWER_BYTES,
    states: filter.state === undefined ? '' : filter.state === 'open' ? OPEN_LETTERS : STATE_LETTERS[filter.state],
    user: encoded(filter.user_id),
    client: encoded(filter.client_id),
    command: encoded(filter.command_id),
    scope: encoded(filter.scope_id),
    overdue: String(filter.overdue ?? ''),
    action: filter.action ?? '',
    trace_id: filter.trace_id ?? '',
    reason: filter.reason ?? '',
    from: instantOf(filter.from),
    to: instantOf(filter.to),
    descending: order === 'newest' ? '1' : '',
    by_stamp: byStamp ? '1' : '',
  }
  const { found, last, examined, isTruncated } = await readShard(store, COMMANDS, shard, given, ctx)
  const entries: Run<DeliveryCommand>['entries'] = found.map(({ sequence, ref, record, isAttached }) => {
    const listed = toRecord(store, shard, ref, record, isAttached, now, ctx)
    return { position: { shard, sequence }, record: listed, isBad: listed === undefined }
  })
  // The next page continues after the last examined record, not after the last match.
  if (last !== null && last !== found.at(-1)?.sequence)
    entries.push({ position: { shard, sequence: last }, record: undefined, isBad: false })
  return { shard, entries, examined, isTruncated }
}

function toRecord(
  store: Store,
  shard: number,
  ref: string,
  record: StoreReply,
  isAttached: boolean,
  now: number,
  ctx: InspectionContext,
) {
  const key = keyOfRef(ref)
  const read = refOf(key) === ref ? readRecord(record, key, now) : undefined
  if (read) return toDeliveryCommand(read.status, read.action, { step: read.step, isAttached })
  const at = store.key(shard, 'delivery', 'command', key.user_id, key.client_id, key.command_id)
  const fault = { id: key.command_id, fields: [{ path: '', expected: 'the record of that command' }] }
  store.onError(new BadRow(`${at} does not hold the record of that command`, fault), ctx)
  return undefined
}

/** Returns a page of the commands that match `filter`. @throws Refusal as `walkPage`, or as `mergePage` for an ordered page. */
export async function listCommands(
  store: Store,
  filter: CommandFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryCommand>> {
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  const { order } = page
  const read = (shard: number, place: Place, stretch: Stretch) => readStretch(store, filter, shard, place, stretch, ctx)
  // Without an order, read one shard after the other, so that a page doesn't need all of them.
  return order !== undefined && reach[0] < reach[1]
    ? mergePage(reach, page, ctx, (shard, scores, stretch) => read(shard, placeIn(scores), stretch))
    : walkPage(reach, page, ctx, ({ shard, sequence }, stretch) =>
        read(shard, { after: sequence, order, byStamp: false }, stretch),
      )
}
