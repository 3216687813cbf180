// Crashes, stops and cuts over a store of its own: `node test/campaign/faults.mjs [--seconds 60] [--seed n] [--nodes 4]
// [--shards 1] [--client node-redis|ioredis] [--cluster]`. Prints its report; exits 1 where something is wrong.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { esbuildLua } from '../../tools/lua.mjs'

const cache = join(import.meta.dirname, '../../node_modules/.cache/relayscope')
const outfile = join(cache, 'faults.mjs')

await mkdir(cache, { recursive: true })
await build({
  entryPoints: [join(import.meta.dirname, 'faults-run.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  plugins: [esbuildLua],
  define: { RELAYSCOPE_VERSION: '""' },
})
const { main } = await import(outfile)
await main(import.meta.dirname)
