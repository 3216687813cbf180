import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Processes, not threads: tests start servers, count handles and send signals.
    pool: 'forks',
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // An unhandled rejection anywhere is a defect of ours, never weather.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
