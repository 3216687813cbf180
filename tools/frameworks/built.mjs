/**
 * Builds a project of each framework with the packed package and the file that docs/mounting.md shows, runs what it built, and
 * asks that over HTTP: at the root, and below a base path. `only` are names of frameworks; `keep` a folder in which the
 * installed projects stay for the next run.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkServer, FEED } from './check-server.mjs'
import { PROJECTS } from './projects.mjs'

const ROOT = join(import.meta.dirname, '../..')
const EXAMPLES = join(ROOT, 'examples/frameworks')
const KEY = 'the-key-of-the-frameworks'

const npm = (cwd, ...args) => execFileSync('npm', args, { cwd, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })

function write(folder, path, text) {
  mkdirSync(join(folder, dirname(path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise((done) => server.close(done))
  return port
}

/** Starts a program of the project, in a process group of its own. Without the key: no build may need it. */
function start(project, [program, ...args], env = {}) {
  const { SERVICE_ADMIN_KEY: _key, ...own } = process.env
  const path = `${join(project, 'node_modules/.bin')}:${process.env.PATH}`
  const child = spawn(program, args, {
    cwd: project,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...own, CI: 'true', NEXT_TELEMETRY_DISABLED: '1', ASTRO_TELEMETRY_DISABLED: '1', PATH: path, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data))
  const exited = new Promise((resolve) => child.on('exit', resolve).on('error', resolve))
  return { child, exited, output: () => output }
}

async function build(project, command) {
  const { exited, output } = start(project, command)
  const result = await exited
  if (result !== 0) throw new Error(`${command.join(' ')} failed: ${result}\n${output()}`)
}

async function runAndCheck(project, command, base) {
  const port = await freePort()
  const env = { PORT: String(port), HOST: '127.0.0.1', NITRO_HOST: '127.0.0.1', SERVICE_ADMIN_KEY: KEY }
  const origin = `http://127.0.0.1:${port}`
  const { child, exited, output } = start(project, command, env)
  try {
    let isUp = false
    for (let tries = 0; !isUp && tries < 300 && child.exitCode === null; tries++) {
      isUp = await fetch(origin).then(
        () => true,
        () => sleep(200).then(() => false),
      )
    }
    if (!isUp) throw new Error(`${command.join(' ')} does not answer`)
    await checkServer(origin, base, KEY)
  } catch (error) {
    error.message += `\n${output()}`
    throw error
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await exited
  }
}

function install(project, packages, tarball) {
  mkdirSync(project, { recursive: true })
  // What an earlier run left, except what it installed.
  for (const entry of readdirSync(project).filter((name) => name !== 'node_modules'))
    rmSync(join(project, entry), { recursive: true })
  // npm takes a package of the same version for the same one.
  for (const entry of ['relayscope', '.package-lock.json'])
    rmSync(join(project, 'node_modules', entry), { recursive: true, force: true })
  const dependencies = { ...packages, relayscope: `file:${tarball}` }
  const manifest = `${JSON.stringify({ name: 'app', private: true, type: 'module', dependencies }, null, 2)}\n`
  writeFileSync(join(project, 'package.json'), manifest)
  npm(project, 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error')
}

function writeProject(project, { file, files, isBaseRemoved }, base) {
  const relay = readFileSync(join(EXAMPLES, 'relay.mjs'), 'utf8')
  write(project, 'relay.mjs', relay.replaceAll("'/ops/", `'${isBaseRemoved ? '' : base}/ops/`) + FEED)
  mkdirSync(join(project, dirname(file)), { recursive: true })
  cpSync(join(EXAMPLES, file), join(project, file))
  for (const [path, text] of Object.entries(files(base))) write(project, path, text)
}

/** Returns how many frameworks failed. */
export async function checkBuilt({ only = Object.keys(PROJECTS), keep }) {
  const unknown = only.find((name) => !(name in PROJECTS))
  if (unknown !== undefined)
    throw new Error(`Unknown framework "${unknown}". Known: ${Object.keys(PROJECTS).join(', ')}`)
  const folder = keep ?? mkdtempSync(join(tmpdir(), 'relayscope-built-'))
  mkdirSync(folder, { recursive: true })
  const [{ filename }] = JSON.parse(npm(ROOT, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder))
  let failed = 0
  try {
    for (const name of only) {
      const project = join(folder, name)
      const definition = PROJECTS[name]
      try {
        install(project, definition.packages, join(folder, filename))
        for (const base of definition.bases ?? ['', '/shop']) {
          writeProject(project, definition, base)
          if (definition.build) await build(project, definition.build)
          await runAndCheck(project, definition.start, base)
          console.log(`${name}: ${base === '' ? 'works' : `works below ${base}`}`)
        }
      } catch (error) {
        failed++
        console.log(`${name}: failed\n${error.stack}`, error.cause ?? '')
      }
      if (keep === undefined && existsSync(project)) rmSync(project, { recursive: true })
    }
  } finally {
    if (keep === undefined) rmSync(folder, { recursive: true })
  }
  return failed
}
