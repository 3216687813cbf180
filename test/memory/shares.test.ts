/** Shares of the entries of one process. */
import { describe, expect, it } from 'vitest'
import { createBrowserWindowRegistry } from '../../src/memory/browser-windows.js'
import { createConnectionRegistry } from '../../src/memory/connections/facility.js'
import { createContextRegistry } from '../../src/memory/contexts.js'
import { ExpiryQueue, unqueued } from '../../src/memory/table/expiry-queue.js'
import { connectionSharesBattery, reportedSharesBattery } from '../contract/shares.js'

connectionSharesBattery('memory', (options) => createConnectionRegistry(options))
reportedSharesBattery(
  'contexts in memory',
  createContextRegistry,
  (contexts) => (user_id, context_id) =>
    contexts.report({ context_id, user_id, client_id: 'c', client_type: 'web', status: 'idle' }),
)
reportedSharesBattery(
  'windows in memory',
  createBrowserWindowRegistry,
  (windows) => (user_id, window_id) => windows.report({ window_id, user_id, client_id: 'c' }),
)

describe('a sweep', () => {
  it('stops at the cost limit, but removes at least one entry', () => {
    const queue = new ExpiryQueue<ReturnType<typeof unqueued>>()
    for (let n = 0; n < 100; n++) queue.push(unqueued(), 0)
    const swept = (dragged: number) => {
      const before = queue.size
      const isDone = queue.sweep(
        0,
        () => {},
        () => dragged,
      )
      return [before - queue.size, isDone]
    }
    expect(swept(499)).toEqual([20, false])
    expect(swept(1_000_000)).toEqual([1, false])
    expect(swept(0)).toEqual([79, true])
  })
})
