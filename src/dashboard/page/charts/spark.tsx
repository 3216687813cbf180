/** A small line of what this tab has seen; where it was not looking there is a gap. */
import type { JSX } from 'preact'
import type { Sample } from '../samples.js'
import { countOf, timeOf } from '../words.js'

const WIDTH = 240
const HEIGHT = 36

export function Spark({ samples, name }: { samples: readonly Sample[]; name: string }): JSX.Element | null {
  const [first] = samples
  const last = samples.at(-1)
  if (!first || !last || samples.length < 5) return null
  const most = Math.max(1, ...samples.map(({ value }) => value))
  const span = Math.max(1, last.at - first.at)
  let path = ''
  samples.forEach(({ at, value }, i) => {
    const before = samples[i - 1]
    const x = ((at - first.at) / span) * WIDTH
    const y = HEIGHT - 1 - (value / most) * (HEIGHT - 2)
    path += `${before && at - before.at < 10_000 ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`
  })
  const least = Math.min(...samples.map(({ value }) => value))
  return (
    <figure class="spark">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${name}: ${countOf(least)} to ${countOf(most)}`}>
        <path d={path} />
      </svg>
      <figcaption>
        {name}, {countOf(least)} to {countOf(most)}: as this tab saw it since {timeOf(first.at)}
      </figcaption>
    </figure>
  )
}
