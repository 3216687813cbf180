/**
 * What a program pays before its first request: CPU of an import in a fresh process, of each subpath, against `import('zod')`,
 * and of the router that is made then. `npm run build && node bench/start.mjs`. Each import takes turns with the others, and
 * the median counts.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { check, report } from './report.mjs'

const ROUNDS = 9
const GOAL_MS = 40
const ROUTER = 'relayscope and createDiagnosticsRouter'
/** What a program of `relayscope/<subpath>` has loaded anyway: its peers are not counted. */
const PEERS = {
  hono: [],
  bullmq: ['bullmq'],
  playwright: [],
  opentelemetry: ['@opentelemetry/api', '@opentelemetry/sdk-metrics'],
}

const { exports: subpaths } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
/** Of a subpath, against zod alone: its schemas are made when it is imported. */
const GOAL = 4
const programs = new Map([
  ['zod', "await import('zod')"],
  [
    ROUTER,
    `const { createDiagnosticsRouter, noopAuth } = await import('relayscope')
     createDiagnosticsRouter({ inspectors: {}, auth: noopAuth() })`,
  ],
])
for (const [path, target] of Object.entries(subpaths))
  if (typeof target === 'object')
    programs.set(path.replace('.', 'relayscope'), `await import('${path.replace('.', 'relayscope')}')`)

function cpuOf(name) {
  const peers = (PEERS[name.split('/')[1]] ?? []).map((peer) => `await import('${peer}')\n`).join('')
  const text = `${peers}const before = process.cpuUsage()
${programs.get(name)}
const { user, system } = process.cpuUsage(before)
console.log((user + system) / 1_000)`
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', text], {
    cwd: new URL('..', import.meta.url),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${name}: ${stderr}`)
  return Number(stdout)
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
const rounds = Array.from({ length: ROUNDS }, () => new Map([...programs.keys()].map((name) => [name, cpuOf(name)])))
check(
  'every subpath can be imported',
  rounds.every((round) => [...round.values()].every((ms) => ms >= 0)),
  true,
  programs.size,
)
const row = (what, found, goal, unit) => ({ what, found, goal, unit, better: 'lower' })
report([
  row(`cold start of ${ROUTER}, CPU`, median(rounds.map((round) => round.get(ROUTER))), GOAL_MS, 'ms'),
  row('of which zod, CPU', median(rounds.map((round) => round.get('zod'))), null, 'ms'),
  ...[...programs.keys()]
    .filter((name) => name !== 'zod')
    .map((name) =>
      row(`${name}, against zod alone`, median(rounds.map((round) => round.get(name) / round.get('zod'))), GOAL, '×'),
    ),
])
