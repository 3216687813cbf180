/** Creates the context passed to inspectors. */

import type { Deadline } from '../async/deadline.js'
import type { InspectionContext, InspectionLimits } from '../contract/page.js'

// A symbol instead of a private field, so that a wrapper that inherits from the context, or a Proxy, finds it too.
const DEADLINE = Symbol('deadline')

/** The signal is created on first access: most inspectors return immediately and never read it. */
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

/** `limits` bound the cost of one request; `onError` is called for each record that an inspector skipped. */
export function createInspectionContext(
  deadline: Deadline,
  limits: InspectionLimits,
  onError: (error: unknown) => void,
): InspectionContext {
  const ctx = { limits } as InspectionContext
  // Not enumerable: a copy or a log of the context shows the limits and the signal only.
  Object.defineProperty(ctx, DEADLINE, { value: deadline })
  Object.defineProperty(ctx, 'onError', { value: onError })
  // An own property, so that copies have it; with one shared getter, because an accessor per object gives each a hidden
  // class that would keep the request alive.
  return Object.defineProperty(ctx, 'signal', SIGNAL)
}
