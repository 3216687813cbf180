import { onTestFinished } from 'vitest'

/** Closes `facilities` after the test: their loops would go on in the tests that follow. */
export function closedAfterTest<F extends { close(): Promise<unknown> }>(facilities: F): F {
  onTestFinished(async () => void (await facilities.close()))
  return facilities
}
