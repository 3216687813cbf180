/** Searches histories for broken rules, or replays one. Run by `npm run simulate`. */
import { bundleLibrary } from './bundle.js'
import { configOf, type Profile, type StoreKind } from './config.js'
import { runHistory } from './history.js'
import { missingForStore, startStore } from './store.js'

const USAGE = `usage: npm run simulate -- [--store memory|redis|redis-sharded] [--seed N [--trace]] [--from N] [--minutes N] [--count N] [--profile NAME]`

function readOptions(args: readonly string[]): Record<string, string> {
  const options: Record<string, string> = {}
  for (let i = 0; i < args.length; i++) {
    const name = args[i]?.replace(/^--/, '') ?? ''
    if (!['store', 'seed', 'trace', 'from', 'minutes', 'count', 'profile'].includes(name)) throw new Error(USAGE)
    options[name] = name === 'trace' ? 'yes' : (args[++i] ?? '')
  }
  return options
}

export async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const kind = (options.store ?? 'redis') as StoreKind
  const missing = kind === 'memory' ? [] : missingForStore()
  if (missing.length > 0) throw new Error(`this store needs ${missing.join(' and ')}`)
  const over = options.profile ? { profile: options.profile as Profile } : {}
  const load = await bundleLibrary()
  const store = kind === 'memory' ? null : await startStore()
  const endsAt = performance.now() + Number(options.minutes ?? 1) * 60_000
  const began = process.cpuUsage()
  let seed = Number(options.seed ?? options.from ?? Math.floor(Math.random() * 1e9))
  let histories = 0
  let broken = 0
  try {
    for (; histories < Number(options.count ?? Number.POSITIVE_INFINITY); seed++) {
      const { history, world, digest } = await runHistory(configOf(seed, kind, over), load, store, !!options.trace)
      histories++
      if (options.trace) console.log(world.trace.join('\n'))
      if (history.violations.length > 0) broken++
      for (const { rule, about, at } of history.violations.slice(0, options.seed ? 50 : 3))
        console.log(`seed ${seed} (${history.config.profile}): ${rule} at ${at} ms: ${about}`)
      if (options.seed) {
        const { operations, handovers, faults, viewers } = history
        console.log(`seed ${seed}: digest ${digest}`, { ...history.config, faults: faults.length })
        console.log({
          operations: operations.length,
          commands: world.commands,
          handovers: handovers.length,
          viewers: viewers.length,
          ...world.stats,
        })
        break
      }
      if (performance.now() > endsAt) break
    }
  } finally {
    store?.stop()
  }
  const { user, system } = process.cpuUsage(began)
  const perMinute = Math.round((histories / (user + system)) * 60e6)
  console.log(`${histories} histories, ${broken} with a broken rule; ${perMinute} histories a CPU minute`)
  return broken === 0 ? 0 : 1
}
