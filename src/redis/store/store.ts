/**
 * One deployment in a shared store, as its facilities and inspectors see it: commands with a timeout, in known shards.
 */
import type * as z from 'zod'
import { onAbort } from '../../internal/async/abort.js'
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import { createSemaphore } from '../../internal/async/semaphore.js'
import { sleep } from '../../internal/async/timer.js'
import {
  custom,
  defineOptions,
  func,
  hook,
  type Input,
  readOptions,
  timer,
  whole,
} from '../../internal/contract/options.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { localsOf, withConstants } from './arguments.js'
import { type Port, portOf, type RedisClient } from './client.js'
import { databaseOf } from './client-options.js'
import { createFence } from './fence.js'
import { checkDeploymentId, keyOf, SHARDS_MAX, shardOf, shardPrefix } from './keys.js'
import { isErrorReply, type StoreReply, toError, toUnknownOutcome } from './reply.js'
import { type ClaimedAs, createShardCount } from './shard-count.js'
import { scripts } from './store.lua'

// Commands to a store, with a timeout and a limit on concurrency. Beyond the limit commands wait rather than fail.

/** Maximum number of commands that are sent and unanswered. More commands wait here, where they can be cancelled. */
const UNANSWERED_MAX = 1_000
/**
 * Maximum number of characters of all waiting commands. They wait for seconds at most, so this is never reached in
 * normal use.
 */
const WAITING_MAX = 64 * 1_024 * 1_024

/** Sends one command to the shard of `key`, and times out after `withinMs`. */
type Command = (
  args: string[],
  key: string,
  ctx: InspectionContext | undefined,
  withinMs: number,
) => Promise<StoreReply>

const unsent = (detail: string) => new Refusal('unavailable', detail, { outcome: 'not_run' })

export function createCommands(port: Pick<Port, 'ready' | 'send' | 'lostLinks'>): Command {
  // A permit is held until the client settles the command, even if its caller has timed out long before.
  const semaphore = createSemaphore(UNANSWERED_MAX, WAITING_MAX, () => port.ready())

  return (args, key, ctx, withinMs) =>
    new Promise((resolve, reject) => {
      if (ctx?.signal.aborted) return reject(ctx.signal.reason)
      if (port.ready() === null) return reject(unsent('the client is closed'))
      if (withinMs <= 0) return reject(unsent('timed out before it was sent'))

      const endsAt = performance.now() + withinMs
      let isSent = false
      let timer: ReturnType<typeof setTimeout> | undefined
      let forget: (() => void) | undefined
      const done = () => {
        clearTimeout(timer)
        forget?.()
      }
      // Created only if the client asks for it: few clients do, and it is the most expensive part of a command.
      let taken: AbortController | undefined
      const signal = () => {
        taken ??= new AbortController()
        return taken.signal
      }
      const waiter = semaphore.acquire(
        args.reduce((sum, arg) => sum + arg.length, 0),
        () => {
          // Timers of the same instant fire one after another: a command that times out must not free a slot for one
          // that has timed out too.
          if (performance.now() >= endsAt) return false
          isSent = true
          const lost = port.lostLinks()
          port.send(args, key, signal).then(
            (reply) => {
              semaphore.release()
              done()
              resolve(reply)
            },
            (error) => {
              semaphore.release()
              done()
              // The client sent it again and that was rejected: the command sent over the lost connection may have run.
              reject(port.lostLinks() === lost ? toError(error) : toUnknownOutcome(toError(error)))
            },
          )
        },
      )
      if (!waiter) return reject(unsent(`too many commands are waiting (more than ${WAITING_MAX} characters)`))

      const giveUp = (reason: unknown) => {
        semaphore.leave(waiter)
        reject(reason)
        taken?.abort(reason)
        done()
      }
      const late = () => {
        const outcome = isSent ? 'unknown' : 'not_run'
        giveUp(new Refusal('unavailable', `no reply within ${Math.ceil(withinMs)} ms`, { outcome }))
      }
      timer = setTimeout(() => {
        // If the process was suspended, first process the replies that have arrived in the meantime.
        if (isSent) timer = setTimeout(late)
        else late()
      }, withinMs)
      // Runs immediately if the signal has aborted since, by a deadline that passed while the command was sent.
      forget = ctx && onAbort(ctx.signal, () => giveUp(ctx.signal.reason))
    })
}

// The store's clock for readers: read from time to time, and extrapolated with the local monotonic clock in between.

/** How long a reading is used, in ms: two clocks drift apart by far less than a millisecond in this time. */
const TRUSTED_MS = 10_000
/** A reading that took longer than this is too imprecise to be reused, in ms. */
const PROMPT_MS = 100
/** Maximum number of attempts: `TIME` goes to a node of the client's choice, which on a Cluster may be down. */
const TRIES = 3

/**
 * Creates a clock from `readTime`, which reads the time from the store. After the first reply, readers get a time even
 * while the store does not reply: reading its data fails by itself.
 */
export function createStoreClock(
  readTime: (ctx?: InspectionContext) => Promise<number>,
): (ctx?: InspectionContext) => Promise<number> {
  let offset: number | undefined
  let requestedAt = Number.NEGATIVE_INFINITY

  async function read(ctx: InspectionContext | undefined, tries: number): Promise<number> {
    const sentAt = performance.now()
    try {
      const time = await readTime(ctx)
      const heardAt = performance.now()
      if (heardAt - sentAt > PROMPT_MS) return time
      offset = time - heardAt
      requestedAt = heardAt
      return time
    } catch (error) {
      if (ctx?.signal.aborted) throw error
      if (offset !== undefined) return Math.floor(offset + performance.now())
      if (tries === 1) throw error
      return read(ctx, tries - 1)
    }
  }

  return async (ctx) => {
    const at = performance.now()
    return offset !== undefined && at - requestedAt < TRUSTED_MS ? Math.floor(offset + at) : read(ctx, TRIES)
  }
}

/** Options of every factory in `relayscope/redis`. */
export const StoreOptions = defineOptions({
  /** Your client of `redis` or `ioredis`. The library never closes it. */
  client: custom<RedisClient>('a client or Cluster of node-redis or ioredis', (value) => value !== undefined),
  /** Id of the deployment: `^[A-Za-z0-9_-]{1,64}$`. It is part of every key. */
  deploymentId: custom<string>('a string', (value) => value !== undefined),
  /**
   * Number of shards of the deployment, 1–64, fixed by the first record. Use the same number in all processes; a
   * process without this option uses the stored number. @default the stored number, else 1
   */
  shards: whole(SHARDS_MAX).optional(),
  /** Returns the current time in epoch ms. @default the store's own clock */
  now: func<() => number>().optional(),
  /** Timeout of one command in ms, including the time to connect. @default 2000 */
  // Less than the router's 5 s, so that a stalled store is reported as `unavailable` rather than as a timeout.
  commandTimeoutMs: timer(2_000),
  /**
   * Called with an error for each invalid stored value. If it throws, the error is ignored. `null` disables it.
   * @default console.error, except for requests of a router, which has its own hook
   */
  onError: hook<(error: unknown) => void>(),
})
/** Options of every factory in `relayscope/redis`. */
export interface StoreOptions extends Input<typeof StoreOptions> {}

/** Returns `schema` with `StoreOptions`, for a factory that opens its store itself. */
export const inStore = <S extends z.core.$ZodShape>(schema: z.ZodObject<S, z.core.$strict>): z.ZodObject =>
  defineOptions({ ...StoreOptions.shape, ...schema.shape })

export interface Store {
  readonly client: RedisClient
  readonly deploymentId: string
  /** Timeout of one command in ms, including the time to connect. */
  readonly commandTimeoutMs: number
  /** The injected clock, if any: scripts and readers use it instead of the store's. */
  readonly now: (() => number) | undefined
  /**
   * Sends one command to the shard of `key`, with a timeout. A command that was sent may still run later, if the store
   * stalls or the client resends it; only scripts with a fence do not.
   *
   * @throws Refusal `unavailable`, with `outcome`; `Late`, `WrongType`, `UnknownScript`; the signal's reason when it
   * aborts.
   */
  command(args: string[], key: string, ctx?: InspectionContext): Promise<StoreReply>
  /**
   * Sends a write by scripts that take `ends`: the time of the shard's clock after which they must not run. All its
   * commands share one timeout. An error with outcome `unknown` is thrown only once the write can no longer run,
   * because a command on a lost connection may still reach the store. With `anyTime` it is thrown immediately.
   */
  fenced(
    shard: number,
    send: (ends: number, command: (args: string[]) => Promise<StoreReply>) => Promise<StoreReply>,
    options?: { anyTime?: boolean },
  ): Promise<StoreReply>
  /**
   * Returns the number of shards, read from the store on first use. @throws Refusal `unavailable` if it differs from
   * `shards`.
   */
  shards(ctx?: InspectionContext): Promise<number>
  /** Returns the number of shards and stores it if there is none: for writers. */
  claimShards(): Promise<number>
  /** Returns the number of shards for an idle process: if it is not configured it stays open until the first record. */
  joinShards(): Promise<number>
  /** Returns the number of shards that this process uses now: the one it claimed or joined. */
  heldShards(): Promise<number>
  /** Restores the number of shards in `shard`. @throws Refusal `unavailable` if the shard has another one. */
  confirmShards(shard: number): Promise<void>
  /** Returns the shard of a user's records. */
  shardOf(userId: string, ctx?: InspectionContext): Promise<number>
  key(shard: number, ...parts: string[]): string
  /** Returns the time of the store's clock in epoch ms, or of the injected clock. */
  time(ctx?: InspectionContext): Promise<number>
  /** Reports a skipped value to the store's own `onError` and to the one of the request. */
  onError(error: unknown, ctx?: InspectionContext): void
}

const CLAIM_SHARDS = `${localsOf(['ends', 'number', 'as'], undefined)}${withConstants(scripts.claim_shards)}`

// It frees memory and uses none, so it also runs in a full store.
const RENEW_LEASES = `#!lua flags=allow-oom\n${withConstants(scripts.renew)}`
/** Time between two pages of leases that a process renews in a shard, in ms. */
const RENEW_MS = 10_000

const toMillis = (reply: StoreReply) => {
  const [seconds, micros] = [reply].flat()
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
}

/**
 * Creates a store.
 *
 * @param schema Schema of all options of the calling factory.
 * @throws RangeError, TypeError for invalid options; never because the store is down.
 */
export function createStore(options: StoreOptions, schema: z.ZodObject = StoreOptions): Store {
  const read = readOptions(schema, options) as z.output<typeof StoreOptions>
  const { client, now, onError, commandTimeoutMs, shards: given } = read
  const deploymentId = checkDeploymentId(read.deploymentId)
  const toHost = guardErrorHook(onError)
  const port = portOf(client)
  const prefixes = Array.from({ length: SHARDS_MAX }, (_, shard) =>
    shardPrefix(deploymentId, shard, databaseOf(client)),
  )
  const key = (shard: number, ...parts: string[]) => keyOf(prefixes[shard] as string, parts)
  const send = createCommands(port)
  const command = (args: string[], route: string, ctx?: InspectionContext) => send(args, route, ctx, commandTimeoutMs)

  // A script, because every master of a Cluster has its own clock.
  const fence = createFence(async (shard, endsAt) => {
    const prefix = prefixes[shard] as string
    const args = ['EVAL', withConstants(scripts.time), '1', prefix]
    return toMillis(await send(args, prefix, undefined, endsAt - performance.now()))
  }, port.kind.startsWith('ioredis'))
  const clockOf = (shard: number) => (port.kind.endsWith('cluster') ? shard : 0)

  const renewedAt = new Map<number, number>()
  /** Renews leases after a write: a process that writes keeps the records of its deployment. */
  function renewLeases(shard: number) {
    const at = performance.now()
    const before = renewedAt.get(shard)
    if (before !== undefined && at - before < RENEW_MS) return
    renewedAt.set(shard, at)
    const prefix = prefixes[shard] as string
    // What has just been written has a lease.
    if (before === undefined) return
    command(['EVAL', RENEW_LEASES, '1', prefix], prefix).catch((error) => {
      // A lost reply changes nothing: a later write renews again.
      if (isErrorReply(error)) handleError(error)
    })
  }

  const fenced: Store['fenced'] = async (shard, write, { anyTime = false } = {}) => {
    const endsAt = performance.now() + commandTimeoutMs
    const sendInTime = (args: string[]) => send(args, prefixes[shard] as string, undefined, endsAt - performance.now())
    try {
      const reply = await fence.run(clockOf(shard), endsAt, (ends) => write(ends, sendInTime))
      renewLeases(shard)
      return reply
    } catch (error) {
      if (!anyTime && error instanceof Refusal && error.outcome === 'unknown')
        await sleep(Math.max(0, endsAt - performance.now()))
      throw error
    }
  }

  function handleError(error: unknown, ctx?: InspectionContext) {
    guardHook((skipped) => ctx?.onError?.(skipped))(error)
    // The request has its own hook (or console): report once, unless the store has an `onError` of its own.
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
