/**
 * The number of shards of a deployment, as stored: read, claimed by the first writer, and restored if it was lost.
 *
 * A process without a configured number must not decide for one that has it. While it is idle it stores the default as
 * "open", which a process with a configured number replaces. Its first record makes the number final.
 */
import type { InspectionContext } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { beforeWrite } from './fence.js'
import { SHARDS_MAX } from './keys.js'
import { type StoreReply, WrongType } from './reply.js'

/** A reader checks the stored number again after this time, in the background, in ms. */
const TRUSTED_MS = 10_000

/**
 * How a number is claimed: `open` by a process without a configured number and without records; `given` by a process
 * with a configured number or with records, which replaces an open number; `default` makes an open number final.
 */
export type ClaimedAs = 'open' | 'given' | 'default'

/** Suffix of a stored number that is open. */
const OPEN = '?'

interface ShardCountOptions {
  /** The `shards` option, if set. */
  given: number | undefined
  /** Reads the number from shard 0. */
  read(ctx?: InspectionContext): Promise<StoreReply>
  /** Claims `count` and returns the number that `shard` holds now, with the suffix `?` if it is open. */
  claim(shard: number, count: number, as: ClaimedAs): Promise<StoreReply>
  handleError(error: unknown, ctx?: InspectionContext): void
}

interface ShardCount {
  /** Returns the number. @throws Refusal `unavailable` if it differs from the one that this process uses. */
  read(ctx?: InspectionContext): Promise<number>
  /** Returns the final number, and stores it if there is none: for writers of records. */
  claim(): Promise<number>
  /** Returns the number for a process without records: a number that was not configured stays open. */
  join(): Promise<number>
  /** Returns the number that this process uses: the one it claimed or joined last. Claims one otherwise. */
  held(): Promise<number>
  /** Restores the number in `shard` after it was lost. @throws Refusal if the shard has another one. */
  confirm(shard: number): Promise<void>
}

const INVALID = 'the stored number of shards is invalid: expected an integer from 1 to 64'

const conflict = (detail: string, cause?: unknown) => new Refusal('unavailable', detail, { cause, outcome: 'not_run' })

interface StoredCountOptions extends Pick<ShardCountOptions, 'read' | 'handleError'> {
  /** Returns a stored number. @throws Refusal if it is invalid or differs from the one that this process uses. */
  check(stored: StoreReply): number
  /** Returns the number to use if none is stored. */
  fallback(): number
}

/**
 * Creates a cached reader of the number in shard 0. It is read again in the background once it is older than
 * `TRUSTED_MS`.
 */
function createStoredCount({ read, check, fallback, handleError: onError }: StoredCountOptions) {
  let known: number | undefined
  let readAt = 0
  let isReading = false

  async function reread(ctx?: InspectionContext): Promise<number> {
    try {
      const stored = await read(ctx)
      // Not remembered: there is no writer so far, and the first one may use another number.
      if (stored === null) return fallback()
      return keep(check(stored))
    } catch (error) {
      if (!(error instanceof WrongType)) throw error
      onError(error, ctx)
      throw conflict(INVALID, error)
    }
  }

  // In the background: while shard 0 is down, readers of other shards must not wait for it.
  function recheck(): void {
    if (isReading || performance.now() - readAt < TRUSTED_MS) return
    isReading = true
    read()
      .then((stored) => {
        readAt = performance.now()
        if (String(stored) !== String(known)) known = undefined
      })
      .catch((error) => {
        readAt = performance.now()
        if (error instanceof WrongType) known = undefined
      })
      .finally(() => {
        isReading = false
      })
  }

  /** Remembers a number that was just read. */
  function keep(count: number): number {
    known = count
    readAt = performance.now()
    return count
  }

  return {
    keep,
    async read(ctx?: InspectionContext): Promise<number> {
      if (known === undefined) return reread(ctx)
      recheck()
      return known
    },
  }
}

export function createShardCount({ given, read, claim, handleError: onError }: ShardCountOptions): ShardCount {
  /** The final number that this process writes with: it determines where its records are. */
  let claimed: number | undefined
  /** The open number that this process uses until then. */
  let joined: number | undefined
  const stored = createStoredCount({ read, check, fallback: () => claimed ?? given ?? 1, handleError: onError })

  function check(reply: StoreReply, shard = 0): number {
    const count = Number(reply)
    if (reply === null || !Number.isSafeInteger(count) || count < 1 || count > SHARDS_MAX) throw conflict(INVALID)
    const own = claimed ?? given
    if (own !== undefined && own !== count)
      throw conflict(
        `the deployment has ${count} ${count === 1 ? 'shard' : 'shards'} (stored in shard ${shard}), but this process uses ${own}: give all its processes the same \`shards\``,
      )
    return count
  }

  async function claimIn(shard: number, as: ClaimedAs): Promise<{ count: number; isOpen: boolean }> {
    const reply = await claim(shard, claimed ?? given ?? 1, as).catch((error) => {
      if (!(error instanceof WrongType)) throw beforeWrite(error)
      onError(error)
      throw conflict(INVALID, error)
    })
    try {
      const text = String(reply)
      const isOpen = text.endsWith(OPEN)
      return { count: check(isOpen ? text.slice(0, -1) : reply, shard), isOpen }
    } catch (error) {
      // Two halves of one deployment use different numbers. Only an operator can resolve that.
      onError(error)
      throw error
    }
  }

  const ownWay = (): ClaimedAs => (given === undefined && claimed === undefined ? 'default' : 'given')

  async function claimForGood(): Promise<number> {
    if (claimed !== undefined) return claimed
    const { count } = await claimIn(0, ownWay())
    claimed = stored.keep(count)
    return count
  }

  async function join(): Promise<number> {
    if (given !== undefined || claimed !== undefined) return claimForGood()
    if (joined !== undefined) return joined
    const { count, isOpen } = await claimIn(0, 'open')
    stored.keep(count)
    if (isOpen) joined = count
    else claimed ??= count
    return count
  }

  return {
    read: stored.read,
    claim: claimForGood,
    join,
    held: async () => claimed ?? joined ?? claimForGood(),
    async confirm(shard) {
      joined = undefined
      if (claimed === undefined) await join()
      else await claimIn(0, ownWay())
      if (shard !== 0) await claimIn(shard, ownWay())
    },
  }
}
