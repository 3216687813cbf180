/** What a bundle grows by: each subpath, and the smallest use of the router, minified and gzipped with all they import. */
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Consumer, createConsumer, SUBPATHS } from './consumer.js'

/** KiB, about a tenth above what was measured: a jump is a mistake, growth a decision. zod is 27 of what is over 30. */
const BOUNDS: Record<string, number> = {
  'a minimal router': 102,
  relayscope: 106,
  'relayscope/memory': 76,
  'relayscope/redis': 129,
  'relayscope/cooperative-site': 73,
  'relayscope/control-server': 51,
  // With `connectApplication`; the publisher alone is 3.
  'relayscope/publisher': 6.5,
  // The contract's own bound is 6.
  'relayscope/browser': 5.4,
  // With the page, which is 40 kB of it.
  'relayscope/dashboard': 77,
  'relayscope/metrics': 57,
  // Without the SDK of the protocol, which a host installs.
  'relayscope/mcp': 46,
  'relayscope/express': 4.2,
  'relayscope/hono': 2.7,
  'relayscope/deno': 2.7,
  'relayscope/ws': 5,
  'relayscope/socket.io': 5.3,
  'relayscope/playwright': 4.5,
  'relayscope/bullmq': 42,
  // With the router that answers from it.
  'relayscope/incident': 112,
  'relayscope/testing': 60,
}

/** Of what has no bound of its own: adapters. */
const BOUND = 5.5

const MINIMAL = `import { createDiagnosticsRouter, noopAuth } from 'relayscope'
export default createDiagnosticsRouter({ inspectors: {}, auth: noopAuth() })`

describe('the size of the package', () => {
  let consumer: Consumer
  beforeAll(async () => {
    consumer = await createConsumer()
  })
  afterAll(() => consumer?.remove())

  async function sizeOf(program: string): Promise<number> {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: consumer.dir },
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'neutral',
      external: ['node:*', 'redis', 'ioredis', '@modelcontextprotocol/*'],
      write: false,
    })
    return gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length / 1024
  }

  const programs: [name: string, program: string][] = [
    ['a minimal router', MINIMAL],
    ...SUBPATHS.map((path): [string, string] => [path, `export * from '${path}'`]),
  ]

  it.each(programs)('%s stays within its bound', async (name, program) => {
    const size = await sizeOf(program)
    const bound = BOUNDS[name] ?? BOUND
    console.log(`${name}: ${size.toFixed(1)} KiB gzipped, at most ${bound}`)
    expect(size).toBeLessThanOrEqual(bound)
  })
})
