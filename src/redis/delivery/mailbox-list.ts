/** Reads which mailboxes have a connection attached, shard by shard, in the order in which they began to. */
import { DeliveryMailbox, type MailboxFilter } from '../../contract/delivery.js'
import { toTimestamp } from '../../contract/ids.js'
import type { InspectionContext, Page, PageQuery } from '../../contract/page.js'
import { count, listOf, parseText } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { type IndexPosition, type Run, type Stretch, shardRange, walkPage } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow } from '../table/rows.js'
import { Millis } from '../table/timestamp.js'
import { ATTACHED_LUA } from './format.js'

/** Mailboxes that are looked at in one go: a few milliseconds of the store. */
const MAILBOXES_MAX = 1_000
/** Entries that are read of the list at a time. */
const BATCH = 64

// One whose node has fallen silent is passed over: nobody knows whether it is still attached.
const MAILBOXES = defineReadScript(
  {
    args: ['after', 'at', 'most', 'wanted', 'user', 'client', 'node'],
    answer: ([cut, last, examined, found]) => ({
      isTruncated: cut === 1,
      last: Number(last),
      examined: Number(examined),
      found: listOf(found).map((one) => listOf(one)),
    }),
  },
  `local after_now = '(' .. at
${ATTACHED_LUA}
local list = user ~= '' and K('delivery', 'attached-of', user) or K('delivery', 'attached')
local found, last, examined, cut = {}, after, 0, 0

local function look(place, score)
  local user_id, client_id = string.match(place, '^([^\\n]*)\\n([^\\n]*)$')
  if not user_id or client ~= '' and client_id ~= client then return end
  local waiter = read('HMGET', K('delivery', 'waiter', user_id, client_id), 'incarnation', 'instance', 'node', 'since')
  if not waiter or not waiter[1] or not is_living[waiter[1]] or node ~= '' and waiter[3] ~= node then return end
  local waiting = read('ZCARD', K('delivery', 'box', user_id, client_id)) or 0
  found[#found + 1] = { score, place, waiter[2] or '', waiter[3] or '', waiter[4] or '', waiting }
end

while cut == 0 do
  local entries = read('ZRANGE', list, '(' .. last, '(+inf', 'BYSCORE', 'LIMIT', 0, ${BATCH}, 'WITHSCORES') or {}
  for i = 1, #entries, 2 do
    if examined == tonumber(most) or #found == tonumber(wanted) then
      cut = 1
      break
    end
    examined, last = examined + 1, entries[i + 1]
    look(entries[i], entries[i + 1])
  end
  if #entries < ${2 * BATCH} then break end
end
return { foreign, cut, last, examined, found }`,
)

async function readStretch(
  store: Store,
  { user_id: user = '', client_id: client = '', node_id: node = '' }: MailboxFilter,
  { shard, sequence }: IndexPosition,
  { wanted, budget }: Stretch,
  ctx: InspectionContext,
): Promise<Run<DeliveryMailbox>> {
  const now = await store.time(ctx)
  const given = { after: sequence, at: now, most: Math.min(budget, MAILBOXES_MAX), wanted, user, client, node }
  const { found, last, examined, isTruncated } = await readShard(store, MAILBOXES, shard, given, ctx)
  const entries: Run<DeliveryMailbox>['entries'] = found.map(([score, place, instance, at, since, waiting]) => {
    const [user_id = '', client_id = ''] = String(place).split('\n')
    const attachedAt = Millis.safeParse(Number(since || Number.NaN))
    const read = DeliveryMailbox.safeParse({
      user_id,
      client_id,
      instance_id: parseText(instance) || null,
      node_id: parseText(at) || null,
      attached_at: attachedAt.success ? toTimestamp(attachedAt.data) : null,
      waiting_commands: count(waiting ?? null),
    })
    if (!read.success) store.onError(new BadRow(`a mailbox of shard ${shard} is not one of ours`), ctx)
    return { position: { shard, sequence: Number(score) }, record: read.data, isBad: !read.success }
  })
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
