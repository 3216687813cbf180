/** Starts the battery's hosts as processes of their own, each from one file bundled of our source. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { VERSION } from '../../src/version.js'

export interface Running {
  port: number
  close(): Promise<void>
}

const hostsDir = fileURLToPath(new URL('./hosts/', import.meta.url))
// Below node_modules, so that the bundles find the frameworks, and git ignores them.
const bundlesDir = fileURLToPath(new URL('../../node_modules/.cache/relayscope-hosts/', import.meta.url))

/** Bundles `hosts/<name>.ts` for any runtime and returns the file. */
export async function bundle(name: string): Promise<string> {
  await build({
    entryPoints: [`${hostsDir}${name}.ts`],
    outdir: bundlesDir,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2023',
    mainFields: ['module', 'main'],
    external: ['node:*', 'express', 'fastify', 'koa'],
    outExtension: { '.js': '.js' },
    define: { RELAYSCOPE_VERSION: JSON.stringify(VERSION) },
    logLevel: 'error',
  })
  return `${bundlesDir}${name}.js`
}

/** The port that the process tells in its first JSON line, or a rejection with what it said instead. */
async function readPort(child: ChildProcess): Promise<number> {
  const said: string[] = []
  child.stderr?.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  const died = once(child, 'exit').then(() => Promise.reject(new Error(`the host ended: ${said.join('')}`)))
  died.catch(() => {})
  const told = (async () => {
    if (!child.stdout) throw new Error('the host has no output')
    for await (const line of createInterface(child.stdout)) {
      said.push(line)
      if (line.startsWith('{')) return (JSON.parse(line) as { port: number }).port
    }
    return died
  })()
  return Promise.race([told, died])
}

/** Runs `command` until `close()`. Its output must name the port as `{"port":1234}`. */
export async function run(command: string, args: string[]): Promise<Running> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } })
  const ended = once(child, 'exit')
  const close = async () => {
    child.kill('SIGKILL')
    await ended
  }
  try {
    const port = await readPort(child)
    child.stdout?.resume()
    return { port, close }
  } catch (error) {
    await close()
    throw error
  }
}

export const runNode = async (node: string, name: string): Promise<Running> => run(node, [await bundle(name)])

export const runDeno = async (deno: string, name: string): Promise<Running> =>
  run(deno, ['run', '--no-config', '--no-lock', '--allow-net=127.0.0.1', await bundle(name)])

export const runBun = async (bun: string, name: string): Promise<Running> => run(bun, ['run', await bundle(name)])

export async function runWorkerd(workerd: string): Promise<Running> {
  await bundle('worker')
  await copyFile(`${hostsDir}worker.capnp`, `${bundlesDir}worker.capnp`)
  return run(workerd, ['serve', `${bundlesDir}worker.capnp`, '--control-fd=1'])
}
