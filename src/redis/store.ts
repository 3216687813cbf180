/** One deployment in a shared store, as every facility and inspector of it sees it: bounded commands in known shards. */
import { guardHook } from '../contract/hook.js'
import type { Ask } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import { whenAborted } from './aborted.js'
import { portOf, type RedisClient } from './client.js'
import { createFence } from './fence.js'
import { checkDeploymentId, keyOf, SHARDS_MAX, shardOf, shardPrefix } from './keys.js'
import { type Reply, toError, WrongType } from './reply.js'
import { createStoreClock } from './store-clock.js'

/** Commands sent and not settled by the client: beyond these a stalled store would cost memory without end. */
const UNANSWERED_MAX = 1_000
/** Below the router's 5 s, so that a stalled store is `unavailable` and not only late. */
const COMMAND_TIMEOUT_MS = 2_000

/** What every factory of `relayscope/redis` takes. */
export interface StoreOptions {
  /** The host's own client of `redis` or `ioredis`; never closed by the library. */
  client: RedisClient
  /** `^[A-Za-z0-9_-]{1,64}$`; part of every key. */
  deploymentId: string
  /** Shards of the deployment, 1–64, fixed by the first writer. @default what is stored, else 1 */
  shards?: number | undefined
  /** Epoch ms. @default the store's own clock */
  now?: (() => number) | undefined
  /** Longest wait for one command, link included. @default 2000 */
  commandTimeoutMs?: number | undefined
  /** Told of stored values that are not what they should be. A throw in it changes nothing. */
  onError?: ((error: unknown) => void) | undefined
}

export interface Store {
  readonly client: RedisClient
  readonly deploymentId: string
  /** The injected clock, if any: with it scripts and readers do not ask the store's. */
  readonly now: (() => number) | undefined
  /** Longest wait for one command, and for one script with all that it takes. */
  readonly commandTimeoutMs: number
  /**
   * Sends one command to the shard of `key`, bounded in time and number. What was sent may be done later all the same,
   * by a store that stalls or a client that sends again: only a script that knows its end is not.
   *
   * @throws Refusal `unavailable`, with `outcome`; `Late`, `WrongType`, `UnknownScript`; the signal's reason when it aborts.
   */
  command(args: string[], key: string, ask?: Ask, withinMs?: number): Promise<Reply>
  /** The instant of the shard's clock for the local one `endsAt`, never later. @throws Refusal `unavailable`, not run */
  fence(shard: number, endsAt: number): Promise<number>
  /** The shard's clock was heard by the way. */
  heardTime(shard: number, time: number): void
  /** The number of shards, read from the store on first use. @throws Refusal `unavailable` where it differs. */
  shards(ask?: Ask): Promise<number>
  /** The same, and stores the number where there is none yet: for writers. */
  claimShards(): Promise<number>
  /** The shard of a user's records. */
  shardOf(userId: string, ask?: Ask): Promise<number>
  key(shard: number, ...parts: string[]): string
  /** The store's clock in epoch ms, or the injected one. */
  time(ask?: Ask): Promise<number>
  /** Reports what a reader skipped, to the store's own `onError` and to whoever asked. */
  report(error: unknown, ask?: Ask): void
}

const unsent = (detail: string) => new Refusal('unavailable', detail, { outcome: 'not_run' })

/** What failed before the write was sent, whatever became of the question itself. */
function beforeWrite(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.outcome === 'not_run') return error
  return new Refusal(error.code, error.detail, { cause: error, outcome: 'not_run' })
}

/** @throws RangeError, TypeError for options that cannot be; never for a store that is down. */
export function createStore(options: StoreOptions): Store {
  const { client, now, commandTimeoutMs = COMMAND_TIMEOUT_MS, onError } = options
  const deploymentId = checkDeploymentId(options.deploymentId)
  const tell = guardHook(onError)
  const given = options.shards
  if (given !== undefined && !(Number.isSafeInteger(given) && given >= 1 && given <= SHARDS_MAX))
    throw new RangeError(`shards must be a whole number from 1 to ${SHARDS_MAX}`)
  const port = portOf(client)
  const prefixes = Array.from({ length: SHARDS_MAX }, (_, shard) => shardPrefix(deploymentId, shard))
  const key = (shard: number, ...parts: string[]) => keyOf(prefixes[shard] as string, parts)
  let unanswered = 0
  let known: number | undefined

  function command(args: string[], routeKey: string, ask?: Ask, withinMs: number = commandTimeoutMs): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (ask?.signal.aborted) return reject(ask.signal.reason)
      if (unanswered >= UNANSWERED_MAX) return reject(unsent('too many unanswered commands'))
      const link = port.ready()
      if (link === null) return reject(unsent('the client is closed'))
      if (withinMs <= 0) return reject(unsent('no time left'))

      // Counted until the client settles it, however long ago the caller was told; a waiting one until it gives up.
      unanswered++
      let sent = false
      let isGivenUp = false
      // Made when a client asks for it: few do, and it is the dearest part of a command.
      let taken: AbortController | undefined
      const signal = () => {
        taken ??= new AbortController()
        return taken.signal
      }
      const giveUp = (reason: unknown) => {
        reject(reason)
        isGivenUp = true
        if (!sent) unanswered--
        taken?.abort(reason)
        done()
      }
      const timer = setTimeout(() => {
        const outcome = sent ? 'unknown' : 'not_run'
        giveUp(new Refusal('unavailable', `no answer within ${Math.ceil(withinMs)} ms`, { outcome }))
      }, withinMs)
      const done = () => {
        clearTimeout(timer)
        forget?.()
      }
      const forget = ask && whenAborted(ask.signal, () => giveUp(ask.signal.reason))

      const send = () => {
        if (isGivenUp) return
        sent = true
        const settled = () => {
          unanswered--
          done()
        }
        port.send(args, routeKey, signal).then(
          (reply) => {
            settled()
            resolve(reply)
          },
          (error) => {
            settled()
            reject(toError(error))
          },
        )
      }
      if (link) link.then(send)
      else send()
    })
  }

  const toMillis = (reply: Reply) => {
    const [seconds, micros] = [reply].flat()
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
  }
  // By a script, because `TIME` goes to a node of the client's choice, and every master has a clock of its own.
  const fence = createFence(async (shard, endsAt) => {
    const prefix = prefixes[shard] as string
    const asked = ['EVAL', `return redis.call('TIME')`, '1', prefix]
    return toMillis(await command(asked, prefix, undefined, endsAt - performance.now()))
  })
  const clockOf = (shard: number) => (port.kind.endsWith('cluster') ? shard : 0)

  function report(error: unknown, ask?: Ask) {
    guardHook((skipped) => ask?.report?.(skipped))(error)
    tell(error)
  }

  function settle(stored: Reply): number | undefined {
    if (stored === null) return undefined
    const count = Number(stored)
    if (!Number.isSafeInteger(count) || count < 1 || count > SHARDS_MAX)
      throw new Refusal('unavailable', 'the stored number of shards is none')
    if (given !== undefined && given !== count)
      throw new Refusal('unavailable', `the deployment has ${count} shards, not ${given}`)
    known = count
    return count
  }

  async function shards(ask?: Ask): Promise<number> {
    if (known !== undefined) return known
    // Nothing stored: no writer yet. Not remembered, because the first one may come with another number.
    try {
      return settle(await command(['GET', key(0, 'shards')], key(0), ask)) ?? given ?? 1
    } catch (error) {
      if (!(error instanceof WrongType)) throw error
      report(error, ask)
      throw new Refusal('unavailable', 'the stored number of shards is none', { cause: error })
    }
  }

  async function claimShards(): Promise<number> {
    if (known !== undefined) return known
    await command(['SET', key(0, 'shards'), String(given ?? 1), 'NX'], key(0))
    return shards()
  }

  return {
    client,
    deploymentId,
    now,
    commandTimeoutMs,
    command,
    async fence(shard, endsAt) {
      try {
        return await fence.at(clockOf(shard), endsAt)
      } catch (error) {
        throw beforeWrite(error)
      }
    },
    heardTime: (shard, time) => fence.heard(clockOf(shard), time),
    shards,
    claimShards,
    key,
    shardOf: async (userId, ask) => shardOf(userId, await shards(ask)),
    time: now ? async () => now() : createStoreClock(async (ask) => toMillis(await command(['TIME'], key(0), ask))),
    report,
  }
}
