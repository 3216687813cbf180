/** Holds what a page pays for the browser client. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

const ENTRY = fileURLToPath(new URL('../../src/browser/index.ts', import.meta.url))
const KIB = 1024

describe('the browser bundle', () => {
  it('is at most 6 KiB minified and gzipped, including shared code', async () => {
    const built = await build({
      stdin: { contents: `export { createCooperativeSiteClient } from ${JSON.stringify(ENTRY)}`, resolveDir: '.' },
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'browser',
      target: 'es2023',
      write: false,
      metafile: true,
    })
    const [output] = built.outputFiles
    expect(gzipSync(output?.contents as Uint8Array).byteLength).toBeLessThanOrEqual(6 * KIB)
    const inputs = Object.keys(built.metafile.inputs).filter((path) => path !== '<stdin>')
    expect(
      inputs.filter(
        (path) =>
          !/^src\/(?:(?:browser|internal\/(?:relay-client|async))\/|internal\/contract\/checks\.ts$)/.test(path),
      ),
    ).toEqual([])
  })
})
