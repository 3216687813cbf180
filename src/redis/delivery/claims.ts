/** The claims of mailboxes that connections of this node wait at: each by its number, by itself or with another call about its client. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { CommandKey } from '../../contract/delivery.js'
import { commandKey } from '../../contract/ids.js'
import { nextClaim } from './node-script.js'
import type { DeliveryRun } from './run.js'
import type { ClaimReply } from './script-claims.js'
import { CLAIM } from './scripts.js'
import type { LocalWaiter, Waiters } from './waiters.js'

interface ClaimsOptions {
  delivery: DeliveryRun
  waiters: Waiters
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  /** Whether what is claimed now could be handed over now. */
  hasRoom: () => boolean
  maxDeliveriesPerClient: number
  /** Takes what a claim comes to that has just been sent. */
  resume: (waiter: LocalWaiter) => void
}

export type Claims = ReturnType<typeof createClaims>

/** A claim that travels with another call about its client, which saves the mailbox a way to the store. */
export interface CarriedClaim {
  /** What the script is given; '' for none. */
  next_claim: string
  /** Is told what it came to, before whatever else the call waits for. */
  claimed(answer: ClaimReply): void
  /** Must be told the call. */
  sent(call: Promise<unknown>): void
}

const NO_CLAIM: CarriedClaim = { next_claim: '', claimed() {}, sent() {} }

export function createClaims(options: ClaimsOptions) {
  const { delivery, waiters, connections, hasRoom, maxDeliveriesPerClient, resume } = options

  /** The next claim of a mailbox that would make it now, and is given its answer by whoever sends it. */
  function carry(waiter: LocalWaiter): CarriedClaim {
    if (waiter.isUnanswered || waiter.isClaiming || !hasRoom() || !waiters.isWaiting(waiter)) return NO_CLAIM
    waiter.claim++
    waiter.isUnanswered = true
    waiter.isCalled = false
    let claimed: (answer: ClaimReply | undefined) => void = () => {}
    const carried = new Promise<ClaimReply | undefined>((resolve) => {
      claimed = resolve
    })
    return {
      next_claim: nextClaim(waiter.claim, waiter.token),
      claimed,
      sent(running) {
        waiter.carried = carried
        // Why it failed hears whoever made the call.
        const none = () => claimed(undefined)
        running.then(none, none)
        if (!waiter.isDraining) resume(waiter)
      },
    }
  }

  return {
    /** Claims the next command of the mailbox, or, where the answer to the last claim was lost, that one once more. */
    async claim(waiter: LocalWaiter): Promise<ClaimReply> {
      const { user_id, client_id, shard, token } = waiter
      if (!waiter.isUnanswered) waiter.claim++
      waiter.isUnanswered = true
      const about = { user: user_id, client: client_id, token, claim: waiter.claim }
      const { answer } = await delivery.run(CLAIM, shard, about)
      waiter.isUnanswered = false
      return answer
    },

    /** What became of the claim that travelled with another call; nothing where there was none, or it did not come through. */
    async takeCarried(waiter: LocalWaiter): Promise<ClaimReply | undefined> {
      const { carried } = waiter
      waiter.carried = null
      const answer = (await carried) ?? undefined
      if (answer !== undefined) waiter.isUnanswered = false
      return answer
    },

    /**
     * For what is said of a command: where its client waits here and has that in hand, the claim of the next. `current` is
     * the instance that the registry has named, if there is one.
     */
    after(command: CommandKey, current?: string): CarriedClaim {
      const waiter = waiters.find(command)
      if (!waiter || !(waiter.isMore || waiter.isCalled)) return NO_CLAIM
      const ref = commandKey(command)
      if (![...waiter.held].some((held) => held.ref === ref)) return NO_CLAIM
      if (connections && current !== waiter.instance_id) return NO_CLAIM
      return carry(waiter)
    },

    /** For the admission of a command: where its client waits here and could take it now, the claim of what comes first. */
    atOnce(client: { user_id: string; client_id: string }): CarriedClaim {
      const waiter = waiters.find(client)
      if (connections || !waiter || waiter.isDraining || waiter.held.size >= maxDeliveriesPerClient) return NO_CLAIM
      return carry(waiter)
    },
  }
}
