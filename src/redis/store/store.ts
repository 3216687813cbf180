/** One deployment in a shared store, as every facility and inspector of it sees it: bounded commands in known shards. */
import type * as z from 'zod'
import { guardErrorHook, guardHook } from '../../async/hook.js'
import { sleep } from '../../async/timer.js'
import { custom, defineOptions, func, hook, type Input, readOptions, timer, whole } from '../../contract/options.js'
import type { InspectionContext } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { localsOf } from './arguments.js'
import claimShardsLua from './claim-shards.lua'
import { portOf, type RedisClient } from './client.js'
import { createStoreClock } from './clock.js'
import { createCommands } from './commands.js'
import { createFence } from './fence.js'
import { checkDeploymentId, keyOf, SHARDS_MAX, shardOf, shardPrefix } from './keys.js'
import type { StoreReply } from './reply.js'
import { type ClaimedAs, createShardCount } from './shard-count.js'
import timeLua from './time.lua'

/** What every factory of `relayscope/redis` takes. */
export const StoreOptions = defineOptions({
  /** The host's own client of `redis` or `ioredis`; never closed by the library. */
  client: custom<RedisClient>('a client or Cluster of node-redis or ioredis', (value) => value !== undefined),
  /** `^[A-Za-z0-9_-]{1,64}$`; part of every key. */
  deploymentId: custom<string>('a string', (value) => value !== undefined),
  /**
   * Number of shards of the deployment, 1–64, fixed with the first record. Give all processes of a deployment the same
   * number; a process without one uses what is stored. @default what is stored, else 1
   */
  shards: whole(SHARDS_MAX).optional(),
  /** Epoch ms. @default the store's own clock */
  now: func<() => number>().optional(),
  /** Longest wait for one command, link included. @default 2000 */
  // Below the router's 5 s, so that a stalled store is `unavailable` and not only late.
  commandTimeoutMs: timer(2_000),
  /**
   * Told of stored values that are not what they should be. A throw in it changes nothing. `null` for nobody.
   * @default console.error, for what no router asked for
   */
  onError: hook<(error: unknown) => void>(),
})
export interface StoreOptions extends Input<typeof StoreOptions> {}

/** `schema`, for what opens its store itself. */
export const inStore = <S extends z.core.$ZodShape>(schema: z.ZodObject<S, z.core.$strict>): z.ZodObject =>
  defineOptions({ ...StoreOptions.shape, ...schema.shape })

export interface Store {
  readonly client: RedisClient
  readonly deploymentId: string
  /** What a command waits at most, link included. */
  readonly commandTimeoutMs: number
  /** The injected clock, if any: with it scripts and readers do not ask the store's. */
  readonly now: (() => number) | undefined
  /**
   * Sends one command to the shard of `key`, bounded in time and number. What was sent may be done later all the same,
   * by a store that stalls or a client that sends again: only a script that knows its end is not.
   *
   * @throws Refusal `unavailable`, with `outcome`; `Late`, `WrongType`, `UnknownScript`; the signal's reason when it aborts.
   */
  command(args: string[], key: string, ctx?: InspectionContext): Promise<StoreReply>
  /**
   * Sends a write by scripts that carry `ends`, the instant of the shard's clock at which it is given up, never later.
   * All commands of it share the time of one. Whoever asked is told that nobody knows whether it ran when it cannot run
   * any more: a link may end before what it carried has reached the store. Not where a write says `anyTime`.
   */
  fenced(
    shard: number,
    send: (ends: number, command: (args: string[]) => Promise<StoreReply>) => Promise<StoreReply>,
    options?: { anyTime?: boolean },
  ): Promise<StoreReply>
  /** The number of shards, read from the store on first use. @throws Refusal `unavailable` where it differs. */
  shards(ctx?: InspectionContext): Promise<number>
  /** The same, and stores the number where there is none yet: for writers. */
  claimShards(): Promise<number>
  /** The number for a process that is idle: one that nobody was given stays open until the first record. */
  joinShards(): Promise<number>
  /** The number that this process goes by now: what it claimed or joined. */
  heldShards(): Promise<number>
  /** Gives `shard` the number that it has lost. @throws Refusal `unavailable` where it was given another one */
  confirmShards(shard: number): Promise<void>
  /** The shard of a user's records. */
  shardOf(userId: string, ctx?: InspectionContext): Promise<number>
  key(shard: number, ...parts: string[]): string
  /** The store's clock in epoch ms, or the injected one. */
  time(ctx?: InspectionContext): Promise<number>
  /** Hands what a reader skipped to the store's own `onError` and to that of whoever asked. */
  onError(error: unknown, ctx?: InspectionContext): void
}

const CLAIM_SHARDS = `${localsOf(['ends', 'number', 'as'], undefined)}${claimShardsLua}`

const toMillis = (reply: StoreReply) => {
  const [seconds, micros] = [reply].flat()
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
}

/**
 * @param schema What the options of whoever opens it must be, those of its own among them.
 * @throws RangeError, TypeError for options that cannot be; never for a store that is down.
 */
export function createStore(options: StoreOptions, schema: z.ZodObject = StoreOptions): Store {
  const read = readOptions(schema, options) as z.output<typeof StoreOptions>
  const { client, now, onError, commandTimeoutMs, shards: given } = read
  const deploymentId = checkDeploymentId(read.deploymentId)
  const toHost = guardErrorHook(onError)
  const port = portOf(client)
  const prefixes = Array.from({ length: SHARDS_MAX }, (_, shard) => shardPrefix(deploymentId, shard))
  const key = (shard: number, ...parts: string[]) => keyOf(prefixes[shard] as string, parts)
  const send = createCommands(port)
  const command = (args: string[], route: string, ctx?: InspectionContext) => send(args, route, ctx, commandTimeoutMs)

  // By a script: every master of a Cluster has a clock of its own.
  const fence = createFence(async (shard, endsAt) => {
    const prefix = prefixes[shard] as string
    const args = ['EVAL', timeLua, '1', prefix]
    return toMillis(await send(args, prefix, undefined, endsAt - performance.now()))
  }, port.kind.startsWith('ioredis'))
  const clockOf = (shard: number) => (port.kind.endsWith('cluster') ? shard : 0)

  const fenced: Store['fenced'] = async (shard, write, { anyTime = false } = {}) => {
    const endsAt = performance.now() + commandTimeoutMs
    const sendInTime = (args: string[]) => send(args, prefixes[shard] as string, undefined, endsAt - performance.now())
    try {
      return await fence.run(clockOf(shard), endsAt, (ends) => write(ends, sendInTime))
    } catch (error) {
      if (!anyTime && error instanceof Refusal && error.outcome === 'unknown')
        await sleep(Math.max(0, endsAt - performance.now()))
      throw error
    }
  }

  function handleError(error: unknown, ctx?: InspectionContext) {
    guardHook((skipped) => ctx?.onError?.(skipped))(error)
    // Whoever asked has a hook, or a console, of its own: one word of it is enough where nobody has asked for two.
    if (onError || !ctx?.onError) toHost(error)
  }

  const count = createShardCount({
    given,
    read: (ctx) => command(['GET', key(0, 'shards')], key(0), ctx),
    claim: (shard: number, number: number, as: ClaimedAs) =>
      fenced(
        shard,
        (ends, run) => run(['EVAL', CLAIM_SHARDS, '1', prefixes[shard] as string, `${ends}`, `${number}`, as]),
        { anyTime: true },
      ),
    handleError,
  })

  return {
    client,
    deploymentId,
    commandTimeoutMs,
    now,
    command,
    fenced,
    shards: count.read,
    claimShards: count.claim,
    joinShards: count.join,
    heldShards: count.held,
    confirmShards: count.confirm,
    key,
    shardOf: async (userId, ctx) => shardOf(userId, await count.read(ctx)),
    time: now ? async () => now() : createStoreClock(async (ctx) => toMillis(await command(['TIME'], key(0), ctx))),
    onError: handleError,
  }
}
