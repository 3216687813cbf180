/** For tests that count timers: what files before them have fetched keeps a timer of the platform's for as long as its connections live. */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1')

interface Dispatcher {
  destroy(): Promise<void>
}

/** Ends the connections that `fetch` keeps open in this process; the next one makes new ones. */
export async function endForeignTimers(): Promise<void> {
  const all = globalThis as unknown as Record<symbol, Dispatcher | undefined>
  const before = all[DISPATCHER]
  if (!before) return
  all[DISPATCHER] = new (before.constructor as new () => Dispatcher)()
  await before.destroy()
}
