/** How many shards a deployment has, as the store says it: read, claimed by the first writer, and restored where lost. */
import type { Ask } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { beforeWrite } from './fence.js'
import { SHARDS_MAX } from './keys.js'
import { type StoreReply, WrongType } from './reply.js'

/** A reader asks again after this, beside its work. */
const TRUSTED_MS = 10_000

interface ShardCountOptions {
  /** What the host says, if it does. */
  given: number | undefined
  /** What shard 0 holds. */
  read(ask?: Ask): Promise<StoreReply>
  /** What `shard` holds, where it holds nothing once it has been given `count`. */
  claim(shard: number, count: number): Promise<StoreReply>
  handleError(error: unknown, ask?: Ask): void
}

interface ShardCount {
  /** @throws Refusal `unavailable` where it is another than was given or claimed */
  read(ask?: Ask): Promise<number>
  /** The same, and stores it where there is none yet. */
  claim(): Promise<number>
  /** `shard` did not hold the number that was claimed: gives it back what it has lost. @throws Refusal for another one */
  confirm(shard: number): Promise<void>
}

export function createShardCount({ given, read, claim, handleError: onError }: ShardCountOptions): ShardCount {
  /** What this process writes by, for good: its records are where that number puts them. */
  let claimed: number | undefined
  let known: number | undefined
  let readAt = 0
  let isReading = false

  const conflict = (detail: string, cause?: unknown) =>
    new Refusal('unavailable', detail, { cause, outcome: 'not_run' })

  function check(stored: StoreReply, shard = 0): number {
    const count = Number(stored)
    if (stored === null || !Number.isSafeInteger(count) || count < 1 || count > SHARDS_MAX)
      throw conflict('the stored number of shards is not a number from 1 to 64')
    const own = claimed ?? given
    if (own !== undefined && own !== count)
      throw conflict(`shard ${shard} belongs to ${count} shards, not to the ${own} of this process: see \`shards\``)
    return count
  }

  async function reread(ask?: Ask): Promise<number> {
    try {
      const stored = await read(ask)
      // Nothing stored: no writer yet. Not remembered, because the first one may come with another number.
      if (stored === null) return claimed ?? given ?? 1
      known = check(stored)
      readAt = performance.now()
      return known
    } catch (error) {
      if (!(error instanceof WrongType)) throw error
      onError(error, ask)
      throw conflict('the stored number of shards is not a number from 1 to 64', error)
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

  async function claimIn(shard: number): Promise<number> {
    const stored = await claim(shard, claimed ?? given ?? 1).catch((error) => {
      if (!(error instanceof WrongType)) throw beforeWrite(error)
      onError(error)
      throw conflict('the stored number of shards is not a number from 1 to 64', error)
    })
    try {
      return check(stored, shard)
    } catch (error) {
      // Two halves of one deployment: nobody but an operator can mend that.
      onError(error)
      throw error
    }
  }

  return {
    async read(ask) {
      if (known === undefined) return reread(ask)
      recheck()
      return known
    },
    async claim() {
      if (claimed !== undefined) return claimed
      const count = await claimIn(0)
      known = count
      readAt = performance.now()
      claimed = count
      return count
    },
    async confirm(shard) {
      await claimIn(0)
      if (shard !== 0) await claimIn(shard)
    },
  }
}
