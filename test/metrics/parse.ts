/** A strict reader of both text formats: whatever a scraper might stumble over is an error here. */

export interface ParsedFamily {
  type: string
  help: string
  unit?: string
  samples: { name: string; labels: Record<string, string>; value: number }[]
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:e[+-]?[0-9]+)?)$`)

const unescaped = (text: string) =>
  text.replaceAll(/\\(.)/g, (_, char: string) => ({ n: '\n', '"': '"', '\\': '\\' })[char] ?? fail(`\\${char}`))

function fail(what: string): never {
  throw new Error(`not valid: ${what}`)
}

function labelsOf(text: string | undefined): Record<string, string> {
  const labels: Record<string, string> = {}
  if (text === undefined) return labels
  if (text === '') fail('empty braces')
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const [, name, value, end] = LABEL.exec(text) ?? fail(`labels ${text}`)
    if (Object.hasOwn(labels, name as string)) fail(`label ${name} twice`)
    labels[name as string] = unescaped(value as string)
    if (end === '' && LABEL.lastIndex < text.length) fail(text)
  }
  return labels
}

/** Buckets come in the order of their bounds, never decrease, and end with `+Inf`, which is the count. */
function checkBuckets(name: string, samples: ParsedFamily['samples']) {
  let last = { bound: Number.NEGATIVE_INFINITY, value: 0 }
  for (const { name: sample, labels, value } of samples) {
    if (sample === `${name}_bucket`) {
      const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
      if (!(bound > last.bound) || value < last.value) fail(`${sample} ${JSON.stringify(labels)}`)
      last = { bound, value }
    } else if (labels.le !== undefined) fail(sample)
    else if (sample === `${name}_count`) {
      if (last.bound !== Number.POSITIVE_INFINITY || last.value !== value) fail(sample)
      last = { bound: Number.NEGATIVE_INFINITY, value: 0 }
    }
  }
}

/** What `text` says, by the names of its families as the metadata gives them. */
export function parseText(text: string, open: boolean): Map<string, ParsedFamily> {
  if (!text.endsWith('\n') || text.includes('\r')) fail('line ends')
  const lines = text.split('\n').slice(0, -1)
  if (open && lines.pop() !== '# EOF') fail('no end')
  const families = new Map<string, ParsedFamily>()
  const series = new Set<string>()
  let current: (ParsedFamily & { name: string }) | undefined
  for (const line of lines) {
    const meta = new RegExp(`^# (HELP|TYPE|UNIT) (${NAME}) (.*)$`).exec(line)
    if (meta) {
      const [, kind, name, rest] = meta as unknown as [string, string, string, string]
      if (kind === 'HELP') {
        if (families.has(name)) fail(`${name} is interleaved`)
        current = { name, type: '', help: unescaped(rest), samples: [] }
        families.set(name, current)
      } else if (current?.name !== name || current.samples.length > 0) fail(line)
      else if (kind === 'TYPE') current.type = rest
      else if (!open || !name.endsWith(`_${rest}`)) fail(line)
      else current.unit = rest
      continue
    }
    const [, name, labels, value] = SAMPLE.exec(line) ?? fail(line)
    if (!current) fail(line)
    const suffix = open ? ({ counter: '_total', info: '_info' }[current.type] ?? '') : ''
    const names = current.type === 'histogram' ? ['_bucket', '_count', '_sum'] : [suffix]
    if (!names.some((one) => name === current?.name + one)) fail(`${line} in ${current.name}`)
    const sample = { name: name as string, labels: labelsOf(labels), value: Number(value) }
    const key = JSON.stringify([name, Object.entries(sample.labels).sort()])
    if (series.has(key)) fail(`${line} twice`)
    series.add(key)
    if (current.type !== 'gauge' && sample.value < 0) fail(line)
    current.samples.push(sample)
  }
  for (const [name, { type, samples }] of families) {
    if (!['gauge', 'counter', 'histogram', ...(open ? ['info'] : [])].includes(type) || samples.length === 0) fail(name)
    if (type === 'histogram') checkBuckets(name, samples)
    if (!open && type === 'counter' && !name.endsWith('_total')) fail(name)
  }
  return families
}

/** Returns the value of one series, `undefined` if it is missing. */
export function seriesValue(
  families: Map<string, ParsedFamily>,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const wanted = JSON.stringify(Object.entries(labels).sort())
  return [...families.values()]
    .flatMap(({ samples }) => samples)
    .find((sample) => sample.name === name && JSON.stringify(Object.entries(sample.labels).sort()) === wanted)?.value
}
