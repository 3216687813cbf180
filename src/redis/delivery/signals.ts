/** The abort signals of commands, which exist until their commands end. */
import { Refusal } from '../../internal/refusal.js'

/** The signal of a command, created when first read, because it costs more than the rest of an attempt. */
interface CommandSignal {
  deadlineAt: number
  controller: AbortController | null
  /** Abort reason, set even if the signal was never read; `null` while the command is open. */
  reason: Refusal | null
}

const SOURCE = Symbol('source')

/** One getter for all: an accessor per object would give each a hidden class, which keeps the whole command in memory. */
const SIGNAL: PropertyDescriptor & ThisType<{ readonly [SOURCE]: CommandSignal }> = {
  configurable: true,
  enumerable: true,
  get() {
    const signal = this[SOURCE]
    signal.controller ??= new AbortController()
    if (signal.reason) signal.controller.abort(signal.reason)
    return signal.controller.signal
  },
}

/** The options of `deliver`. `signal` is an own enumerable property, so that `{ ...options }` and `{ signal }` work. */
export function deliverOptions(source: CommandSignal): { signal: AbortSignal } {
  const options = Object.defineProperty({}, SOURCE, { value: source })
  return Object.defineProperty(options, 'signal', SIGNAL) as { signal: AbortSignal }
}

/** The signals of commands, by reference. */
export function createSignals() {
  const signals = new Map<string, CommandSignal>()
  return {
    has: (ref: string) => signals.has(ref),
    get(ref: string, deadlineAt: number): CommandSignal {
      let known = signals.get(ref)
      if (!known) {
        known = { deadlineAt, controller: null, reason: null }
        signals.set(ref, known)
      }
      return known
    },
    /** Forgets the signal of a command that has ended in `state`, and aborts it unless the client settled the command. */
    end(state: string, ref: string) {
      const known = signals.get(ref)
      if (!known) return
      signals.delete(ref)
      if (state === 'expired') known.reason = new Refusal('timeout', 'the deadline of the command has passed')
      else if (state === 'cancelled') known.reason = new Refusal('cancelled')
      if (known.reason) known.controller?.abort(known.reason)
    },
    overdue: (now: number): string[] =>
      [...signals].filter(([, { deadlineAt }]) => deadlineAt <= now).map(([ref]) => ref),
  }
}
