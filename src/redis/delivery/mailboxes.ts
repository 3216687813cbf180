/** How the mailboxes that connections of this node wait at are drained, and what the node is told about them. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { CommandKey } from '../../contract/delivery.js'
import { backoffMs } from '../../contract/delivery-rules.js'
import { clientKey, commandKey } from '../../contract/ids.js'
import { type Claimed, type DeliveryAttempts, toClaimed } from './attempts.js'
import { createHandOvers } from './hand-overs.js'
import { nextClaim } from './node-script.js'
import type { DeliveryRun } from './run.js'
import type { ClaimReply } from './script-claims.js'
import { CLAIM, CONCLUDE } from './scripts.js'
import type { LocalWaiter, Waiters } from './waiters.js'

/** Steps of drains under way at once; the others wait for their turn. */
const STEPS_MAX = 200

export interface MailboxesOptions {
  delivery: DeliveryRun
  attempts: DeliveryAttempts
  waiters: Waiters
  ackTimeoutMs: number
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  /** Told when something is to be done in `delayMs`. */
  nudge: (delayMs: number) => void
  onError: (error: unknown) => void
}

export type Mailboxes = ReturnType<typeof createMailboxes>

/** A claim that travels with another call about its client, which saves the mailbox a way to the store. */
export interface CarriedClaim {
  /** What the script is given; '' for none. */
  next_claim: string
  /** Is told what it came to, before whatever else the call waits for. */
  claimed(answer: ClaimReply): void
  /** Must be told the call. */
  sent(call: Promise<unknown>): void
}

/** What travels with a client's or a host's word about a command. */
export interface Carried extends Omit<CarriedClaim, 'sent'> {
  /** The attempt that was handed over, of which the store has not been told; '' for none. */
  handed_over: number | ''
  /** Must be told the call, which answers whether it counted. */
  sent(call: Promise<{ answer: boolean }>): void
}

const NO_CLAIM: CarriedClaim = { next_claim: '', claimed() {}, sent() {} }

export function createMailboxes(options: MailboxesOptions) {
  const { delivery, attempts, waiters, ackTimeoutMs, connections, nudge, onError } = options
  const { isWaiting } = waiters
  /** Whose last step failed: the next pass calls them again. */
  const failed = new Set<LocalWaiter>()
  /** What became of attempts, as far as the store could not be told yet. */
  const unrecorded = new Set<() => unknown>()
  const handOvers = createHandOvers(ackTimeoutMs)
  const turns: (() => void)[] = []
  let steps = 0
  let closed = false

  /** Whether the waiter still speaks for its client. A fenced one is released: its instance attaches again if it returns. */
  async function isCurrent(waiter: LocalWaiter): Promise<boolean> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(waiter)
    } catch (error) {
      delivery.count('other', 'fence_unavailable')
      throw error
    }
    if (current === waiter.instance_id || !isWaiting(waiter)) return isWaiting(waiter)
    delivery.count('other', 'waiter_fenced')
    await waiters.leave(waiter)
    return false
  }

  /**
   * Says what became of an attempt, which was claimed at the local instant `begunAt`, until the store has it or nobody asks any
   * more.
   */
  function conclude(claimed: Claimed, shard: number, outcome: 'handed_over' | 'rejected', begunAt: number) {
    const { user_id, client_id, command_id, attempt } = claimed
    const endedAt = performance.now()
    const untilAt = endedAt + ackTimeoutMs
    const record = () => {
      unrecorded.delete(record)
      const claim = claimAfter(claimed)
      const ago = Math.ceil(performance.now() - endedAt)
      const about = {
        user: user_id,
        client: client_id,
        id: command_id,
        attempt,
        outcome,
        ago,
        next_claim: claim.next_claim,
      }
      const running = delivery.run(CONCLUDE, shard, about, claim.claimed)
      claim.sent(running)
      return running.then(
        () => {},
        (error) => {
          // Left open, the attempt ends with its patience.
          if (performance.now() < untilAt) unrecorded.add(record)
          if (!closed) onError(error)
        },
      )
    }
    const waiter = waiters.find(claimed)
    // Another node would give it up meanwhile.
    const isPrompt = endedAt - begunAt < ackTimeoutMs / 2
    // Where others wait, their claim travels with it.
    const isCarrier = waiter?.isMore || waiter?.isCalled
    if (closed || outcome === 'rejected' || !isPrompt || isCarrier) void record()
    else handOvers.add(commandKey(claimed), { attempt, shard, tell: record })
    nudge(outcome === 'handed_over' ? ackTimeoutMs : backoffMs(attempt))
  }

  /** Claims the next command of the mailbox, or, where the answer to the last claim was lost, that one once more. */
  async function claim(waiter: LocalWaiter) {
    const { user_id, client_id, shard, token } = waiter
    if (!waiter.isUnanswered) waiter.claim++
    waiter.isUnanswered = true
    const about = { user: user_id, client: client_id, token, claim: waiter.claim }
    const { answer } = await delivery.run(CLAIM, shard, about)
    waiter.isUnanswered = false
    return answer
  }

  /** What became of the claim that travelled with another call; nothing where there was none, or it did not come through. */
  async function takeCarried(waiter: LocalWaiter): Promise<ClaimReply | undefined> {
    const { carried } = waiter
    waiter.carried = null
    const answer = (await carried) ?? undefined
    if (answer !== undefined) waiter.isUnanswered = false
    return answer
  }

  /** The next claim of a mailbox that would make it now, and is given its answer by whoever sends it. */
  function carry(waiter: LocalWaiter): CarriedClaim {
    if (waiter.isUnanswered || steps >= STEPS_MAX || !isWaiting(waiter)) return NO_CLAIM
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
        if (!waiter.isDraining) call(waiter)
      },
    }
  }

  /**
   * For what is said of a command: where its client waits here and has just that in hand, the claim of the next. `current` is the
   * instance that the registry has named, if there is one.
   */
  function claimAfter(command: CommandKey, current?: string): CarriedClaim {
    const waiter = waiters.find(command)
    if (waiter?.held?.ref !== commandKey(command) || !(waiter.isMore || waiter.isCalled)) return NO_CLAIM
    if (connections && current !== waiter.instance_id) return NO_CLAIM
    return carry(waiter)
  }

  /** The same, and that it was handed over, where the store has not been told. */
  function carriedAfter(command: CommandKey, current?: string): Carried {
    const handOver = handOvers.take(commandKey(command))
    const { next_claim, claimed, sent } = claimAfter(command, current)
    return {
      next_claim,
      handed_over: handOver?.attempt ?? '',
      claimed,
      sent(call) {
        sent(call)
        if (handOver) void call.then(({ answer }) => (answer ? undefined : handOver.tell()), handOver.tell)
      },
    }
  }

  /** For the admission of a command: where its client waits here for nothing else, the claim of what comes first. */
  function claimAtOnce(client: { user_id: string; client_id: string }): CarriedClaim {
    const waiter = waiters.find(client)
    return connections || !waiter || waiter.isDraining ? NO_CLAIM : carry(waiter)
  }

  /** One command further; whether there may be another. */
  async function step(waiter: LocalWaiter): Promise<boolean> {
    const begunAt = performance.now()
    let answer = await takeCarried(waiter)
    if (answer === undefined) {
      if (!isWaiting(waiter) || !(await isCurrent(waiter))) return false
      answer = await claim(waiter)
    }
    if (answer === 'more') return true
    if (answer === 'empty') return false
    // `replaced` too may be old by now: the orders decide who is to wait.
    if (answer === 'missing' || answer === 'replaced') return waiters.reattach(waiter)
    if (waiter.isReturned) return false
    waiter.isMore = answer.behind > 0
    const claimed = toClaimed(waiter, answer)
    nudge(ackTimeoutMs)
    steps--
    takeTurn()
    await attempts.handOver(
      claimed,
      waiter.deliver,
      (outcome, isLate) => {
        if (isLate) delivery.count('other', 'late_outcome')
        else conclude(claimed, waiter.shard, outcome, begunAt)
      },
      (held) => {
        waiter.held = held
      },
    )
    waiter.held = null
    await turn()
    // Whatever has come since has called.
    return waiter.isMore || waiter.carried !== null
  }

  function takeTurn() {
    while (steps < STEPS_MAX && turns.length > 0) {
      steps++
      turns.shift()?.()
    }
  }

  /** Waits until fewer than the most steps are under way. A hand-over under way does not count as one. */
  function turn(): Promise<void> {
    return new Promise((resolve) => {
      turns.push(resolve)
      takeTurn()
    })
  }

  async function drain(waiter: LocalWaiter): Promise<void> {
    waiter.isDraining = true
    await turn()
    try {
      // What was claimed for one that was replaced meanwhile is handed over all the same.
      while ((waiter.isCalled && isWaiting(waiter)) || waiter.carried) {
        waiter.isCalled = false
        while ((isWaiting(waiter) || waiter.carried) && (await step(waiter)));
      }
    } catch (error) {
      if (isWaiting(waiter)) failed.add(waiter)
      onError(error)
    }
    steps--
    takeTurn()
    // In the same step as the last look at `isCalled`, or a call in between would be lost.
    waiter.isDraining = false
  }

  /** There is something in the mailbox, or may be. */
  function call(waiter: LocalWaiter) {
    waiter.isCalled = true
    if (!waiter.isDraining) void drain(waiter)
  }

  /** Waits again, and looks for what was missed. */
  async function restore(waiter: LocalWaiter) {
    try {
      if (await waiters.reattach(waiter)) call(waiter)
    } catch (error) {
      // Its next step finds out whether it still waits.
      failed.add(waiter)
      onError(error)
    }
  }

  return {
    call,
    carriedAfter,
    claimAtOnce,
    /** Tells a shard of its hand-overs: before it looks for attempts whose patience is over. */
    tellHandOvers: (shard: number) => handOvers.tellAll(shard),

    /** What the store of `shard`, or another node, has to say to this one. */
    notice(notice: string, shard: number) {
      const [kind, user_id, client_id, rest] = notice.split('\n') as [string, string, string, string]
      const client = { user_id, client_id }
      const waiter = waiters.find(client)
      if (kind === 'call') {
        if (waiter) call(waiter)
      } else if (kind === 'missing' || kind === 'replaced') {
        if (waiter?.token === rest) void restore(waiter)
      } else if (kind === 'held') {
        waiters.detachUnknown(user_id, client_id, rest, shard)
      } else attempts.applyNotice(kind, `${clientKey(client)}\n${rest}`)
    },

    /** The node's lease in `shard` had run out: whoever waits there says so again, and looks for what it missed. */
    renew: (shard: number) => waiters.each(shard, restore),

    /** Tries again what failed before. */
    pass() {
      for (const record of [...unrecorded]) void record()
      for (const waiter of [...failed]) {
        failed.delete(waiter)
        if (isWaiting(waiter)) call(waiter)
      }
    },

    /** Says what is left to say; what does not come through any more is no failure. */
    close(): Promise<void> {
      closed = true
      return handOvers.tellAll()
    },
  }
}
