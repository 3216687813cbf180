/** What inspectors are asked with. */
import type { Ask } from '../contract/page.js'
import type { Deadline } from './deadline.js'

/** The signal is made when an inspector looks at it: most answer at once and never do. */
class InspectorAsk implements Ask {
  declare readonly signal: AbortSignal
  declare readonly report: (error: unknown) => void
  readonly #deadline: Deadline

  // An own property, so that a copy has it; with one getter for all, because an accessor of its own gives an object a
  // hidden class of its own, which outlives it and keeps with it all that the request came by.
  static readonly #SIGNAL: PropertyDescriptor = {
    enumerable: true,
    get(this: InspectorAsk) {
      return this.#deadline.signal
    },
  }

  constructor(deadline: Deadline, report: (error: unknown) => void) {
    this.#deadline = deadline
    Object.defineProperty(this, 'signal', InspectorAsk.#SIGNAL)
    // Whoever copies or prints what inspectors are given sees the signal alone.
    Object.defineProperty(this, 'report', { value: report })
  }
}

/** `report` hears of what an inspector passed over to be able to answer. */
export const createAsk = (deadline: Deadline, report: (error: unknown) => void): Ask =>
  new InspectorAsk(deadline, report)
