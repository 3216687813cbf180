/** Plants many entries without waiting for each, and without more under way than a store takes at once. */
const BATCH = 200

export async function inBatches(count: number, plant: (i: number) => unknown): Promise<void> {
  for (let from = 0; from < count; from += BATCH)
    await Promise.all(Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => plant(from + i)))
}
