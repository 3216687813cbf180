import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

// Vitest prints failures with Map.groupBy, which Node 20 lacks: without it, a failure hides what failed.
Map.groupBy ??= <K, T>(items: Iterable<T>, keyOf: (item: T, index: number) => K) => {
  const groups = new Map<K, T[]>()
  let index = 0
  for (const item of items) {
    const key = keyOf(item, index++)
    groups.set(key, [...(groups.get(key) ?? []), item])
  }
  return groups
}

export default defineConfig({
  define: { RELAYSCOPE_VERSION: JSON.stringify(version) },
  test: {
    include: ['test/**/*.test.ts'],
    // Processes, not threads: tests start servers, count handles and send signals.
    pool: 'forks',
    // Tests mostly wait: for stores, browsers, other processes. One worker a core would leave the cores idle.
    maxWorkers: Math.max(4, availableParallelism()),
    // No test asserts a time; these only end what hangs, on a machine that may be shared by many.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // An unhandled rejection anywhere is a defect of ours, never weather.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
