/** Buckets of latency histograms. Imports nothing, so that followers can use it. */

/** Upper bounds of the buckets of a latency histogram, in ms; a last bucket has everything above. */
export const LATENCY_BOUNDS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
] as const

/** Returns the index of the bucket of a duration. */
export function bucketOf(ms: number): number {
  let bucket = 0
  while (ms > (LATENCY_BOUNDS_MS[bucket] ?? Number.POSITIVE_INFINITY)) bucket++
  return bucket
}

/** Returns counts of 0 for all buckets. */
export const emptyBuckets = (): number[] => [...LATENCY_BOUNDS_MS, 0].map(() => 0)
