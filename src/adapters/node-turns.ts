/**
 * Turns for what may wait: one in each round of the event loop, so that whoever has just come goes before. Node takes in
 * one connection a round.
 */
export function createTurns(): (act: () => void) => void {
  const waiting: (() => void)[] = []
  function next(): void {
    try {
      waiting[0]?.()
    } finally {
      // Also where a host survives what was thrown: the others would wait for good.
      waiting.shift()
      if (waiting.length > 0) setImmediate(next)
    }
  }
  return (act) => {
    if (waiting.push(act) === 1) setImmediate(next)
  }
}
