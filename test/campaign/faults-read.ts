/** The last read of a fault campaign: what the store holds when everything is over. */
import type { DeliveryTenant } from '../../src/internal/contract/delivery.js'
import { type RedisClient, redisComposition } from '../../src/redis/index.js'
import { ASK, walk } from '../contract/clock.js'
import type { CommandName, Entry } from './faults-history.js'

export interface Reader {
  /** Commands that are admitted and have not ended. */
  tracked(): Promise<number>
  /** Whether a reservation is held past its deadline, or without an owner. */
  holds(): Promise<boolean>
  read(commands: Iterable<CommandName>, streams: ReadonlyMap<string, { user_id: string }>): Promise<Entry[]>
}

export interface ReaderOptions {
  client: RedisClient
  deploymentId: string
  shards: number
}

/** Messages of one stream that a campaign sends at most. */
const STREAM_MAX = 1_000
/** Records asked for at once. */
const AT_ONCE = 100

/** The inspectors that the read asks, with the operations that are optional elsewhere. */
function inspectorsOf(options: Parameters<typeof redisComposition>[0]) {
  const { delivery, history, deduplicator } = redisComposition(options).inspectors
  const { listStreams } = history ?? {}
  const { userSummary } = deduplicator ?? {}
  if (!delivery || !history || !listStreams || !userSummary) throw new Error('the composition is not whole')
  return { delivery, history: { ...history, listStreams }, deduplicator: { userSummary } }
}

export function createReader({ client, deploymentId, shards }: ReaderOptions): Reader {
  const { delivery, history, deduplicator } = inspectorsOf({
    client,
    deploymentId,
    commandTimeoutMs: 20_000,
  })
  const tenants = async () => (await walk((page) => delivery.listTenants(page, ASK))) as DeliveryTenant[]

  async function inBatches<T>(items: Iterable<T>, toEntry: (item: T) => Promise<Entry>): Promise<Entry[]> {
    const left = [...items]
    const entries: Entry[] = []
    while (left.length > 0) entries.push(...(await Promise.all(left.splice(0, AT_ONCE).map(toEntry))))
    return entries
  }

  async function readStream(stream: string, user_id: string, counts: ReadonlyMap<string, number>): Promise<Entry> {
    const { items } = await history.readMessages({ stream, limit: STREAM_MAX }, ASK)
    const messages = items.map(({ message_id, sequence, payload }) => {
      const { data } = payload as { data: { n: number } }
      return { message_id, sequence: sequence as number, n: data.n }
    })
    return { type: 'stream', stream, user_id, message_count: counts.get(stream) ?? 0, messages }
  }

  return {
    tracked: async () => (await delivery.summary(ASK)).tracked_commands as number,

    async holds() {
      const [held, { observed_at }] = [await tenants(), await delivery.summary(ASK)]
      return held.some(({ oldest_deadline_at }) => shards === 1 || String(oldest_deadline_at) <= String(observed_at))
    },

    async read(commands, streams) {
      const listed = await walk((page) => history.listStreams({}, page, ASK))
      const counts = new Map(listed.map(({ stream, message_count }) => [stream, message_count as number]))
      const users = new Set([...streams.values()].map(({ user_id }) => user_id))
      const entries = [
        ...(await inBatches(commands, async ({ user_id, client_id, command_id }) => {
          const name = { user_id, client_id, command_id }
          return { type: 'command', ...name, status: (await delivery.status(name, ASK)) as never }
        })),
        ...(await inBatches(streams, ([stream, { user_id }]) => readStream(stream, user_id, counts))),
        ...(await inBatches(users, async (user_id) => {
          const summary = await deduplicator.userSummary(user_id, ASK)
          const {
            entries = 0,
            accepted = 0,
            duplicates = 0,
          } = (summary ?? {}) as { entries?: number; accepted?: number; duplicates?: number }
          return { type: 'account', user_id, entries, accepted, duplicates }
        })),
      ]
      const { tracked_commands, observed_at } = await delivery.summary(ASK)
      const now = observed_at as string
      const left = {
        type: 'delivery',
        now,
        shards,
        tracked_commands: tracked_commands as number,
        tenants: await tenants(),
      } as const
      return [...entries, left]
    },
  }
}
