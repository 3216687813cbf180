import { readFileSync } from 'node:fs'
import { defineConfig, type Options } from 'tsup'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

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
  define: { RELAYSCOPE_VERSION: JSON.stringify(version) },
} satisfies Options

export default defineConfig([
  {
    ...shared,
    // One entry per public subpath of package.json's "exports".
    entry: {
      index: 'src/index.ts',
      'memory/index': 'src/memory/index.ts',
      'redis/index': 'src/redis/index.ts',
      'cli/observe': 'src/cli/observe.ts',
      'adapters/node': 'src/adapters/node.ts',
      'adapters/express': 'src/adapters/express.ts',
      'adapters/hono': 'src/adapters/hono.ts',
      'adapters/deno': 'src/adapters/deno.ts',
      'cooperative-site/index': 'src/cooperative-site/index.ts',
      'control-server/index': 'src/control-server/index.ts',
      'publisher/index': 'src/publisher/index.ts',
      'testing/index': 'src/testing/index.ts',
    },
    splitting: true,
  },
  {
    ...shared,
    // One file, so that a host without a bundler can serve it to its pages as it is.
    entry: { index: 'src/browser/index.ts' },
    outDir: 'dist/browser',
    splitting: false,
  },
])
