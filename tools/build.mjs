/**
 * Builds `dist`: the scripts with esbuild, then the declarations with TypeScript, one a source file.
 * `node tools/build.mjs [--no-dts]` leaves out the declarations and the shortening of names, and takes a second;
 * `--if-changed` does nothing if `dist` is newer than `src` and `package.json`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { minify } from 'terser'
import { dashboardAssets } from './dashboard-assets.mjs'
import { publicDeclarations } from './declarations.mjs'
import { FACES } from './faces.mjs'
import { withHoverTexts } from './hover.mjs'
import { esbuildLua } from './lua.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIST = join(ROOT, 'dist')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

async function buildScripts() {
  const { 'browser/index': browser, ...faces } = FACES
  const shared = {
    absWorkingDir: ROOT,
    bundle: true,
    format: 'esm',
    target: 'es2023',
    platform: 'neutral',
    packages: 'external',
    minifySyntax: true,
    // Deno and Bun know Node's modules by this name alone.
    external: ['node:*'],
    plugins: [esbuildLua],
    define: { RELAYSCOPE_VERSION: JSON.stringify(version), ...(await dashboardAssets()) },
  }
  await Promise.all([
    build({
      ...shared,
      entryPoints: { ...faces, 'cli/observe': 'src/cli/observe.ts' },
      splitting: true,
      outdir: DIST,
      chunkNames: 'chunk-[hash]',
    }),
    // One file, so that a host without a bundler can serve it to its pages as it is.
    build({ ...shared, entryPoints: { 'browser/index': browser }, outdir: DIST }),
  ])
}

/** Shortens the names of local variables; functions and classes keep theirs, for stack traces. */
async function shortenScripts() {
  const mangle = { module: false, keep_fnames: true, keep_classnames: true }
  for (const name of readdirSync(DIST, { recursive: true })) {
    if (!name.endsWith('.js')) continue
    const file = join(DIST, name)
    const { code } = await minify(readFileSync(file, 'utf8'), {
      ecma: 2020,
      module: true,
      compress: { passes: 2, keep_fnames: true, keep_classnames: true },
      mangle,
      // A stack trace shows the line of an error: a statement, rather than the whole file.
      format: { semicolons: false },
    })
    writeFileSync(file, code)
  }
}

/** Removes the comment about the file, which no editor shows, and the indentation. */
const shortened = (text) =>
  text
    .replace(/^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?=import |export \{|export \*|export type \{)/, '')
    .replace(/^ +/gm, '')

/** Emits the declarations that the public ones lead to, one file for each source file that has some. */
async function buildDeclarations() {
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)

  const files = readdirSync(DIST, { recursive: true }).filter((name) => name.endsWith('.d.ts'))
  const texts = new Map(files.map((file) => [file, readFileSync(join(DIST, file), 'utf8')]))
  const entries = Object.keys(FACES).map((name) => `${name}.d.ts`)
  const declarations = await withHoverTexts(ROOT, publicDeclarations(texts, entries), texts, entries)
  for (const file of files) {
    const text = declarations.get(file)
    if (text === undefined) rmSync(join(DIST, file))
    else writeFileSync(join(DIST, file), shortened(text))
  }
  removeEmpty(DIST)
}

function removeEmpty(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmpty(join(folder, entry.name))
  if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true })
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
rmSync(DIST, { recursive: true, force: true })
await buildScripts()
// Scripts fill in their constants as they are loaded: a missing one ends the build.
await import(join(DIST, 'redis/index.js'))
if (!process.argv.includes('--no-dts')) {
  await shortenScripts()
  await buildDeclarations()
}
