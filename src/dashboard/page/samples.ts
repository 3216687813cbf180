/** What this tab has seen of a number: at most ten minutes of it, lost with the tab. */

export interface Sample {
  readonly at: number
  readonly value: number
}

const KEPT = 300
const series = new Map<string, Sample[]>()

/** Adds what was seen at `at`, once, and answers all that was seen. */
export function sampled(name: string, at: number | null, value: number | null | undefined): readonly Sample[] {
  const samples = series.get(name) ?? []
  series.set(name, samples)
  if (at === null || value == null || samples.at(-1)?.at === at) return samples
  samples.push({ at, value })
  if (samples.length > KEPT) samples.shift()
  return samples
}

/** Of another key another deployment may be seen. */
export const forgetSamples = () => series.clear()
