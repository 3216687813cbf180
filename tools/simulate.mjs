/** Bundles the simulator and runs it: `npm run simulate -- --seed 345`. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { esbuildLua } from './lua.mjs'

const dir = join(dirname(fileURLToPath(import.meta.url)), '..', 'test', 'simulation')
const cache = join(dir, '..', '..', 'node_modules', '.cache')
await mkdir(cache, { recursive: true })
const out = await mkdtemp(join(cache, 'simulate-'))
try {
  const outfile = join(out, 'simulate.mjs')
  const define = { 'import.meta.url': JSON.stringify(pathToFileURL(join(dir, 'simulate.ts')).href) }
  await build({
    entryPoints: [join(dir, 'simulate.ts')],
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    outfile,
    plugins: [esbuildLua],
    define,
  })
  const { main } = await import(pathToFileURL(outfile).href)
  process.exitCode = await main(process.argv.slice(2)).catch((error) => {
    console.error(error.message)
    return 2
  })
} finally {
  await rm(out, { recursive: true, force: true })
}
