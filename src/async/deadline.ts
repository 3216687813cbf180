/** One deadline per request: aborts pending work and rejects work that ignores the abort. */

/** The abort reason used when a deadline passes. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'

  constructor() {
    super('The request deadline has passed')
  }
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return value !== null && typeof value === 'object' && typeof (value as PromiseLike<T>).then === 'function'
}

/**
 * The deadline of one request. The signal is created on first use, or when work continues past the event-loop turn in
 * which it started: a response that is available immediately needs neither a signal nor a timer.
 */
export class Deadline {
  readonly #endsAt: number
  readonly #request: { readonly signal: AbortSignal }
  #controller: AbortController | undefined
  /** To make the signal; later, to abort it. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #forget = () => {}
  #waiting: (() => void)[] = []
  #over = false

  /** `ms` from now, which the end of the client brings forward. */
  constructor(ms: number, request: { readonly signal: AbortSignal }) {
    this.#endsAt = performance.now() + ms
    this.#request = request
  }

  /** Aborted when the deadline passes or the client goes away. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // Stored before arming: if the client has already disconnected, waiters read this signal immediately.
      this.#arm(this.#controller)
    }
    // Work that does not let the event loop turn keeps the timer from telling.
    if (this.#hasPassed()) this.#controller.abort(new DeadlinePassed())
    return this.#controller.signal
  }

  /**
   * Returns `work`, or rejects with the signal's reason once it aborts. Work that settles because of the abort wins: an
   * aggregate that checks the signal can still return a partial result. Work that blocks past the deadline without
   * checking is late.
   */
  race<T>(work: T | PromiseLike<T>): T | Promise<T> {
    const isLate = () => !this.#controller?.signal.aborted && this.#hasPassed()
    if (!isThenable(work)) {
      if (isLate()) throw this.signal.reason
      return work
    }
    return new Promise<T>((resolve, reject) => {
      work.then((value) => (isLate() ? reject(this.signal.reason) : resolve(value)), reject)
      // One macrotask of grace, so that work that settles in response to the abort is still used.
      this.#whenEnded(() => setTimeout(reject, 0, this.signal.reason))
    })
  }

  /** Ends the timer; the signal stays as it is. */
  clear(): void {
    this.#over = true
    clearTimeout(this.#timer)
    this.#forget()
  }

  #hasPassed(): boolean {
    return !this.#over && performance.now() >= this.#endsAt
  }

  #whenEnded(act: () => void): void {
    if (this.#controller) {
      const { signal } = this.#controller
      if (signal.aborted) act()
      else signal.addEventListener('abort', act, { once: true })
    } else if (!this.#over) {
      this.#waiting.push(act)
      this.#timer ??= setTimeout(() => this.signal, 0)
    }
  }

  #arm(armed: AbortController): void {
    if (this.#over) return
    clearTimeout(this.#timer)
    for (const act of this.#waiting) armed.signal.addEventListener('abort', act, { once: true })
    const client = this.#request.signal
    const leave = () => armed.abort(client.reason)
    if (client.aborted) leave()
    else client.addEventListener('abort', leave, { once: true })
    this.#forget = () => client.removeEventListener('abort', leave)
    this.#timer = setTimeout(() => armed.abort(new DeadlinePassed()), this.#endsAt - performance.now())
  }
}
