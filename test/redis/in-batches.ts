/** Creates many entries concurrently, without more in progress than a store accepts at the same time. */
const BATCH = 200

export async function inBatches(count: number, plant: (i: number) => unknown): Promise<void> {
  for (let from = 0; from < count; from += BATCH)
    await Promise.all(Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => plant(from + i)))
}
