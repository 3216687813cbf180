/** What a bundle grows by: each subpath, and the smallest use of the router, minified and gzipped with all they import. */
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Consumer, createConsumer } from './consumer.js'

/** KiB, about a tenth above what was measured: a jump is a mistake, growth a decision. zod is 27 of what is over 30. */
const BOUNDS: Record<string, number> = {
  'a minimal router': 50,
  relayscope: 55,
  'relayscope/memory': 52,
  'relayscope/redis': 88,
  'relayscope/cooperative-site': 52,
  'relayscope/control-server': 40,
  'relayscope/publisher': 2.5,
  // The contract's own bound is 6.
  'relayscope/browser': 3,
  'relayscope/node': 5,
  'relayscope/express': 3.5,
  'relayscope/hono': 1.8,
  'relayscope/deno': 1.8,
  'relayscope/testing': 50,
}

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
      external: ['node:*', 'redis', 'ioredis'],
      write: false,
    })
    return gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length / 1024
  }

  const programs: [name: string, program: string][] = [
    ['a minimal router', MINIMAL],
    ...Object.keys(BOUNDS)
      .filter((name) => name.startsWith('relayscope'))
      .map((path): [string, string] => [path, `export * from '${path}'`]),
  ]

  it.each(programs)('%s stays within its bound', async (name, program) => {
    const size = await sizeOf(program)
    console.log(`${name}: ${size.toFixed(1)} KiB gzipped, at most ${BOUNDS[name]}`)
    expect(size).toBeLessThanOrEqual(BOUNDS[name] as number)
  })

  it('bounds every subpath', () => {
    expect(consumer.subpaths.filter((path) => BOUNDS[path] === undefined)).toEqual([])
  })
})
