import { setMaxListeners } from 'node:events'

/** Repeats `act` each `ms` until `signal` aborts. Its first error is printed, unless a store was slow. */
export function every(ms, signal, act) {
  let isShown = false
  const fail = (error) => {
    if (isShown || signal.aborted || error.code === 'unavailable') return
    isShown = true
    console.error(error)
  }
  const timer = setInterval(() => {
    Promise.resolve().then(act).catch(fail)
  }, ms)
  // Each client of a world listens.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
}
