/** One deadline for all that a request does: it aborts what is under way and ends what does not listen. */

/** The reason with which a signal of ours aborts when time is up. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'
}

export interface Deadline {
  /** Aborted when the deadline passes or the client goes away. */
  readonly signal: AbortSignal
  /**
   * `work`, or a rejection with the signal's reason once it aborts. Work that settles because of the abort wins: an
   * aggregate that listens to the signal can still answer with what it has.
   */
  settle<T>(work: T | PromiseLike<T>): T | Promise<T>
  /** Ends the timer; the signal stays as it is. */
  clear(): void
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return value !== null && typeof value === 'object' && typeof (value as PromiseLike<T>).then === 'function'
}

/** A deadline of `ms` from now, which `client` (the request's own signal) brings forward. */
export function startDeadline(ms: number, client: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  const { signal } = controller
  const leave = () => controller.abort(client?.reason)
  if (client?.aborted) leave()
  else client?.addEventListener('abort', leave, { once: true })
  const timer = setTimeout(() => controller.abort(new DeadlinePassed()), ms)
  return {
    signal,
    settle<T>(work: T | PromiseLike<T>): T | Promise<T> {
      if (!isThenable(work)) return work
      return new Promise<T>((resolve, reject) => {
        work.then(resolve, reject)
        // One macrotask of grace: what settles in answer to the abort has been heard by then.
        const give = () => setTimeout(reject, 0, signal.reason)
        if (signal.aborted) give()
        else signal.addEventListener('abort', give, { once: true })
      })
    },
    clear() {
      clearTimeout(timer)
      client?.removeEventListener('abort', leave)
    },
  }
}
