/**
 * Generates clients from the OpenAPI documents with the tools that people use, compiles them strictly and asks a live host
 * through them; then asks every route through a proxy that checks each request and each answer against the document.
 * Prints what does not fit, and exits 1 then.
 *
 * `node tools/openapi-clients.mjs` needs the built package, and `npm ci --ignore-scripts --prefix tools/openapi-clients`.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openApiDocument } from 'relayscope'
import { controlServerOpenApi } from 'relayscope/control-server'
import { cooperativeSiteOpenApi } from 'relayscope/cooperative-site'
import { checkRoutes } from './openapi-clients/check-routes.mjs'
import { KEY, PREFIX, startHost } from './openapi-host.mjs'

const HERE = join(import.meta.dirname, 'openapi-clients')
const MADE = join(HERE, 'made')
/** Of one program, before it counts as one that hangs. */
const TIME_MS = 300_000

const DOCUMENTS = {
  diagnostics: openApiDocument({ prefix: PREFIX }),
  'cooperative-site': cooperativeSiteOpenApi(),
  'control-server': controlServerOpenApi(),
}

const run = promisify(execFile)
const bin = (name) => join(HERE, 'node_modules/.bin', name)
const fileOf = (name) => join(MADE, `${name}.json`)

/** Runs a program to its end. Its output is only shown if it fails. */
async function step(what, program, ...given) {
  const startedAt = performance.now()
  try {
    await run(process.execPath, [program, ...given], { cwd: HERE, timeout: TIME_MS })
  } catch (error) {
    throw new Error(`${what}:\n${error.stdout ?? ''}${error.stderr ?? error}`)
  }
  console.log(`${what}: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
}

async function generate() {
  for (const [name, document] of Object.entries(DOCUMENTS)) {
    writeFileSync(fileOf(name), JSON.stringify(document))
    // Without the last one, whatever has a default would have to stand in every body.
    const given = ['--output', join(MADE, `${name}.ts`), '--default-non-nullable', 'false']
    await step(`openapi-typescript, ${name}`, bin('openapi-typescript'), fileOf(name), ...given)
  }
  for (const name of Object.keys(DOCUMENTS)) {
    const given = ['--input', fileOf(name), '--output', join(MADE, 'hey-api', name), '--silent', '--no-log-file']
    await step(`@hey-api/openapi-ts, ${name}`, bin('openapi-ts'), ...given)
  }
}

const freePort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer().on('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

/** Starts the proxy. @returns where it listens, and how to end it. */
async function startProxy(file, upstream) {
  const port = await freePort()
  const given = [bin('prism'), 'proxy', file, upstream, '--errors', '--port', String(port)]
  const proxy = spawn(process.execPath, given, { cwd: HERE, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((resolve) => proxy.once('exit', resolve))
  await new Promise((resolve, reject) => {
    let said = ''
    const timer = setTimeout(() => reject(new Error(`the proxy did not start:\n${said}`)), TIME_MS)
    const hear = (chunk) => {
      said += chunk
      if (!/listening/i.test(said)) return
      clearTimeout(timer)
      resolve()
    }
    proxy.stdout.on('data', hear)
    proxy.stderr.on('data', hear)
    proxy.once('exit', () => reject(new Error(`the proxy ended:\n${said}`)))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      proxy.kill()
      await ended
    },
  }
}

async function throughProxy(document, file, host) {
  const proxy = await startProxy(file, host.url)
  try {
    return await checkRoutes(document, proxy.url, KEY)
  } finally {
    await proxy.close()
  }
}

/** A document of which nothing is true but that there is one route: a proxy that lets that pass sees nothing. */
function plantedDocument() {
  const { paths, components, ...rest } = structuredClone(DOCUMENTS.diagnostics)
  components.schemas.Connection.required.push('planted')
  return { ...rest, paths: { '/connections': paths['/connections'] }, components }
}

rmSync(MADE, { recursive: true, force: true })
mkdirSync(MADE)
const host = await startHost()
try {
  await generate()
  await step('compiled strictly', bin('tsc'), '--project', join(HERE, 'tsconfig.json'))
  for (const name of ['openapi-fetch', 'hey-api'])
    await step(`${name} asks a live host`, join(MADE, 'js/programs', `${name}.js`), host.url, KEY)
  const planted = plantedDocument()
  writeFileSync(fileOf('planted'), JSON.stringify(planted))
  const [{ asked, violations }, seen] = await Promise.all([
    throughProxy(DOCUMENTS.diagnostics, fileOf('diagnostics'), host),
    throughProxy(planted, fileOf('planted'), host),
  ])
  if (seen.violations.length !== 1) violations.push(`the proxy saw ${seen.violations.length} violations instead of 1`)
  for (const violation of violations) console.error(violation)
  console.log(`Prism: ${asked} requests, ${violations.length} violations`)
  process.exitCode = violations.length === 0 && asked > 0 ? 0 : 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  await host.close()
  rmSync(MADE, { recursive: true, force: true })
}
