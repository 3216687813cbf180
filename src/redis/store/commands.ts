/** Commands to a store, each bounded in time, and in number by waiting their turn: a store that stalls refuses nobody. */

import { onAbort } from '../../async/abort.js'
import { createSemaphore } from '../../async/semaphore.js'
import type { InspectionContext } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import type { Port } from './client.js'
import { type StoreReply, toError, toUnknownOutcome } from './reply.js'

/** Commands sent and not answered by the client: beyond these they wait here, where they can be taken back. */
const UNANSWERED_MAX = 1_000
/** Characters of commands that wait: they wait for seconds at most, and in that time no host means to say more. */
const WAITING_MAX = 64 * 1_024 * 1_024

/** Sends one command to the shard of `key`, and gives up after `withinMs`. */
export type Command = (
  args: string[],
  key: string,
  ctx: InspectionContext | undefined,
  withinMs: number,
) => Promise<StoreReply>

const unsent = (detail: string) => new Refusal('unavailable', detail, { outcome: 'not_run' })

export function createCommands(port: Pick<Port, 'ready' | 'send' | 'lostLinks'>): Command {
  // A permit is held until the client answers the command, however long ago whoever asked was told.
  const semaphore = createSemaphore(UNANSWERED_MAX, WAITING_MAX, () => port.ready())

  return (args, key, ctx, withinMs) =>
    new Promise((resolve, reject) => {
      if (ctx?.signal.aborted) return reject(ctx.signal.reason)
      if (port.ready() === null) return reject(unsent('the client is closed'))
      if (withinMs <= 0) return reject(unsent('its time was up before it was sent'))

      const endsAt = performance.now() + withinMs
      let isSent = false
      let timer: ReturnType<typeof setTimeout> | undefined
      let forget: (() => void) | undefined
      const done = () => {
        clearTimeout(timer)
        forget?.()
      }
      // Made when a client asks for it: few do, and it is the dearest part of a command.
      let taken: AbortController | undefined
      const signal = () => {
        taken ??= new AbortController()
        return taken.signal
      }
      const waiter = semaphore.acquire(
        args.reduce((sum, arg) => sum + arg.length, 0),
        () => {
          // Timers of one instant go off one after another: the first to give up makes no room for one whose time is up.
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
              // Sent again, it was refused: what was written on the lost link may have run.
              reject(port.lostLinks() === lost ? toError(error) : toUnknownOutcome(toError(error)))
            },
          )
        },
      )
      if (!waiter) return reject(unsent(`more than ${WAITING_MAX} characters of commands wait for the store`))

      const giveUp = (reason: unknown) => {
        semaphore.leave(waiter)
        reject(reason)
        taken?.abort(reason)
        done()
      }
      const late = () => {
        const outcome = isSent ? 'unknown' : 'not_run'
        giveUp(new Refusal('unavailable', `no answer within ${Math.ceil(withinMs)} ms`, { outcome }))
      }
      timer = setTimeout(() => {
        // A process that stood still for so long looks first at what the store has answered meanwhile.
        if (isSent) timer = setTimeout(late)
        else late()
      }, withinMs)
      // At once where the signal has aborted since, by a deadline that has passed while this was sent.
      forget = ctx && onAbort(ctx.signal, () => giveUp(ctx.signal.reason))
    })
}
