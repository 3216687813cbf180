/**
 * Builds the live demo: static files in `demo/` that show the recording of `examples/incident` in the dashboard, without a server.
 * `node tools/demo.mjs [--out DIRECTORY] [--record]`; `--record` first makes a new recording of the live host: a client is
 * stopped, and the recorder is killed and started again, so that there is a gap to see. Needs the built package.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { createDashboard } from 'relayscope/dashboard'
import { openRecording } from 'relayscope/incident'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const RECORDING = join(ROOT, 'examples/incident/recording')
const INCIDENT = join(ROOT, 'examples/incident/incident.json')
/** What a committed example keeps of a recording: it shows what happens, and is no archive. */
const COMMANDS = 30
const MESSAGES = 4
const LINES = 130

const { values } = parseArgs({
  options: { out: { type: 'string', default: join(ROOT, 'demo') }, record: { type: 'boolean', default: false } },
})

const segmentsIn = (directory) =>
  readdirSync(directory)
    .sort()
    .map((name) => ({ name, text: readFileSync(join(directory, name), 'utf8') }))

/** The newest rows of each stream, and the newest commands. */
function shortened(text) {
  const [first, ...lines] = text.trimEnd().split('\n')
  const snapshot = JSON.parse(first)
  const kept = new Map()
  for (const part of snapshot.incident.parts) {
    if (part.route === '/delivery/commands') part.rows = part.rows.slice(-COMMANDS)
    if (part.route !== '/history/messages') continue
    for (const row of part.rows) kept.set(row.stream, [...(kept.get(row.stream) ?? []), row].slice(-MESSAGES))
    part.rows = [...kept.values()].flat()
  }
  for (const route of ['/delivery/commands', '/history/messages'])
    snapshot.incident.missing.push({
      route,
      of: null,
      reason: 'cut',
      count: null,
      detail: 'the example keeps the newest',
    })
  return [JSON.stringify(snapshot), ...lines.slice(0, LINES)].map((line) => `${line}\n`).join('')
}

/** Records the live host into the example. */
async function record() {
  const state = mkdtempSync(join(tmpdir(), 'relayscope-demo-'))
  const host = spawn(process.execPath, ['examples/live-host/main.mjs', '--port', '0', '--state', join(state, 'host')], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  for await (const line of createInterface({ input: host.stdout })) {
    said += `${line}\n`
    if (line.startsWith('dashboard: ')) break
  }
  host.stdout.resume()
  const found = (pattern) => pattern.exec(said)?.[1] ?? ''
  const key = found(/^admin key: (\S+)$/m)
  const env = { ...process.env, SERVICE_ADMIN_KEY: key }
  const asked = await fetch(`${found(/^questions: ([^\s#]+)/m)}.json`, { headers: { 'x-admin-key': key } })
  const client = Number(/\/console-1 {2}pid (\d+)/.exec(await asked.text())[1])
  const recorder = () =>
    spawn(
      process.execPath,
      ['dist/cli/observe.js', 'record', found(/^diagnostics: (\S+)$/m), '-o', join(state, 'recording')],
      {
        cwd: ROOT,
        env,
        stdio: 'inherit',
      },
    )
  const first = recorder()
  await sleep(12_000)
  process.kill(client, 'SIGSTOP')
  await sleep(25_000)
  first.kill('SIGKILL')
  await sleep(20_000)
  const second = recorder()
  await sleep(12_000)
  second.kill('SIGTERM')
  await once(second, 'exit')
  process.kill(client, 'SIGCONT')
  host.kill('SIGINT')
  await once(host, 'exit')
  rmSync(RECORDING, { recursive: true, force: true })
  mkdirSync(RECORDING, { recursive: true })
  for (const { name, text } of segmentsIn(join(state, 'recording')))
    writeFileSync(join(RECORDING, name), shortened(text))
  rmSync(state, { recursive: true })
  const recording = openRecording(segmentsIn(RECORDING).map(({ name, text }) => ({ name, read: () => text })))
  writeFileSync(INCIDENT, `${JSON.stringify({ ...recording.at(null), recording: null })}\n`)
}

/** Writes the page of the dashboard, its files, the router as a script, and the recording. */
async function buildPage(out) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const dashboard = createDashboard({ api: '/relay', prefix: '', title: 'demo' })
  const textOf = async (path) => (await dashboard.fetch(new Request(`http://localhost/${path}`))).text()
  const shell = await textOf('')
  // Before the script of the dashboard: it answers what that asks.
  writeFileSync(
    join(out, 'index.html'),
    shell.replace('<script', '<script type="module" src="demo.js"></script>\n<script'),
  )
  for (const [name] of shell.matchAll(/dashboard-[0-9a-f]{16}\.(?:js|css)/g))
    writeFileSync(join(out, name), await textOf(name))
  // Servers of static files answer `docs/findings` with them.
  mkdirSync(join(out, 'docs'))
  for (const name of ['findings', 'problems'])
    writeFileSync(join(out, `docs/${name}.html`), await textOf(`docs/${name}`))
  await build({
    entryPoints: [join(ROOT, 'tools/demo/page.mjs')],
    outfile: join(out, 'demo.js'),
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    external: ['node:*'],
    absWorkingDir: ROOT,
  })
  writeFileSync(join(out, 'recording.json'), JSON.stringify(segmentsIn(RECORDING)))
  console.log(`built ${out}: serve it as static files, for example with npx serve ${out}`)
}

if (values.record) await record()
await buildPage(values.out)
