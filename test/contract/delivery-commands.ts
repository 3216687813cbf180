/** Commands, and the connections that they are handed to, for every test of a dispatcher. */
import { expect } from 'vitest'
import type { Command, DispatchInput } from '../../src/internal/contract/delivery-dispatch.js'

export const client = { user_id: 'ada', client_id: 'tab' }
export const first = { ...client, instance_id: 'i1' }
export const second = { ...client, instance_id: 'i2' }
export const key = (command_id: string) => ({ ...client, command_id })
export const command = (command_id: string, more: Partial<DispatchInput> = {}): DispatchInput => ({
  ...key(command_id),
  action: 'refresh',
  payload: { page: 1 },
  ...more,
})

/** Longest wait for a store and a machine that are busy; over memory everything happens within a few turns. */
const PATIENCE_MS = 10_000

/** Waits for what happens in another step, without a pause: yields until `check` passes, or fails with its last error. */
export async function eventually(check: () => unknown): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; ; ) {
    try {
      await check()
      return
    } catch (error) {
      if (performance.now() > end) throw error
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

/** A connection that keeps delivered commands; `answers` decides the result of each delivery. */
export function connection(answers: (command: Command, signal: AbortSignal) => unknown = () => undefined) {
  const received: Command[] = []
  const deliver = async (given: Command, { signal }: { signal: AbortSignal }) => {
    received.push(given)
    await answers(given, signal)
  }
  const ids = () => received.map(({ command_id }) => command_id)
  return { received, ids, deliver, got: (count: number) => eventually(() => expect(ids()).toHaveLength(count)) }
}
