/**
 * Runs the benchmarks one after the other, each in a process of its own and within a time, and prints one table of what they
 * have found, which it writes as Markdown too. `npm run bench` takes up to ten minutes; `npm run bench -- delivery` runs those
 * whose name holds the text, `--long` the sizes for the record, `--write <file>` says where the table goes, `--list` names them.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { AS_DATA, isMet, MARK, shown } from './report.mjs'

/** Seconds that all of them may take together, whatever each may; for the record an hour each. */
const TOGETHER_S = 600
const LONG_S = 3_600
/** What a benchmark begins with is its name; `args` are for a short run, `long` for the record. */
const BENCHES = [
  { name: 'dispatch', seconds: 90 },
  { name: 'adapters', seconds: 120 },
  { name: 'bus', node: ['--expose-gc'], seconds: 60 },
  { name: 'sse', args: ['relayscope'], long: [], needs: ['gcc'], seconds: 90 },
  { name: 'memory-pages', node: ['--expose-gc'], args: ['1000', '100000'], long: [], seconds: 40 },
  { name: 'questions', node: ['--expose-gc'], args: ['1000', '10000'], long: [], seconds: 180 },
  { name: 'metrics', seconds: 60 },
  { name: 'burst', args: ['128', '250'], long: [], seconds: 60 },
  { name: 'redis-pages', args: ['100000'], long: [], needs: ['redis-server', 'redis-cli'], seconds: 40 },
  { name: 'redis-delivery', args: ['2000'], long: [], needs: ['redis-server'], seconds: 60 },
  { name: 'store-instructions', args: ['250'], long: [], needs: ['redis-server', 'valgrind'], seconds: 120 },
  { name: 'store-calls', needs: ['redis-server'], seconds: 30 },
  { name: 'scaling', node: ['--expose-gc'], args: ['10000'], long: [], needs: ['redis-server'], seconds: 120 },
  { name: 'plugs', needs: ['redis-server'], seconds: 120 },
  { name: 'dashboard', needs: ['chromium'], seconds: 180 },
]

const isThere = (program) =>
  program === 'chromium'
    ? existsSync(process.env.CHROMIUM ?? '/usr/bin/chromium')
    : spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined

/** Ends a benchmark with all that it has started. */
function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** What a benchmark has found, and why it found no more. */
async function measure({ name, node = [], args = [], long = args, seconds, needs = [] }, isLong) {
  const missing = needs.filter((program) => !isThere(program))
  if (missing.length > 0) return { findings: [], failed: `needs ${missing.join(', ')}` }
  const file = fileURLToPath(new URL(`${name}.mjs`, import.meta.url))
  const left = Math.round(TOGETHER_S - performance.now() / 1_000)
  if (!isLong && left <= 0) return { findings: [], failed: `${TOGETHER_S} s were over` }
  const most = isLong ? LONG_S : Math.min(seconds, left)
  const child = spawn(process.execPath, [...node, file, ...(isLong ? long : args)], {
    env: { ...process.env, [AS_DATA]: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own: what it has started ends with it.
    detached: true,
  })
  const stop = () => end(child)
  process.once('exit', stop)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    stop()
  }, most * 1_000)
  const ended = new Promise((resolve) => child.once('close', resolve))
  const findings = []
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith(MARK)) findings.push(JSON.parse(line.slice(MARK.length)))
    else console.error(`  ${line}`)
  const code = await ended
  clearTimeout(timer)
  process.off('exit', stop)
  stop()
  if (isLate) return { findings, failed: `had not ended after ${most} s` }
  return { findings, failed: code === 0 ? null : `ended with ${code}` }
}

const VERDICTS = new Map([
  [true, 'met'],
  [false, '**missed**'],
  [null, '–'],
])

function rowsOf(name, { findings, failed }) {
  const rows = findings.map(({ what, goal, found, unit, better }) => {
    const wanted = goal === null ? '–' : `${better === 'lower' ? '≤' : '≥'} ${shown(goal, unit)}`
    // How much of its goal a figure is: above 1 is too much of what should be low.
    const ratio = goal === null || !Number.isFinite(found) ? '–' : (found / goal).toFixed(2)
    return [name, what, wanted, shown(found, unit), ratio, VERDICTS.get(isMet({ found, goal, better }))]
  })
  return failed === null ? rows : [...rows, [name, failed, '–', '–', '–', '**not measured**']]
}

function tableOf(rows) {
  const all = [['benchmark', 'what', 'goal', 'found', 'found / goal', 'verdict'], ...rows]
  const widths = all[0].map((_, i) => Math.max(...all.map((row) => row[i].length)))
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`
  return [line(all[0]), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...all.slice(1).map(line)].join(
    '\n',
  )
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    long: { type: 'boolean', default: false },
    write: { type: 'string', default: 'bench/results.md' },
    list: { type: 'boolean', default: false },
  },
})
const chosen = BENCHES.filter(({ name }) => positionals.length === 0 || positionals.some((text) => name.includes(text)))
if (chosen.length === 0)
  throw new RangeError(
    `no benchmark is called ${positionals.join(' ')}; there are ${BENCHES.map(({ name }) => name).join(', ')}`,
  )
if (values.list) {
  for (const { name } of chosen) console.log(name)
  process.exit(0)
}
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))

const rows = []
for (const bench of chosen) {
  console.error(`${bench.name} …`)
  rows.push(...rowsOf(bench.name, await measure(bench, values.long)))
}
const table = tableOf(rows)
const [{ model }] = cpus()
const place = `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${availableParallelism()} × ${model.trim()}${values.long ? ', the sizes for the record' : ', short sizes'}`
console.log(table)
writeFileSync(
  values.write,
  `# What the benchmarks have found\n\n${place}. A ratio (×) is to a peer of the same run; absolute figures are this machine's.\n\n${table}\n`,
)
console.error(`written: ${values.write}`)
process.exitCode = rows.some((row) => row[5] === '**not measured**') ? 1 : 0
