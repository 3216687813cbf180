/** Reads the newest event of each of many topics, for the list of sites. */
import type { LastEvent } from '../../internal/contract/event-bus.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { shardOf } from '../store/keys.js'
import { listOf, parseText } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { readShards } from '../table/shards.js'
import { scripts } from './topic.lua'

/** Returns the user in a topic's name, encoded as it is there. */
const userOf = (topic: string) => /^users\/([^/]+)\//.exec(topic)?.[1] ?? ''

const LAST = defineReadScript(
  { args: [], rest: 'topics', answer: ([found]) => listOf(found).map(parseText) },
  scripts.last_events,
)

const NOTED = /^(\S+) ([^\p{Cc}]*):(0|[1-9][0-9]{0,15})$/u

function toLastEvent(noted: string | null): LastEvent | null {
  const [, at, epoch, seq] = NOTED.exec(noted ?? '') ?? []
  return at === undefined || epoch === undefined ? null : { at, position: { epoch, seq: Number(seq) } }
}

/** Returns the newest event of each of `topics`, by name, without topics of shards that are down. */
export async function readLastEvents(
  store: Store,
  topics: readonly string[],
  ctx: InspectionContext,
): Promise<ReadonlyMap<string, LastEvent>> {
  const shards = await store.shards(ctx)
  const byShard = new Map<number, string[]>()
  for (const topic of topics) {
    if (userOf(topic) === '') continue
    const shard = shardOf(topic, shards)
    byShard.set(shard, [...(byShard.get(shard) ?? []), topic])
  }
  const last = new Map<string, LastEvent>()
  if (byShard.size === 0) return last
  await readShards([...byShard.keys()], ctx, async (shard) => {
    const some = byShard.get(shard) as string[]
    const found = await readShard(store, LAST, shard, { topics: some }, ctx)
    for (const [i, topic] of some.entries()) {
      const event = toLastEvent(found[i] ?? null)
      if (event) last.set(topic, event)
    }
  })
  return last
}
