/**
 * How many shards a deployment has, as the store says it: read, claimed by the first writer, and restored where lost.
 *
 * A process that was given no number must not decide for one that was. While it is idle it stores the default as open:
 * whoever is given a number replaces an open one. Its first record makes the number final.
 */
import type { InspectionContext } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { beforeWrite } from './fence.js'
import { SHARDS_MAX } from './keys.js'
import { type StoreReply, WrongType } from './reply.js'

/** A reader asks again after this, beside its work. */
const TRUSTED_MS = 10_000

/**
 * How a number is claimed: as `open`, by a process that was given none and has no record yet; as `given`, by one that was
 * given it or has records by it, which replaces an open one; or as the `default`, which makes an open one final.
 */
export type ClaimedAs = 'open' | 'given' | 'default'

/** Behind a stored number that is open. */
const OPEN = '?'

interface ShardCountOptions {
  /** What the host says, if it does. */
  given: number | undefined
  /** What shard 0 holds. */
  read(ctx?: InspectionContext): Promise<StoreReply>
  /** What `shard` holds once `count` was claimed, with a `?` behind an open number. */
  claim(shard: number, count: number, as: ClaimedAs): Promise<StoreReply>
  handleError(error: unknown, ctx?: InspectionContext): void
}

interface ShardCount {
  /** @throws Refusal `unavailable` where it is another than was given or claimed */
  read(ctx?: InspectionContext): Promise<number>
  /** The same for good, and stores it where there is none yet: for whoever writes a record. */
  claim(): Promise<number>
  /** The number for a process that keeps no record yet: a number that it was not given stays open. */
  join(): Promise<number>
  /** What this process goes by: what it has claimed, or joined last; else it claims. */
  held(): Promise<number>
  /** `shard` did not hold the number that was claimed: gives it back what it has lost. @throws Refusal for another one */
  confirm(shard: number): Promise<void>
}

const INVALID = 'the stored number of shards is not a number from 1 to 64'

const conflict = (detail: string, cause?: unknown) => new Refusal('unavailable', detail, { cause, outcome: 'not_run' })

interface StoredCountOptions extends Pick<ShardCountOptions, 'read' | 'handleError'> {
  /** Returns a stored number. @throws Refusal for one that is invalid or that this process cannot go by */
  check(stored: StoreReply): number
  /** The number where none is stored. */
  fallback(): number
}

/** What shard 0 holds, which is read again in the background once it is older than `TRUSTED_MS`. */
function createStoredCount({ read, check, fallback, handleError: onError }: StoredCountOptions) {
  let known: number | undefined
  let readAt = 0
  let isReading = false

  async function reread(ctx?: InspectionContext): Promise<number> {
    try {
      const stored = await read(ctx)
      // Nothing stored: no writer yet. Not remembered, because the first one may come with another number.
      if (stored === null) return fallback()
      return keep(check(stored))
    } catch (error) {
      if (!(error instanceof WrongType)) throw error
      onError(error, ctx)
      throw conflict(INVALID, error)
    }
  }

  // What is stored now is looked at beside the work: a shard 0 that is away must not cost readers of the others anything.
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
  /** What this process writes by, for good: its records are where that number puts them. */
  let claimed: number | undefined
  /** An open number that it goes by until then. */
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
      // Two halves of one deployment: nobody but an operator can mend that.
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
