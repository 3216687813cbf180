import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig, type Plugin, type TestUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { dashboardAssets } from './tools/dashboard-assets.mjs'
import { viteLua } from './tools/lua.mjs'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

/**
 * What `npm test` leaves to `npm run test:all`: tests that need the built package, another runtime, a browser on every page,
 * or much time. Everything else imports `src`.
 */
const FULL = [
  'test/adapters/battery-runtimes.test.ts',
  'test/campaign/**/*.test.ts',
  'test/cli/{get,incident,observe,top}.test.ts',
  'test/diagnostics/openapi-tools.test.ts',
  'test/end-to-end/{cooperative,examples,feeding,incident,live-host*}.test.ts',
  'test/repository/{generated,openapi-host}.test.ts',
  'test/mcp/{stdio,tools-stdio}.test.ts',
  'test/metrics/{bridge,prometheus}.test.ts',
  'test/package/**/*.test.ts',
  'test/plugs/{bullmq,examples,playwright}.test.ts',
  'test/redis/{beyond-bounds,beyond-bounds-kept,failover,hostile-numbers,hostile-writers,observer-example,route-replies,scope}.test.ts',
  'test/simulation/defects.test.ts',
  'test/dashboard/{accessible,demo,filters,hostile,idle,incident,key,keys,live,live-host,live-host-redis,narrowed,pictures,words}.test.ts',
  'test/views/large-worlds.test.ts',
]

/** Inserts the dashboard's page where it is used. To bundle it takes seconds, which no run should begin with. */
const viteDashboard: Plugin = {
  name: 'dashboard',
  enforce: 'pre',
  async transform(text, id) {
    if (!/\/src\/dashboard\/dashboard\.ts(?:\?|$)/.test(id)) return
    assets ??= dashboardAssets()
    const constants = await assets
    const code = text.replace(/^declare const (\w+): string$/gm, (_, name) => `const ${name} = ${constants[name]}`)
    return { code, map: null }
  },
}
let assets: Promise<Record<string, string>> | undefined

/** What takes longest and does not show it by its size: last, it would run alone while the other workers idle. */
const LONG = ['test/package/', 'test/simulation/', 'test/end-to-end/', 'test/redis/silent-link', 'test/redis/endings']

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((name) => moduleId.includes(`/${name}`))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** What each project has: without `extends`, which would load this file anew for each and ignore `--maxWorkers`. */
const shared = () => ({
  plugins: [viteLua, viteDashboard],
  // Vitest moves what it reads here into the settings of one project.
  define: { RELAYSCOPE_VERSION: JSON.stringify(version) },
})
const settings = {
  // Processes, not threads: tests start servers, count handles and send signals.
  pool: 'forks',
  setupFiles: ['test/setup.ts'],
  // A worker keeps what it has loaded for its next file: to load it again for each took a fifth of all time.
  isolate: false,
  // What runs at once within a file says so, and bounds itself.
  maxConcurrency: 200,
  // No test asserts a time; these only end what hangs, on a machine that may be shared by many.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 60_000, interval: 20 } },
} satisfies TestUserConfig

export default defineConfig({
  ...shared(),
  test: {
    // `npx vitest run <file>` finds a file in whichever of the two it is.
    projects: [
      { ...shared(), test: { ...settings, name: 'fast', include: ['test/**/*.test.ts'], exclude: FULL } },
      { ...shared(), test: { ...settings, name: 'full', include: FULL, globalSetup: ['test/built.ts'] } },
    ],
    // Tests mostly wait: for stores, browsers, other processes. One worker a core would leave the cores idle.
    maxWorkers: Math.max(6, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    // An unhandled rejection anywhere is a defect of the library, never noise.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
