/**
 * Runs the protocol's conformance suite against a live host of the tools for agents. Cases that do not apply are listed
 * in tools/mcp-conformance/baseline-*.yml, each with its reason. Prints unexpected failures and listed cases that pass,
 * and exits 1 if there are any.
 *
 * `node tools/mcp-conformance.mjs` needs the built package, and `npm ci --ignore-scripts --prefix
 * tools/mcp-conformance`.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { resolveAdminAuth } from 'relayscope'
import { createMcp } from 'relayscope/mcp'
import { startNodeServer } from 'relayscope/node'
import { KEY, startHost } from './openapi-host.mjs'

const HERE = join(import.meta.dirname, 'mcp-conformance')
const NODE = join(HERE, 'node_modules/node-24/bin/node')
const SUITE = join(HERE, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
/** Of the whole suite, before it counts as one that hangs. */
const TIME_MS = 300_000

/** The revisions that the SDK serves, each by what it was conforming to when it was released. */
const REVISIONS = ['2026-07-28', '2025-11-25']

for (const file of [NODE, SUITE])
  if (!existsSync(file)) {
    console.error(`${file} is missing: npm ci --ignore-scripts --prefix tools/mcp-conformance`)
    process.exit(1)
  }

/** The suite's output is only shown for unexpected results: it counts cases that do not apply as failed. */
function run(url, revision) {
  const given = ['server', '--url', url, '--requirements', revision]
  const baseline = ['--expected-failures', join(HERE, `baseline-${revision}.yml`)]
  return new Promise((resolve, reject) => {
    const suite = spawn(NODE, [SUITE, ...given, ...baseline], { cwd: HERE, stdio: ['ignore', 'pipe', 'pipe'] })
    const said = []
    for (const stream of [suite.stdout, suite.stderr]) stream.on('data', (chunk) => said.push(chunk))
    const timer = setTimeout(() => suite.kill('SIGKILL'), TIME_MS)
    suite.once('error', reject)
    suite.once('close', (code) => {
      clearTimeout(timer)
      resolve({ isExpected: code === 0, said: Buffer.concat(said).toString() })
    })
  })
}

const host = await startHost()
// The suite sends no credentials, so it is authenticated as a loopback caller.
const auth = resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} })
const server = await startNodeServer(createMcp({ url: host.url, key: KEY, auth }))
try {
  for (const revision of REVISIONS) {
    const { isExpected, said } = await run(`${server.url}/mcp`, revision)
    console.log(`revision ${revision}: ${isExpected ? 'what applies passes' : said}`)
    if (!isExpected) process.exitCode = 1
  }
} finally {
  await server.close()
  await host.close()
}
