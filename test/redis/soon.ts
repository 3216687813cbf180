/** Patience with another process or node, in real time. */
import { vi } from 'vitest'

/** Waits until `check` passes; fails with its last error. */
export const soon = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 30_000, interval: 10 })
