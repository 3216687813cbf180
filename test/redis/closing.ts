import { onTestFinished } from 'vitest'

/** Closes `facilities` after the test: their loops would still run in the next tests. */
export function closedAfterTest<F extends { close(): Promise<unknown> }>(facilities: F): F {
  onTestFinished(async () => void (await facilities.close()))
  return facilities
}
