/** Lists the mailboxes with an attached client, shard by shard, in the order of their attaches. */
import { DeliveryMailbox, type MailboxFilter } from '../../contract/delivery.js'
import { encodePart, toTimestamp } from '../../contract/ids.js'
import type { InspectionContext, Page, PageQuery } from '../../contract/page.js'
import { count, listOf, parseText } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { type IndexPosition, type Run, type Stretch, shardRange, walkPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow, Millis } from '../table/rows.js'
import { CHUNK } from './library.js'
import mailboxesLua from './mailboxes.lua'
import { RECORD_TEXT_BYTES, withRecords } from './record.js'

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
  withRecords(mailboxesLua),
)

/** Decodes a part of a key. Returns it unchanged if it is not a valid encoding, as in keys of another application. */
function decoded(part: string | null): string | null {
  try {
    return part === null ? null : decodeURIComponent(part)
  } catch {
    return part
  }
}

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
        user_id: decoded(parseText(userPart)),
        client_id: decoded(parseText(clientPart)),
        instance_id: parseText(instance) || null,
        node_id: decoded(parseText(at)) || null,
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
export async function listMailboxes(
  store: Store,
  filter: MailboxFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryMailbox>> {
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  return walkPage(reach, page, ctx, (from, stretch) => readStretch(store, filter, from, stretch, ctx))
}
