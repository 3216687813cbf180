/**
 * What `npm test` leaves out. `npm run test:all`: the long tests, a second Redis client, the package's content, advisories
 * about what it installs, generated clients, conformance, documents, the docs as a site. `npm run search`, by hand and before a
 * release: what searches by chance, or over many versions of others. Both take `-- --only <text>` for the checks with that text in their names.
 *
 * Needs `npm ci --ignore-scripts --prefix tools/<name>` for runtimes, type-matrix, openapi-clients and mcp-conformance. Prints
 * "N passed, N failed" at the end, where each test and each other check counts; a check that does not apply here is named and
 * counts as neither. With `CI` set, a skipped test counts as failed.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { countTests } from './count-tests.mjs'

const ROOT = join(import.meta.dirname, '..')

const PACKAGED =
  /^(?:dist\/(?!.*\.test\.).+\.(?:js|js\.map|d\.ts)|docs\/(?:[\w-]+\.md|grafana(?:-calls)?\.json|alerts\.yml|incident\.schema\.json|llms(?:-small)?\.txt)|package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md)$/
const REQUIRED = [
  'package.json',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'SECURITY.md',
  'docs/security.md',
  'dist/index.js',
]

/** Returns what is wrong with the list of files of the package: a file that users don't need, or one that is missing. */
export const packageProblems = (files) => [
  ...files.filter((file) => !PACKAGED.test(file)).map((file) => `unexpected: ${file}`),
  ...REQUIRED.filter((file) => !files.includes(file)).map((file) => `missing: ${file}`),
]

/** Returns what `npm audit --json` found: `null` where it could not ask the registry. */
export function auditFindings(output) {
  try {
    const { vulnerabilities } = JSON.parse(output)
    if (typeof vulnerabilities !== 'object' || vulnerabilities === null) return null
    return Object.values(vulnerabilities).map(({ name, severity }) => `${name}: ${severity}`)
  } catch {
    return null
  }
}

/** Runs a command to its end. */
function run(command, args, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    let [out, all] = ['', '']
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        if (stream === child.stdout) out += text
        all += text
      })
    child.on('error', (error) => resolve({ ok: false, out, all: `${all}${error.message}\n` }))
    child.on('close', (code) => resolve({ ok: code === 0, out, all }))
  })
}

const command =
  (...line) =>
  () =>
    run(line[0], line.slice(1))

/** Runs tests; each counts as one check. */
async function tests(args, env) {
  const folder = await mkdtemp(join(tmpdir(), 'relayscope-tests-'))
  const file = join(folder, 'report.json')
  const reports = ['--reporter=json', `--outputFile.json=${file}`]
  try {
    const { ok, all } = await run('npx', ['vitest', 'run', ...reports, ...args], env)
    const text = await readFile(file, 'utf8').catch(() => null)
    if (text === null) return { ok: false, all }
    const { passed, failed, skipped, failures } = countTests(JSON.parse(text))
    const missing = process.env.CI ? skipped : []
    // Vitest also exits non-zero for what no test owns, such as an unhandled rejection.
    const unowned = !ok && failed === 0 ? 1 : 0
    const counts = { passed, failed: failed + missing.length + unowned }
    const lines = [...failures, ...missing.map((name) => `skipped: ${name}`), ...(unowned ? [all] : [])]
    return { ok: counts.failed === 0, counts, all: lines.map((line) => `${line}\n`).join('') }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** @param which `second` or `others`: see `test/redis/matrix.ts`. */
function redisClients(which) {
  const folder = join(ROOT, 'test/redis')
  const files = readdirSync(folder).filter((name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    // A battery may be limited to the second client.
    const isLimited = which === 'others' && text.includes("['ioredis cluster'])")
    return name.endsWith('.test.ts') && text.includes("'./matrix.js'") && !isLimited
  })
  const projects = ['--project', 'fast', '--project', 'full']
  return tests([...projects, ...files.map((name) => `test/redis/${name}`)], { REDIS_CLIENTS: which })
}

async function packageContent() {
  const { ok, out, all } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'])
  if (!ok) return { ok, all }
  const problems = packageProblems(JSON.parse(out)[0].files.map(({ path }) => path))
  return { ok: problems.length === 0, all: problems.map((problem) => `${problem}\n`).join('') }
}

async function audit() {
  // Without retries: where there is no network that would take minutes.
  const { out } = await run('npm', ['audit', '--omit=dev', '--json', '--fetch-retries=0'])
  const found = auditFindings(out)
  if (found === null) return { ok: true, skipped: 'the registry cannot be asked for advisories', all: '' }
  return { ok: found.length === 0, all: found.map((line) => `${line}\n`).join('') }
}

async function openApiDocuments() {
  const folder = await mkdtemp(join(tmpdir(), 'relayscope-openapi-'))
  try {
    const files = []
    for (const name of ['diagnostics', 'cooperative-site', 'control-server']) {
      const made = await run('node', ['tools/openapi-document.mjs', name])
      if (!made.ok) return made
      files.push(join(folder, `${name}.json`))
      await writeFile(files.at(-1), made.out)
    }
    return await run('npx', ['redocly', 'lint', ...files])
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Runs `check` where the packages of a tool are installed, or can be. */
const withPackages = (tool, what, check) => async () => {
  if (!existsSync(join(ROOT, tool, 'node_modules'))) {
    const installed = await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--fetch-retries=0', '--prefix', tool])
    if (!installed.ok) return { ok: true, skipped: `${what} cannot be installed`, all: '' }
  }
  return check()
}

/** Builds the docs as a site, which fails for a dead link. */
async function docsSite() {
  const folder = await mkdtemp(join(tmpdir(), 'relayscope-site-'))
  try {
    return await run('tools/docs-site/node_modules/.bin/vitepress', ['build', 'docs', '--outDir', folder])
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Lists that run side by side. */
const CHECKS = [
  [
    ['long tests', () => tests(['--project', 'full'])],
    ['a second Redis client, on a Cluster', () => redisClients('second')],
  ],
  [
    ['package content', packageContent],
    ['package layout', command('npx', 'publint', '--strict')],
    ['types as packed', command('npx', 'attw', '--pack', '.', '--profile', 'esm-only')],
    ['advisories about run-time dependencies', audit],
    ['nothing unused', command('npx', 'knip')],
    ['reference documentation', command('npx', 'typedoc', '--emit', 'none')],
    ['documentation site', withPackages('tools/docs-site', 'VitePress', docsSite)],
    ['OpenAPI documents', openApiDocuments],
    ['OpenAPI clients', command('node', 'tools/openapi-clients.mjs')],
    ['MCP conformance', command('node', 'tools/mcp-conformance.mjs')],
  ],
]

const simulation = (store) => [
  `simulation over ${store}`,
  command('node', 'tools/simulate.mjs', '--store', store, '--minutes', '5'),
]
const SEARCHES = [
  [
    simulation('memory'),
    simulation('redis'),
    simulation('redis-sharded'),
    ['crashes and malformed requests', () => tests(['--project', 'search'])],
  ],
  [
    ['the other Redis clients', () => redisClients('others')],
    ['delivery model', command('tools/model/check.sh')],
    ['type matrix', command('node', 'tools/type-matrix.mjs')],
    ['frameworks', withPackages('tools/frameworks', 'frameworks', command('node', 'tools/frameworks.mjs'))],
    ['mutants', command('node', 'tools/mutants/run.mjs')],
  ],
]

async function main() {
  const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, search: { type: 'boolean' } } })
  const built = await run('npm', ['run', 'build', '--silent'])
  if (!built.ok) throw new Error(`the package cannot be built\n${built.all}`)
  const counts = { passed: 0, failed: 0 }
  await Promise.all(
    (values.search ? SEARCHES : CHECKS).map(async (checks) => {
      for (const [name, check] of checks) {
        if (!name.includes(values.only)) continue
        const since = performance.now()
        const { ok, all, skipped, counts: own = { passed: Number(ok), failed: Number(!ok) } } = await check()
        const said = skipped ? `skipped (does not apply: ${skipped})` : ok ? 'passed' : 'failed'
        if (!skipped) {
          counts.passed += own.passed
          counts.failed += own.failed
        }
        console.log(`${ok ? '' : all}── ${name} ${said}, ${Math.round((performance.now() - since) / 1_000)} s`)
      }
    }),
  )
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  if (counts.failed > 0 || counts.passed === 0) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
