import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig, type Plugin, type TestUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { dashboardAssets } from './tools/dashboard-assets.mjs'
import { viteLua } from './tools/lua.mjs'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

/** What `npm run search` runs, by hand and before a release: requests by chance, planted defects, every option of a store's client. */
const SEARCH = [
  'test/campaign/{faults,fuzz}.test.ts',
  'test/redis/client-options.test.ts',
  'test/simulation/defects.test.ts',
]

/**
 * What `npm test` leaves to `npm run test:all`: tests that need the built package, another runtime or a browser, and those
 * that let stores fail, let time pass, compare all of two stores, fill a store, or repeat one
 * request for each route, field or cut. Everything else imports `src`.
 */
const FULL = [
  'test/adapters/battery-runtimes.test.ts',
  'test/campaign/faults-check.test.ts',
  'test/cli/{get,incident,observe,status}.test.ts',
  'test/control-server/{documented,server,web-page}.test.ts',
  'test/dashboard/**/*.test.ts',
  'test/diagnostics/{garbage,openapi*,partial-records,paths,scope,table,tags,too-large}.test.ts',
  'test/end-to-end/{acknowledgements,cooperative,examples,feeding,incident,live-host*,published}.test.ts',
  'test/incident/{capture,diff,missing,recorder}.test.ts',
  'test/mcp/{access,honest,load,stdio,tools-stdio,trace}.test.ts',
  'test/memory/{delivery-model,versions}.test.ts',
  'test/metrics/prometheus.test.ts',
  'test/package/**/*.test.ts',
  'test/plugs/{bullmq*,examples,outage,playwright}.test.ts',
  'test/probes/kubernetes.test.ts',
  'test/redis/{ages,beyond-bounds*,commands,delivery-{faults,replies}}.test.ts',
  'test/redis/{endings,expired-entries,failover,faults,fence,findings,full-store}.test.ts',
  'test/redis/{history-late,hostile*,listener*,large-stores,local-topic,lossy,lost-shard}.test.ts',
  'test/redis/{merged,node-death,observer*,one-truth,order,resend,reshard,route-replies,rpc-late}.test.ts',
  'test/redis/{scope,second-arrival,shard-count,silent-link,spill-late,store-commands,subscriber-link}.test.ts',
  'test/redis/{subscriptions-late,writes-again}.test.ts',
  'test/repository/{generated,openapi-host}.test.ts',
  'test/simulation/seeds.test.ts',
  'test/testing/contracts.test.ts',
  'test/views/{counts,large-worlds}.test.ts',
]

/** Bounds of the library that end what takes long: in a test, a busy machine must not reach them. Tests of a bound set it. */
const BOUNDS: readonly [file: string, bound: string, patient: string][] = [
  ['redis/store/store.ts', 'commandTimeoutMs: timer(2_000)', 'commandTimeoutMs: timer(60_000)'],
  ['redis/store/warnings.ts', 'const WARNINGS_MS = 900', 'const WARNINGS_MS = 4_500'],
  ['internal/diagnostics/options.ts', 'deadlineMs: timer(5_000)', 'deadlineMs: timer(90_000)'],
  ['internal/diagnostics/sources.ts', 'const SOURCE_MS = 1_000', 'const SOURCE_MS = 5_000'],
  ['internal/views/findings/detector.ts', 'const SOURCE_MS = 1_000', 'const SOURCE_MS = 5_000'],
  ['internal/views/findings/list.ts', 'const FIRST_SCAN_MS = 1_500', 'const FIRST_SCAN_MS = 15_000'],
  ['internal/views/counts.ts', 'const NODES_MS = 1_000', 'const NODES_MS = 5_000'],
  ['metrics/options.ts', 'deadlineMs: timer(1_000)', 'deadlineMs: timer(60_000)'],
  ['internal/contract/history.ts', 'spillMs: timer(2_000)', 'spillMs: timer(60_000)'],
  ['internal/contract/history.ts', 'hydrationMs: timer(2_000)', 'hydrationMs: timer(60_000)'],
  ['bullmq/queue.ts', 'TIMEOUT_MS = 2_000', 'TIMEOUT_MS = 60_000'],
  ['publisher/application-link.ts', 'const REPLY_MS = 10_000', 'const REPLY_MS = 300_000'],
  ['incident/recorder.ts', 'SLOW_MS = 250', 'SLOW_MS = 60_000'],
  ['incident/recorder.ts', 'LATE_MS = 2_000', 'LATE_MS = 120_000'],
  ['incident/source.ts', 'REQUEST_MS = 10_000', 'REQUEST_MS = 120_000'],
  ['incident/writer.ts', 'WRITE_MS = 5_000', 'WRITE_MS = 60_000'],
]
const vitePatience: Plugin = {
  name: 'patience',
  enforce: 'pre',
  transform(text, id) {
    let code = text
    for (const [file, bound, patient] of BOUNDS) {
      if (!id.endsWith(`/src/${file}`)) continue
      if (!code.includes(bound)) throw new Error(`vitest.config.ts: src/${file} has no "${bound}"`)
      code = code.replace(bound, patient)
    }
    return code === text ? undefined : { code, map: null }
  },
}

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
const LONG = [
  ...['test/package/', 'test/simulation/', 'test/end-to-end/', 'test/redis/silent-link', 'test/redis/endings'],
  // These mostly wait, for bounds of the library that are long in tests.
  ...['test/diagnostics/findings.test', 'test/redis/event-bus.test', 'test/redis/ingest', 'test/redis/idempotency'],
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((name) => moduleId.includes(`/${name}`))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** What each project has: without `extends`, which would load this file anew for each and ignore `--maxWorkers`. */
const shared = () => ({
  plugins: [viteLua, vitePatience, viteDashboard],
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
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 300_000, interval: 20 } },
} satisfies TestUserConfig

/** What takes half a minute alone may take many on a busy machine. */
const long = { testTimeout: 900_000, hookTimeout: 900_000 }

export default defineConfig({
  ...shared(),
  test: {
    // `npx vitest run <file>` finds a file in whichever it is.
    projects: [
      {
        ...shared(),
        test: { ...settings, name: 'fast', include: ['test/**/*.test.ts'], exclude: [...FULL, ...SEARCH] },
      },
      { ...shared(), test: { ...settings, ...long, name: 'full', include: FULL, globalSetup: ['test/built.ts'] } },
      { ...shared(), test: { ...settings, ...long, name: 'search', include: SEARCH, globalSetup: ['test/built.ts'] } },
    ],
    // Tests also wait: for stores, browsers, other processes. Each worker loads the library for itself, in seconds.
    maxWorkers: Math.max(4, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    reporters: ['minimal', './tools/test-reporter.mjs'],
    // An unhandled rejection anywhere is a defect of the library, never noise.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
