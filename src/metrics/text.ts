/** The two text formats in which families leave: OpenMetrics 1.0, and the older one of Prometheus. */
import type { MetricFamily, MetricSample } from './family.js'

/** A format by its content type, and what it is written with. */
interface Format {
  readonly type: string
  /** OpenMetrics says of a counter and of an info what they are, and where it ends. */
  readonly open: boolean
}

const OPEN_METRICS: Format = {
  type: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  open: true,
}
const PLAIN_TEXT: Format = { type: 'text/plain; version=0.0.4; charset=utf-8', open: false }

/** What each format puts behind the name of a sample. */
const SUFFIXES = { gauge: '', counter: '_total', info: '_info' } as const

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '"': '\\"' }
const escaped = (text: string) => text.replaceAll(/[\\\n"]/g, (found) => ESCAPES[found] as string)
// The older format knows no quotation mark to escape in a help.
const escapedHelp = (text: string, open: boolean) => (open ? escaped(text) : escaped(text).replaceAll('\\"', '"'))

function sampleLine(name: string, { labels, value }: MetricSample): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
}

function familyText({ name, type, unit, help, samples }: MetricFamily, open: boolean): string {
  if (samples.length === 0) return ''
  const sampled = name + SUFFIXES[type]
  // OpenMetrics names the family, the older format each of its samples.
  const named = open ? name : sampled
  return [
    `# HELP ${named} ${escapedHelp(help, open)}\n`,
    `# TYPE ${named} ${type === 'info' && !open ? 'gauge' : type}\n`,
    ...(open && unit !== null ? [`# UNIT ${named} ${unit}\n`] : []),
    ...samples.map((sample) => sampleLine(sampled, sample)),
  ].join('')
}

/** `families` in their order, each whole before the next. One without samples is left out. */
export const textOf = (families: readonly MetricFamily[], { open }: Format): string =>
  families.map((family) => familyText(family, open)).join('') + (open ? '# EOF\n' : '')

const QUALITY = /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/

/** One range of an `Accept` header: its type, the parameters that are not its weight, and that weight. */
function rangeOf(text: string) {
  const [type = '', ...given] = text.split(';').map((part) => part.trim().toLowerCase())
  const parameters = new Map(given.map((part) => part.split('=').map((side) => side.trim()) as [string, string]))
  const q = parameters.get('q') ?? '1'
  return { type, version: parameters.get('version'), quality: QUALITY.test(q) ? Number(q) : 0 }
}

/** The format for `accept`: OpenMetrics for who asks for it by name and wants the older one no more, else that one. */
export function formatFor(accept: string | null): Format {
  const ranges = (accept ?? '').split(',').map(rangeOf)
  const best = (type: string, version: string) =>
    Math.max(
      0,
      ...ranges
        .filter((range) => range.type === type && [undefined, version].includes(range.version?.replaceAll('"', '')))
        .map(({ quality }) => quality),
    )
  const open = best('application/openmetrics-text', '1.0.0')
  return open > 0 && open >= best('text/plain', '0.0.4') ? OPEN_METRICS : PLAIN_TEXT
}
