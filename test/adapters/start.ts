/** Starts the battery's hosts as processes of their own, each from one file bundled of our source. */
import { copyFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { VERSION } from '../../src/internal/version.js'
import { type Running, run } from './process.js'

const hostsDir = fileURLToPath(new URL('./hosts/', import.meta.url))
// Below node_modules, so that the bundles find the frameworks, and git ignores them.
const bundlesDir = fileURLToPath(new URL('../../node_modules/.cache/relayscope-hosts/', import.meta.url))

/** Bundles `hosts/<name>.ts` and returns the file: for any runtime, unless it finds its packages as Node does. */
async function bundle(name: string, packages: 'bundle' | 'external' = 'bundle'): Promise<string> {
  await build({
    entryPoints: [`${hostsDir}${name}.ts`],
    outdir: bundlesDir,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2023',
    mainFields: ['module', 'main'],
    packages,
    external: ['node:*'],
    define: { RELAYSCOPE_VERSION: JSON.stringify(VERSION) },
    logLevel: 'error',
  })
  return `${bundlesDir}${name}.js`
}

export const runNode = async (node: string, name: string): Promise<Running> =>
  run(node, [await bundle(name, 'external')])

export const runDeno = async (deno: string, name: string): Promise<Running> =>
  run(deno, ['run', '--no-config', '--no-lock', '--allow-net=127.0.0.1', await bundle(name)])

export const runBun = async (bun: string, name: string): Promise<Running> => run(bun, ['run', await bundle(name)])

export async function runWorkerd(workerd: string): Promise<Running> {
  await bundle('worker')
  await copyFile(`${hostsDir}worker.capnp`, `${bundlesDir}worker.capnp`)
  return run(workerd, ['serve', `${bundlesDir}worker.capnp`, '--control-fd=1'])
}
