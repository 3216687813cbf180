/**
 * Runs the suites of ws and Socket.IO without and with a follower of calls on each of their servers. Fails for a test that fails
 * with it alone, three times, and for an error of a follower. `node tools/foreign-suites.mjs [--ws <clone>] [--socket.io <clone>]`
 * needs the built package and the registry, and GitHub for what is not given. Takes two minutes.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const PRELOAD = join(import.meta.dirname, 'foreign-suites/follow.mjs')
const TRIES = 3

const SUITES = {
  ws: {
    repository: 'https://github.com/websockets/ws',
    packages: 'mocha@8',
    /** Copies the suite to `folder`. Returns its files. */
    prepare(clone, folder) {
      const parts = ['index.js', 'lib', 'package.json', 'test']
      for (const part of parts) cpSync(join(clone, part), join(folder, part), { recursive: true })
      return readdirSync(join(folder, 'test')).flatMap((name) => (name.endsWith('.test.js') ? `test/${name}` : []))
    },
    server: 'lib/websocket-server.js',
    imports: [],
    options: [],
  },
  'socket.io': {
    repository: 'https://github.com/socketio/socket.io',
    packages:
      'socket.io@4 socket.io-client@4 socket.io-client-v2@npm:socket.io-client@2 mocha@10 tsx@4 expect.js supertest@7 superagent@9',
    prepare(clone, folder) {
      cpSync(join(folder, '../node_modules/socket.io'), folder, { recursive: true })
      for (const part of ['lib', 'test'])
        cpSync(join(clone, 'packages/socket.io', part), join(folder, part), { recursive: true })
      // uWebSockets.js is not in the registry.
      const index = join(folder, 'test/index.ts')
      writeFileSync(index, readFileSync(index, 'utf8').replace(/.*"\.\/uws".*\n/, ''))
      return ['test/index.ts']
    },
    server: 'dist/index.js',
    imports: ['tsx'],
    // It gives all objects of the process one more field, also those of later tests.
    options: ['--grep', 'messing with Object prototype', '--invert', '--timeout', '30000', '--exit'],
  },
}

/** Runs a suite. Returns the titles of tests that failed, errors of followers, and the number of sockets that were followed. */
function runSuite(folder, files, { server, imports, options }, isFollowed) {
  const preloads = isFollowed ? [...imports, PRELOAD] : imports
  const NODE_OPTIONS = preloads.map((name) => `--import ${name}`).join(' ')
  const args = ['../node_modules/.bin/mocha', '--reporter', 'json', ...options, ...files]
  const env = { ...process.env, NODE_OPTIONS, FOLLOWED: join(folder, server) }
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    env,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  const start = stdout.indexOf('{\n  "stats"')
  if (start < 0) throw new Error(`the suite did not run: ${stderr}`)
  const { stats, failures } = JSON.parse(stdout.slice(start))
  const errors = stderr.split('\n').filter((line) => line.startsWith('follower: '))
  const sockets = Math.max(...[...stderr.matchAll(/^followed: (\d+)$/gm)].map(([, count]) => Number(count)))
  return { tests: stats.tests, failed: failures.map(({ fullTitle }) => fullTitle), errors, sockets }
}

const { values } = parseArgs({ options: { ws: { type: 'string' }, 'socket.io': { type: 'string' } } })
for (const [name, suite] of Object.entries(SUITES)) {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'relayscope-suite-')))
  try {
    const clone = values[name] ?? join(project, 'clone')
    if (!values[name]) execFileSync('git', ['clone', '--quiet', '--depth', '1', suite.repository, clone])
    writeFileSync(join(project, 'package.json'), '{}')
    execFileSync('npm', ['install', '--ignore-scripts', ...suite.packages.split(' ')], { cwd: project })
    const folder = join(project, 'suite')
    const files = suite.prepare(clone, folder)
    const before = runSuite(folder, files, suite, false)
    let found
    for (let tries = 0; tries < TRIES && found?.length !== 0; tries++) {
      const { tests, failed, errors, sockets } = runSuite(folder, files, suite, true)
      const isNew = (title) => !before.failed.includes(title) && (found?.includes(title) ?? true)
      found = [...failed.filter(isNew), ...errors, ...(sockets > 0 ? [] : ['nothing was followed'])]
      console.log(
        `${name}: ${tests} tests, ${sockets} sockets; failed: ${before.failed.length} without, ${failed.length} with`,
      )
    }
    for (const line of found) console.error(`  ${line}`)
    if (found.length > 0) process.exitCode = 1
  } finally {
    rmSync(project, { recursive: true })
  }
}
