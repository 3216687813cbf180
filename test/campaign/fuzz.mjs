// Builds and runs the fuzzer: `node test/campaign/fuzz.mjs [--requests 30000] [--seed n]`. Prints its report; exits 1
// where it has found something.
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { esbuildLua } from '../../tools/lua.mjs'

const root = join(import.meta.dirname, '../..')
const outfile = join(root, 'node_modules/.cache/relayscope/fuzz.mjs')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

await mkdir(join(root, 'node_modules/.cache/relayscope'), { recursive: true })
await build({
  entryPoints: [join(import.meta.dirname, 'fuzz-run.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  plugins: [esbuildLua],
  define: { RELAYSCOPE_VERSION: JSON.stringify(version) },
})
await import(outfile)
