/** What inspectors are asked with. */

import type { Deadline } from '../async/deadline.js'
import type { InspectionContext, InspectionLimits } from '../contract/page.js'

// By name and not privately: a wrapper that inherits from the ask, or a Proxy around it, finds it too.
const DEADLINE = Symbol('deadline')

/** The signal is made when an inspector looks at it: most answer at once and never do. */
const SIGNAL: PropertyDescriptor & ThisType<InspectionContext & { readonly [DEADLINE]: Deadline }> = {
  configurable: true,
  enumerable: true,
  get() {
    return this[DEADLINE].signal
  },
  set(value: AbortSignal) {
    Object.defineProperty(this, 'signal', { value, configurable: true, enumerable: true, writable: true })
  },
}

/** `limits` bound what one request may cost; `onError` hears of what an inspector passed over to be able to answer. */
export function createInspectionContext(
  deadline: Deadline,
  limits: InspectionLimits,
  onError: (error: unknown) => void,
): InspectionContext {
  const ctx = { limits } as InspectionContext
  // Whoever copies or prints what inspectors are given sees the bounds and the signal alone.
  Object.defineProperty(ctx, DEADLINE, { value: deadline })
  Object.defineProperty(ctx, 'onError', { value: onError })
  // An own property, so that a copy has it; with one getter for all, because an accessor of its own gives an object a
  // hidden class of its own, which outlives it and keeps with it all that the request came by.
  return Object.defineProperty(ctx, 'signal', SIGNAL)
}
