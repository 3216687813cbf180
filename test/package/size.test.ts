/** What a bundle grows by: each subpath, and the smallest use of the router, minified and gzipped with all they import. */
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Consumer, createConsumer, SUBPATHS } from './consumer.js'

/** KiB, about a tenth above what was measured: a jump is a mistake, growth a decision. zod is 27 of what is over 30. */
const BOUNDS: Record<string, number> = {
  'a minimal router': 101,
  relayscope: 105,
  'relayscope/memory': 82,
  'relayscope/redis': 140,
  'relayscope/cooperative-site': 77,
  'relayscope/control-server': 55,
  // With `connectApplication`; the publisher alone is 3.
  'relayscope/publisher': 6.5,
  // The contract's own bound is 6.
  'relayscope/browser': 5.4,
  // With the page, which is 42 kB of it.
  'relayscope/dashboard': 93,
  'relayscope/metrics': 62,
  // Without the SDK, which a host installs, as those of MCP.
  'relayscope/opentelemetry': 3.5,
  'relayscope/probes': 52,
  'relayscope/mcp': 49,
  'relayscope/express': 4.6,
  'relayscope/hono': 3,
  // With `recordingDirectory`, which a bundle has although it is loaded late.
  'relayscope/node': 7.5,
  'relayscope/deno': 3,
  'relayscope/ws': 8.4,
  'relayscope/socket.io': 8,
  'relayscope/follow': 8.6,
  'relayscope/playwright': 4.9,
  'relayscope/bullmq': 46,
  // With the router that answers from it.
  'relayscope/incident': 121,
  'relayscope/testing': 64,
  'relayscope/schemas': 55,
}

/** Of what has no bound of its own: adapters. */
const BOUND = 5.9

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
      external: ['node:*', 'redis', 'ioredis', '@modelcontextprotocol/*', '@opentelemetry/*'],
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
    expect(size, `${size.toFixed(1)} KiB gzipped`).toBeLessThanOrEqual(bound)
  })
})
