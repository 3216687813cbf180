/** Reads which mailboxes have a connection attached, shard by shard, in the order in which they began to. */
import { DeliveryMailbox, type MailboxFilter } from '../../contract/delivery.js'
import { encodePart, toTimestamp } from '../../contract/ids.js'
import type { InspectionContext, Page, PageQuery } from '../../contract/page.js'
import { count, listOf, parseText } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { type IndexPosition, type Run, type Stretch, shardRange, walkPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { Millis } from '../table/timestamp.js'
import { CHUNK } from './library.js'
import mailboxesLua from './mailboxes.lua'
import { RECORD_TEXT_BYTES, withRecords } from './record.js'

/** Mailboxes that are looked at in one go: a few milliseconds of the store. */
const MAILBOXES_MAX = 1_000
/** Entries that are read of the list at a time. */
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

/** A part of a key as it was before it was encoded; as it stands where nobody of ours encoded it. */
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
      if (!read.success) store.onError(new BadRow(`a mailbox of shard ${shard} is not one of ours`), ctx)
      return { position: { shard, sequence: Number(score) }, record: read.data, isBad: !read.success }
    },
  )
  // What was passed over behind the last of them is not looked at again.
  if (last !== entries.at(-1)?.position.sequence)
    entries.push({ position: { shard, sequence: last }, record: undefined, isBad: false })
  return { shard, entries, examined, isTruncated }
}

/** A page of the mailboxes that are attached. @throws Refusal as `walkPage`. */
export async function listMailboxes(
  store: Store,
  filter: MailboxFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<DeliveryMailbox>> {
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  return walkPage(reach, page, ctx, (from, stretch) => readStretch(store, filter, from, stretch, ctx))
}
