/** How numbers of very different size stand side by side: the root of each where one is far above the others. */
import { countOf } from '../words.js'

/** So many times the median is a number that would press all others to a hairline. */
const FAR = 20

export interface Scale {
  /** From 0 to 1. */
  share(value: number): number
  /** What the picture must say of itself. */
  readonly caption: string
}

export function scaleOf(values: readonly number[], unit: string): Scale {
  const most = Math.max(1, ...values)
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const isRoot = median > 0 && most / median > FAR
  return {
    share: (value) => (isRoot ? Math.sqrt(value / most) : value / most),
    caption: `at most ${countOf(Math.max(0, ...values))} ${unit}${isRoot ? ', square-root scale' : ''}`,
  }
}
