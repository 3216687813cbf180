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

/**
 * A deadline of `ms` from now, which the end of the client brings forward. Signal and timer are made when somebody
 * looks: an answer that is at hand at once needs neither.
 */
export function startDeadline(ms: number, request: { readonly signal: AbortSignal }): Deadline {
  const startedAt = performance.now()
  let controller: AbortController | undefined
  let disarm = () => {}
  let over = false

  function arm(): AbortController {
    const armed = new AbortController()
    if (over) return armed
    const client = request.signal
    const leave = () => armed.abort(client.reason)
    if (client.aborted) leave()
    else client.addEventListener('abort', leave, { once: true })
    const left = ms - (performance.now() - startedAt)
    const timer = setTimeout(() => armed.abort(new DeadlinePassed()), left)
    disarm = () => {
      clearTimeout(timer)
      client.removeEventListener('abort', leave)
    }
    return armed
  }

  function signal(): AbortSignal {
    controller ??= arm()
    return controller.signal
  }

  return {
    get signal() {
      return signal()
    },
    settle<T>(work: T | PromiseLike<T>): T | Promise<T> {
      if (!isThenable(work)) return work
      const ending = signal()
      return new Promise<T>((resolve, reject) => {
        work.then(resolve, reject)
        // One macrotask of grace: what settles in answer to the abort has been heard by then.
        const give = () => setTimeout(reject, 0, ending.reason)
        if (ending.aborted) give()
        else ending.addEventListener('abort', give, { once: true })
      })
    },
    clear() {
      over = true
      disarm()
    },
  }
}
