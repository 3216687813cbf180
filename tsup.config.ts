import { readFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'
import { FACES } from './tools/faces.mjs'
import { viewerAssets } from './tools/viewer-assets.mjs'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
// It is built apart, below.
const { 'browser/index': browser, ...faces } = FACES

const shared = {
  format: 'esm',
  target: 'es2023',
  platform: 'neutral',
  // A bundle of declarations is always made whole.
  dts: { compilerOptions: { incremental: false } },
  treeshake: true,
  // Deno and Bun know Node's modules by this name alone.
  removeNodeProtocol: false,
  external: [/^node:/],
  define: { RELAYSCOPE_VERSION: JSON.stringify(version), ...(await viewerAssets()) },
} satisfies Options

export default defineConfig([
  {
    ...shared,
    entry: { ...faces, 'cli/observe': 'src/cli/observe.ts' },
    splitting: true,
  },
  {
    ...shared,
    // One file, so that a host without a bundler can serve it to its pages as it is.
    entry: { index: browser as string },
    outDir: 'dist/browser',
    splitting: false,
  },
])
