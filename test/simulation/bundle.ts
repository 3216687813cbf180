/**
 * The library as one function of a simulated platform: bundled from src, with its clocks, timers, random numbers, ids
 * and digests replaced. A node is one call of it, with modules of its own.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { esbuildLua } from '../../tools/lua.mjs'
import type { SimulatedPlatform } from './node.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

// No node lives long enough that its schemas are worth a compilation.
const ENTRY = `
import { config } from 'zod'
config({ jitless: true })
export * from './src/redis/index.ts'
export * from './src/memory/index.ts'
export { createDiagnosticsRouter, noopAuth, Refusal } from './src/index.ts'
export {
  createActionHandlers, createCooperativeSiteRouter, createDispatchConnector, createIdempotencyStore,
  createSessionPolicy, ingestCooperativeSiteMessage,
} from './src/cooperative-site/index.ts'
`

const TIMERS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate']

const PLATFORM: Record<string, string> = {
  ...Object.fromEntries(
    TIMERS.flatMap((name) => [
      [name, `platform.${name}`],
      [`globalThis.${name}`, `platform.${name}`],
    ]),
  ),
  'performance.now': 'platform.performanceNow',
  'Date.now': 'platform.dateNow',
  'Math.random': 'platform.random',
  'crypto.randomUUID': 'platform.randomUUID',
  'crypto.getRandomValues': 'platform.getRandomValues',
  'crypto.subtle.digest': 'platform.digest',
}

export type Library = typeof import('../../src/index.js') &
  typeof import('../../src/memory/index.js') &
  typeof import('../../src/redis/index.js') &
  typeof import('../../src/cooperative-site/index.js')
export interface Load {
  (platform: SimulatedPlatform): Library
  /** Changes with the text of the library. */
  readonly digest: string
}

/** @param edit Plants a defect: gets the text of the bundle and gives another one. */
export async function bundleLibrary(edit: (text: string) => string = (text) => text): Promise<Load> {
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: root, loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    write: false,
    plugins: [esbuildLua],
    define: { ...PLATFORM, RELAYSCOPE_VERSION: '"simulated"' },
    logLevel: 'error',
  })
  const text = edit((outputFiles[0] as { text: string }).text)
  const body = new Function('platform', 'module', 'exports', 'require', text)
  const require = createRequire(import.meta.url)
  const load = (platform: SimulatedPlatform) => {
    const module = { exports: {} as Library }
    body(platform, module, module.exports, require)
    return module.exports
  }
  return Object.assign(load, { digest: createHash('sha256').update(text).digest('hex') })
}
