/**
 * Runs the benchmarks one after the other, each in a process of its own and within a time, and prints one table of what they
 * have found. `npm run bench` takes about twenty minutes; `npm run bench -- delivery` runs those whose name holds the text,
 * `--long` the sizes for the record, `--runs N` each N times for a range, `--list` names them. `--write` keeps the results in
 * `bench/results.json` and `docs/benchmarks.md`; rows of benchmarks that were not run stay. `--note` says what else the
 * machine did.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { CHROMIUM } from './peers.mjs'
import { AS_DATA, CHECKED, MARK } from './report.mjs'
import { benchmarksDocument, HEAD, mergeRuns, rowsOf, tableOf } from './results.mjs'

/** Seconds that all of them may take together, whatever each may; for the record an hour each. */
const TOGETHER_S = 1_500
const LONG_S = 3_600
/** What a benchmark begins with is its name; `args` are for a short run, `long` for the record. */
const BENCHES = [
  { name: 'dispatch', seconds: 90 },
  { name: 'inputs', seconds: 60 },
  { name: 'adapters', seconds: 120 },
  { name: 'bus', node: ['--expose-gc'], seconds: 60 },
  { name: 'sse', args: ['relayscope'], long: [], needs: ['gcc'], seconds: 150 },
  { name: 'storm', seconds: 180 },
  { name: 'start', seconds: 120 },
  { name: 'unasked', seconds: 60 },
  { name: 'flight-recorder', needs: ['redis-server'], seconds: 240 },
  { name: 'memory-pages', node: ['--expose-gc'], args: ['1000', '100000'], long: [], seconds: 40 },
  { name: 'questions', node: ['--expose-gc'], args: ['1000', '10000'], long: [], seconds: 240 },
  {
    name: 'answers',
    node: ['--expose-gc', '--max-old-space-size=8000'],
    args: ['--memory', '1000,10000', '--redis', '1000,10000'],
    long: [],
    needs: ['redis-server'],
    seconds: 240,
  },
  { name: 'operators', node: ['--expose-gc'], needs: ['redis-server'], seconds: 180 },
  { name: 'write-path', seconds: 60 },
  { name: 'metrics', seconds: 60 },
  { name: 'burst', args: ['128', '250'], long: [], seconds: 60 },
  { name: 'redis-pages', args: ['100000'], long: [], needs: ['redis-server', 'redis-cli'], seconds: 40 },
  { name: 'redis-delivery', args: ['2000'], long: [], needs: ['redis-server'], seconds: 120 },
  { name: 'store-instructions', args: ['250'], long: [], needs: ['redis-server', 'valgrind'], seconds: 240 },
  { name: 'scaling', node: ['--expose-gc'], args: ['10000'], long: [], needs: ['redis-server'], seconds: 120 },
  { name: 'deployment', node: ['--expose-gc'], needs: ['redis-server'], seconds: 120 },
  { name: 'plugs', needs: ['redis-server'], seconds: 120 },
  { name: 'dashboard', needs: ['chromium'], seconds: 240 },
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    long: { type: 'boolean', default: false },
    runs: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    note: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
})
const RUNS = Number(values.runs)
/** Results that are kept may take longer: they are measured rarely, and the machine may be busy. */
const TIMEOUT_FACTOR = values.write ? 4 : 1
if (!Number.isInteger(RUNS) || RUNS < 1 || RUNS > 100) throw new RangeError('--runs must be a number from 1 to 100')

const isThere = (program) =>
  program === 'chromium'
    ? existsSync(CHROMIUM)
    : spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined

/** Ends a benchmark with all that it has started. */
function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** What a benchmark has found and checked, and why it found no more. */
async function measure({ name, node = [], args = [], long = args, seconds, needs = [] }, isLong) {
  const missing = needs.filter((program) => !isThere(program))
  if (missing.length > 0) return { findings: [], checks: [], failed: `needs ${missing.join(', ')}` }
  const file = fileURLToPath(new URL(`${name}.mjs`, import.meta.url))
  const left = Math.round(TOGETHER_S * RUNS * TIMEOUT_FACTOR - performance.now() / 1_000)
  if (!isLong && left <= 0) return { findings: [], checks: [], failed: `${TOGETHER_S} s were over` }
  const most = isLong ? LONG_S : Math.min(seconds * TIMEOUT_FACTOR, left)
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
  const checks = []
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith(MARK)) findings.push(JSON.parse(line.slice(MARK.length)))
    else if (line.startsWith(CHECKED)) checks.push(JSON.parse(line.slice(CHECKED.length)))
    else console.error(`  ${line}`)
  const code = await ended
  clearTimeout(timer)
  process.off('exit', stop)
  stop()
  if (isLate) return { findings, checks, failed: `had not ended after ${most} s` }
  return { findings, checks, failed: code === 0 ? null : `ended with ${code}` }
}

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

const [{ model }] = cpus()
const sizes = values.long ? 'the sizes for the record' : 'short sizes'
const runs = RUNS === 1 ? 'one run' : `${RUNS} runs`
const host = `Node ${process.versions.node}, ${availableParallelism()} × ${model.trim()}`
const place = [new Date().toISOString().slice(0, 10), host, sizes, runs, values.note].filter(Boolean).join(', ')
/** Keeps what was measured, of one benchmark after the other: what could not be measured replaces no figures. */
function keep(name, result) {
  if (result.failed !== null) return
  const path = (file) => new URL(file, import.meta.url)
  const all = { ...JSON.parse(readFileSync(path('results.json'), 'utf8')), [name]: result }
  const ordered = Object.fromEntries(BENCHES.flatMap(({ name }) => (all[name] ? [[name, all[name]]] : [])))
  writeFileSync(path('results.json'), JSON.stringify(ordered, null, 1))
  spawnSync('npx', ['biome', 'format', '--write', path('results.json')])
  writeFileSync(path('../docs/benchmarks.md'), benchmarksDocument(ordered))
  console.error('written: bench/results.json, docs/benchmarks.md')
}

const results = {}
for (const bench of chosen) {
  const each = []
  const startedAt = performance.now()
  for (let run = 1; run <= RUNS; run++) {
    console.error(RUNS === 1 ? `${bench.name} …` : `${bench.name}, run ${run} of ${RUNS} …`)
    each.push(await measure(bench, values.long))
  }
  console.error(`${bench.name}: ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  results[bench.name] = { place, ...mergeRuns(each) }
  if (values.write) keep(bench.name, results[bench.name])
}
const rows = Object.entries(results).flatMap(([name, result]) => rowsOf(name, result))
console.log(tableOf(HEAD, rows, { isAligned: true }))
console.log(place)
process.exitCode = rows.some((row) => row.at(-1) === '**not measured**') ? 1 : 0
