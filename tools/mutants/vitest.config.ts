/** The tests that `npm run mutants:ts` runs against each change of the source. */
import { defineConfig } from 'vitest/config'
import { viteLua } from '../lua.mjs'

export default defineConfig({
  plugins: [viteLua],
  define: { RELAYSCOPE_VERSION: '"0.1.0"' },
  test: { include: ['test/{http,views}/**/*.test.ts'], testTimeout: 120_000 },
})
