/** The results of the benchmarks as they are kept (`bench/results.json`) and shown (`docs/benchmarks.md`). */
import { isMet, shown } from './report.mjs'

const VERDICTS = new Map([
  [true, 'met'],
  [false, '**missed**'],
  [null, '–'],
])

/** The median of `values`; NaN if one could not be measured. */
function medianOf(values) {
  const sorted = values.map((value) => value ?? Number.NaN).sort((a, b) => a - b)
  const half = sorted.length / 2
  return (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2
}

/**
 * Merges the runs of one benchmark.
 *
 * @param {{ findings: import('./report.mjs').Finding[], checks: { what: string, count: number }[], failed: string | null }[]} runs
 */
export function mergeRuns(runs) {
  const found = new Map()
  const checked = new Map()
  for (const { findings, checks } of runs) {
    for (const { found: value, ...finding } of findings)
      found.set(finding.what, { ...finding, values: [...(found.get(finding.what)?.values ?? []), value] })
    for (const { what, count } of checks) checked.set(what, { what, count: (checked.get(what)?.count ?? 0) + count })
  }
  const failed = runs.find((run) => run.failed !== null)?.failed ?? null
  return { found: [...found.values()], checked: [...checked.values()], failed }
}

const rangeOf = (values, unit) =>
  values.length < 2 ? '–' : `${shown(Math.min(...values), '').trim()}–${shown(Math.max(...values), unit)}`

/** The rows of one benchmark: what it checked, its figures, and why it found no more. */
export function rowsOf(name, { found, checked, failed }) {
  const rows = found.map(({ what, goal, unit, better, values }) => {
    const median = medianOf(values)
    const wanted = goal === null ? '–' : `${better === 'lower' ? '≤' : '≥'} ${shown(goal, unit)}`
    const verdict = VERDICTS.get(isMet({ found: median, goal, better }))
    return [name, what, wanted, shown(median, unit), rangeOf(values, unit), verdict]
  })
  const checks = checked.map(({ what, count }) => [
    name,
    what,
    '–',
    `${count.toLocaleString('en')} checked`,
    '–',
    'right',
  ])
  return [...checks, ...rows, ...(failed === null ? [] : [[name, failed, '–', '–', '–', '**not measured**']])]
}

export const HEAD = ['benchmark', 'what', 'goal', 'median', 'range', 'verdict']

/** A Markdown table; `isAligned` for one that is read as text. */
export function tableOf(head, rows, { isAligned = false } = {}) {
  const widths = head.map((_, i) => (isAligned ? Math.max(...[head, ...rows].map((row) => row[i].length)) : 0))
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n')
}

/** The rows of one benchmark in the docs: those with a goal. Its checks are one row, and only a missed goal is marked. */
function documentRowsOf(name, result, note) {
  const answers = result.checked.reduce((sum, { count }) => sum + count, 0)
  const figures = rowsOf(name, { ...result, found: result.found.filter(({ goal }) => goal !== null), checked: [] }).map(
    ([, what, goal, median, range, verdict]) => [
      '',
      what,
      goal,
      verdict === 'met' ? median : `${median} ${verdict}`,
      range,
      '',
    ],
  )
  return [[name, 'answers that were checked', '–', answers.toLocaleString('en'), '–', note], ...figures]
}

/** `docs/benchmarks.md`: all results in one table, with the machine and the day of each. */
export function benchmarksDocument(results) {
  const measured = Object.values(results).map(({ place }) => place)
  const places = [...new Set(measured)]
  const noteOf = (place) => String.fromCharCode(97 + places.indexOf(place))
  const rows = Object.entries(results).flatMap(([name, result]) => documentRowsOf(name, result, noteOf(result.place)))
  return `# Benchmarks

What did the benchmarks find, and on which machine? \`npm run bench -- --write\` measures again and regenerates this page;
\`npm run bench -- --write --runs 3 delivery\` measures the benchmarks with that name three times and keeps the other rows.
What the figures are for: [scaling and performance](scaling.md).

A ratio (×) is to a peer that took turns with it in the same run. Absolute figures hold for the machine of their row. The
range is over runs. A goal that is not met is marked. Each benchmark checks its answers before or while it measures; with a
wrong one it fails and has no figures. What it prints without a goal is not kept here.

${tableOf(['benchmark', 'what', 'goal', 'median', 'range', 'when'], rows)}

${places.map((place) => `- ${noteOf(place)}: ${place}`).join('\n')}
`
}
