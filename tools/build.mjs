/**
 * Builds `dist`: the scripts with tsup, then the declarations with TypeScript, one for each source file.
 * `node tools/build.mjs [--no-dts]` leaves out the declarations; `--if-changed` does nothing if `dist` is newer than `src`
 * and `package.json`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { dashboardAssets } from './dashboard-assets.mjs'
import { FACES } from './faces.mjs'
import { addHoverTexts } from './hover.mjs'
import { esbuildLua } from './lua.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIST = join(ROOT, 'dist')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

async function buildScripts() {
  const { 'browser/index': browser, ...faces } = FACES
  const shared = {
    config: false,
    format: 'esm',
    target: 'es2023',
    platform: 'neutral',
    outDir: DIST,
    sourcemap: true,
    silent: true,
    // Deno and Bun know Node's modules by this name alone.
    removeNodeProtocol: false,
    external: [/^node:/],
    esbuildPlugins: [esbuildLua],
    define: { RELAYSCOPE_VERSION: JSON.stringify(version), ...(await dashboardAssets()) },
    esbuildOptions(options) {
      // A stack trace names the file and line of `src`; the sources themselves would double the package.
      options.sourcesContent = false
    },
  }
  await build({ ...shared, entry: { ...faces, 'cli/observe': 'src/cli/observe.ts' }, splitting: true })
  // One file, so that a host without a bundler can serve it to its pages as it is.
  await build({ ...shared, entry: { 'browser/index': browser }, splitting: false })
}

async function buildDeclarations() {
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  await addHoverTexts(ROOT, DIST)
}

function isCurrent() {
  if (!existsSync(join(DIST, 'index.js'))) return false
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true }).map((name) => join(ROOT, 'src', name))
  const built = statSync(join(DIST, 'index.js')).mtimeMs
  return [join(ROOT, 'package.json'), ...sources].every((file) => statSync(file).mtimeMs < built)
}

if (process.argv.includes('--if-changed')) {
  if (isCurrent()) process.exit()
  console.log('relayscope: building the package without its types')
}
process.chdir(ROOT)
rmSync(DIST, { recursive: true, force: true })
await buildScripts()
// Scripts fill in their constants as they are loaded: a missing one ends the build.
await import(join(DIST, 'redis/index.js'))
if (!process.argv.includes('--no-dts')) await buildDeclarations()
