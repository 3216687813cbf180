/** Searches histories for broken rules, or replays one. Run by `npm run simulate`. */
import { bundleLibrary } from './bundle.js'
import { configOf, type Profile, type StoreKind } from './config.js'
import { DEFECTS, type Defect, plant } from './defects.js'
import { runHistory } from './history.js'
import { missingForStore, startStore } from './store.js'

const USAGE = `usage: npm run simulate -- [--store memory|redis|redis-sharded] [--seed N [--trace]] [--from N] [--minutes N] [--count N] [--profile NAME]
       npm run simulate -- --defects PART-OF-NAME [--count N]`

function readOptions(args: readonly string[]): Record<string, string> {
  const options: Record<string, string> = {}
  for (let i = 0; i < args.length; i++) {
    const name = args[i]?.replace(/^--/, '') ?? ''
    if (!['store', 'seed', 'trace', 'from', 'minutes', 'count', 'profile', 'defects'].includes(name))
      throw new Error(USAGE)
    options[name] = name === 'trace' ? 'yes' : (args[++i] ?? '')
  }
  return options
}

/** Looks for each planted defect, from the seed that is noted for it on. */
async function findDefects(names: string, count: number): Promise<number> {
  const store = missingForStore().length > 0 ? null : await startStore()
  let alive = 0
  const find = async (defect: Defect): Promise<string> => {
    if (defect.store !== 'memory' && !store) return 'not tried: this machine has no store for it'
    const load = await bundleLibrary(plant(defect))
    const began = performance.now()
    for (let seed = defect.seed; seed < defect.seed + count; seed++) {
      const config = configOf(seed, defect.store, defect.profile ? { profile: defect.profile } : {})
      const { history } = await runHistory(config, load, defect.store === 'memory' ? null : store)
      const rules = [...new Set(history.violations.map(({ rule }) => rule))]
      const seconds = ((performance.now() - began) / 1_000).toFixed(1)
      if (rules.some((rule) => defect.rules.includes(rule))) return `seed ${seed}, ${seconds} s: ${rules.join(', ')}`
      if (rules.length > 0) console.log(`  ${defect.name}: seed ${seed} breaks only ${rules.join(', ')}`)
    }
    alive++
    return 'NOT FOUND'
  }
  try {
    for (const defect of DEFECTS.filter(({ name }) => name.includes(names)))
      console.log(`${defect.name}: ${await find(defect)}`)
  } finally {
    store?.stop()
  }
  return alive === 0 ? 0 : 1
}

export async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (options.defects !== undefined) return findDefects(options.defects, Number(options.count ?? 60))
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
