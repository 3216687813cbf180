/** What became of the attempts of this node, as the store is told it: by itself, or with what the client says next. */
import type { CommandKey } from '../../contract/delivery.js'
import { backoffMs } from '../../contract/delivery-rules.js'
import { commandKey } from '../../contract/ids.js'
import type { Claimed } from './attempts.js'
import type { CarriedClaim, Claims } from './claims.js'
import { createHandOvers } from './hand-overs.js'
import type { DeliveryRun } from './run.js'
import { CONCLUDE } from './scripts.js'
import type { Waiters } from './waiters.js'

interface OutcomesOptions {
  delivery: DeliveryRun
  waiters: Waiters
  claims: Claims
  ackTimeoutMs: number
  /** Told when something is to be done in `delayMs`. */
  nudge: (delayMs: number) => void
  onError: (error: unknown) => void
}

export type Outcomes = ReturnType<typeof createOutcomes>

/** What travels with a client's or a host's word about a command. */
interface CarriedOutcome extends Omit<CarriedClaim, 'sent'> {
  /** The attempt that was handed over, of which the store has not been told; '' for none. */
  handed_over: number | ''
  /** How many ms ago it was. */
  ago: number
  /** Must be told the call, which answers whether it counted. */
  sent(call: Promise<{ answer: boolean }>): void
}

export function createOutcomes({ delivery, waiters, claims, ackTimeoutMs, nudge, onError }: OutcomesOptions) {
  /** What the store could not be told yet. */
  const unrecorded = new Set<() => unknown>()
  const handOvers = createHandOvers(ackTimeoutMs)
  let closed = false

  return {
    /**
     * Says what became of an attempt, which was claimed at the local instant `begunAt`, until the store has it or nobody asks any
     * more.
     */
    conclude(claimed: Claimed, shard: number, outcome: 'handed_over' | 'rejected', begunAt: number): void {
      const { user_id, client_id, command_id, attempt } = claimed
      const command = { user: user_id, client: client_id, id: command_id, attempt }
      const endedAt = performance.now()
      const untilAt = endedAt + ackTimeoutMs
      const record = async () => {
        unrecorded.delete(record)
        const { next_claim, claimed: told, sent } = claims.after(claimed)
        const ago = Math.ceil(performance.now() - endedAt)
        const running = delivery.run(CONCLUDE, shard, { ...command, outcome, ago, next_claim }, told)
        sent(running)
        try {
          await running
        } catch (error) {
          // Left open, the attempt ends with its patience.
          if (performance.now() < untilAt) unrecorded.add(record)
          if (!closed) onError(error)
        }
      }
      const waiter = waiters.find(claimed)
      // Another node would give it up meanwhile.
      const isPrompt = endedAt - begunAt < ackTimeoutMs / 2
      // Where others wait, their claim travels with it.
      const isCarrier = waiter?.isMore || waiter?.isCalled
      if (closed || outcome === 'rejected' || !isPrompt || isCarrier) void record()
      else handOvers.add(commandKey(claimed), { attempt, shard, endedAt, tell: record })
      nudge(outcome === 'handed_over' ? ackTimeoutMs : backoffMs(attempt))
    },

    /** For what is said of a command: the claim of the next, and that it was handed over, where the store has not been told. */
    carriedAfter(command: CommandKey, current?: string): CarriedOutcome {
      const handOver = handOvers.take(commandKey(command))
      const { next_claim, claimed, sent } = claims.after(command, current)
      return {
        next_claim,
        handed_over: handOver?.attempt ?? '',
        ago: handOver ? Math.ceil(performance.now() - handOver.endedAt) : 0,
        claimed,
        sent(call) {
          sent(call)
          if (handOver) void call.then(({ answer }) => (answer ? undefined : handOver.tell()), handOver.tell)
        },
      }
    },

    /** Tells a shard of its hand-overs: before it looks for attempts whose patience is over. */
    tellHandOvers: (shard: number): Promise<void> => handOvers.tellAll(shard),

    /** Tries again what failed before. */
    pass(): void {
      for (const record of [...unrecorded]) void record()
    },

    /** Says what is left to say; what does not come through any more is no failure. */
    close(): Promise<void> {
      closed = true
      return handOvers.tellAll()
    },
  }
}
