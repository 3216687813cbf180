/** Commands to a store, with a timeout and a limit on concurrency. Beyond the limit commands wait rather than fail. */

import { onAbort } from '../../async/abort.js'
import { createSemaphore } from '../../async/semaphore.js'
import type { InspectionContext } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import type { Port } from './client.js'
import { type StoreReply, toError, toUnknownOutcome } from './reply.js'

/** Maximum number of commands that are sent and unanswered. More commands wait here, where they can be cancelled. */
const UNANSWERED_MAX = 1_000
/**
 * Maximum number of characters of all waiting commands. They wait for seconds at most, so this is never reached in
 * normal use.
 */
const WAITING_MAX = 64 * 1_024 * 1_024

/** Sends one command to the shard of `key`, and times out after `withinMs`. */
export type Command = (
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
