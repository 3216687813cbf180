// What the check of inputs and the tracing channels cost: calls of the memory facilities as they are, against the same source
// with a check that ignores unknown fields, with none at all, and without channels. All run in one process, interleaved; the
// goals are for refusing unknown fields by name, and for channels without a subscriber. The callers pass every field that has
// a default.
// Run: node bench/inputs.mjs
import { readFile, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { dashboardAssets } from '../tools/dashboard-assets.mjs'
import { esbuildLua } from '../tools/lua.mjs'
import { check, report } from './report.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROUNDS = 60
const CALLS = 1_000
const GOAL = 1.05
/** Of a call, with the check of its arguments against the same without. */
const CHECK_GOAL = 1.5
const UNTRACED_GOAL = 1.02

/** Bundles a module of `src/internal/contract` as `change` makes it. */
const changed = (module, change) => ({
  name: module,
  setup({ onLoad }) {
    onLoad({ filter: new RegExp(`src/internal/contract/${module}\\.ts$`) }, async ({ path }) => {
      const before = await readFile(path, 'utf8')
      const contents = change(before)
      if (before === contents) throw new Error(`${path} has changed: adapt this benchmark`)
      return { contents, loader: 'ts' }
    })
  },
})

const VARIANTS = {
  strict: [],
  loose: [
    changed('options', (text) =>
      text
        .replace(/z\.strictObject\(shape, \{[\s\S]*?\n {2}\}\)/, 'z.object(shape)')
        .replace('schema.safeParse(withoutIdentity(schema, value))', 'schema.safeParse(value)'),
    ),
  ],
  none: [
    changed('options', (text) => text.replace(/(export function parseInput<[^\n]*\n)/, '$1  return value as never\n')),
  ],
  untraced: [
    changed('channels', (text) =>
      text.replace(/(export function publish(?:Commands|Calls)<.*\((\w+): T\): T \{\n)/g, '$1  return $2\n'),
    ),
  ],
}

async function load(name, plugins) {
  const outfile = fileURLToPath(new URL(`.inputs-${name}-${process.pid}.mjs`, import.meta.url))
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/memory/index.ts'],
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    packages: 'external',
    external: ['node:*'],
    target: 'es2023',
    define: { RELAYSCOPE_VERSION: '"bench"', ...(await dashboardAssets()) },
    plugins: [esbuildLua, ...plugins],
    outfile,
  })
  try {
    return await import(outfile)
  } finally {
    await rm(outfile)
  }
}

const CLIENTS = 100
const clientOf = (n) => ({
  user_id: `user-${n % 20}`,
  client_id: `client-${n % CLIENTS}`,
  instance_id: `instance-${n % CLIENTS}`,
})
const metadata = { version: '1.2.3', platform: 'linux', screen: { width: 1920, height: 1080 } }
const actions = ['open_tab', 'close_tab'].map((name) => ({ name, description: null, parameters_schema: null }))
let ids = 0

/** The calls that are measured, by name. Each returns what the two variants must agree on. */
const CALLS_OF = {
  'connections.connect': async ({ connections }, n) => {
    const { status } = await connections.connect({ ...clientOf(n), client_type: 'web', actions, metadata })
    return status
  },
  'dispatcher.dispatch and settle': async ({ dispatcher }, n) => {
    const { user_id, client_id } = clientOf(n)
    const key = { user_id, client_id, command_id: `command-${++ids}` }
    const payload = { text: 'a note', tags: ['one', 'two'], at: 7 }
    const { admission } = await dispatcher.dispatch({ ...key, action: 'add_note', payload, deadline_ms: 60_000 })
    return [admission.state, await dispatcher.settle({ ...key, state: 'resulted' })]
  },
  'contexts.report': async ({ contexts }, n) => {
    const input = { ...clientOf(n), client_type: 'web', context_id: `context-${n % CLIENTS}`, window_id: null }
    const { status } = await contexts.report({ ...input, status: 'active', ownership: 'user-owned' })
    return status
  },
}

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]

async function time(call, facilities) {
  const start = process.cpuUsage()
  for (let n = 0; n < CALLS; n++) await call(facilities, n)
  return process.cpuUsage(start).user / CALLS
}

const worlds = {}
for (const [name, plugins] of Object.entries(VARIANTS))
  worlds[name] = (await load(name, plugins)).createMemoryFacilities({ dispatcher: { maxTracked: 1_000_000 } })

const misspelt = { ...clientOf(0), client_type: 'web', metadat: {} }
const refused = await worlds.strict.connections.connect(misspelt).catch(({ message }) => message)
check('a mistyped field is refused by name', refused.includes('Did you mean "metadata"?'), true)

const names = Object.keys(worlds)
for (const [what, call] of Object.entries(CALLS_OF)) {
  const wanted = await call(worlds.none, 0)
  const times = Object.fromEntries(Object.keys(worlds).map((name) => [name, []]))
  for (const [name, facilities] of Object.entries(worlds))
    check('every variant gives the same answer', await call(facilities, 0), wanted, 1, `${name}, ${what}`)
  for (let round = -3; round < ROUNDS; round++)
    // In another order each time, so that none always runs after the same one.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const us = await time(call, worlds[name])
      if (round >= 0) times[name].push(us)
    }
  // By round, so that what the machine does meanwhile affects both.
  const against = (name) => median(times.strict.map((us, round) => us / times[name][round]))
  console.log(
    `${what}: ${Object.entries(times)
      .map(([name, list]) => `${name} ${median([...list]).toFixed(2)} µs`)
      .join(', ')}`,
  )
  report([
    {
      what: `${what}: refusing unknown fields, against ignoring them`,
      goal: GOAL,
      found: against('loose'),
      unit: '×',
      better: 'lower',
    },
    {
      what: `${what}: with its check, against none`,
      goal: CHECK_GOAL,
      found: against('none'),
      unit: '×',
      better: 'lower',
    },
    // Only calls that have a channel.
    ...(what.startsWith('dispatcher')
      ? [
          {
            what: `${what}: with channels that have no subscriber, against none`,
            goal: UNTRACED_GOAL,
            found: against('untraced'),
            unit: '×',
            better: 'lower',
          },
        ]
      : []),
  ])
}
await Promise.all(Object.values(worlds).map(({ close }) => close()))
