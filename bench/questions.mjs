/**
 * What the operators' questions cost over 100 k and 1 M records in memory, each route as a whole request, compared with
 * the same over 1 k records. Build first; run with `node --expose-gc
 * --max-old-space-size=8000 bench/questions.mjs [--redis] [sizes…]`. With `--redis` the records are in a Redis that the
 * bench starts, and the CPU of the observer and of the store are reported separately.
 */
import { bestOf, createHost, request } from './records.mjs'
import { check, report } from './report.mjs'

const IN_REDIS = process.argv[2] === '--redis'
const GIVEN = process.argv.slice(IN_REDIS ? 3 : 2).map(Number)
const SIZES = GIVEN.length > 0 ? GIVEN : [1_000, 100_000, ...(IN_REDIS ? [] : [1_000_000])]
const ROUNDS = IN_REDIS ? 6 : 12
const REQUESTS = IN_REDIS ? 20 : 100
const ROUTES = [
  '/delivery/commands?limit=50',
  '/delivery/commands?state=waiting&limit=50',
  '/delivery/commands?overdue=true&limit=50',
  '/delivery/commands?order=oldest&limit=50',
  '/delivery/why?user_id=user-7&client_id=client-7&command_id=k',
  '/delivery/summary',
  '/delivery/churn',
  '/delivery/mailboxes?limit=50',
  '/delivery/tenants?scope_id=user-1',
  '/rpc/summary',
  '/rpc/pending?limit=50',
  '/rpc/ended?limit=50',
  '/connections/churn',
  '/connections/events?limit=50',
  '/connections?limit=50',
  '/connections?node_id=node-1&limit=50',
  '/connections?ended_reason=client_left&limit=50',
  '/sites?limit=50',
  '/sessions?limit=50',
  '/subscriptions',
  '/sources',
]
/** An answer over many records, reported by itself; `answers` measures the others. */
const AGGREGATES = ['/findings?limit=50']
/** An aggregate reads thousands of records: fewer requests make a round. */
const AGGREGATE_REQUESTS = 2

/** The router counts what was added. */
async function checkCounts(host, size) {
  const { body } = await host.router.reply(request('/connections/count?status=disconnected'))
  check(`of ${size} connections a tenth is disconnected`, JSON.parse(body).total, size / 10, size)
}

async function saidBy({ router }, path) {
  const { items, has_more } = JSON.parse((await router.reply(request(path))).body)
  return items ? `${items.length} items${has_more ? ', and more' : ''}` : ''
}

/** The largest growth of any route from the smallest size to this one. */
const GOAL = 1.5
const [least = 0, ...greater] = SIZES
const small = await createHost(least, { isInRedis: IN_REDIS })
await checkCounts(small, least)
for (const size of greater) {
  const large = await createHost(size, { isInRedis: IN_REDIS })
  await checkCounts(large, size)
  globalThis.gc?.()
  console.log(`${size} connections, calls and commands, compared with ${least} in the same process, alternating`)
  let worst = { path: '', ratio: 0 }
  for (const path of ROUTES) {
    const [before, { all, own, store }] = await bestOf([small, large], path, { requests: REQUESTS, rounds: ROUNDS })
    const ratio = all / before.all
    if (ratio > worst.ratio) worst = { path, ratio }
    const parts = IN_REDIS ? ` (${own.toFixed(0)} + ${store.toFixed(0)} of the store)` : ''
    console.log(
      `  ${path.padEnd(48)} ${all.toFixed(1).padStart(8)} µs   ${ratio.toFixed(2)} ×   ${await saidBy(large, path)}${parts}`,
    )
  }
  for (const path of AGGREGATES) {
    const most = { requests: AGGREGATE_REQUESTS, rounds: ROUNDS }
    const [before, { all }] = await bestOf([small, large], path, most)
    console.log(`  ${path.padEnd(72)} ${all.toFixed(1).padStart(8)} µs   ${(all / before.all).toFixed(2)} ×`)
    const [route] = path.split('?')
    const growth = `growth of ${route} from ${least} to ${size}`
    report([{ what: growth, goal: GOAL, found: all / before.all, unit: '×', better: 'lower' }])
  }
  const what = `greatest growth from ${least} to ${size}, ${worst.path}`
  report([{ what, goal: GOAL, found: worst.ratio, unit: '×', better: 'lower' }])
  await large.close()
}
await small.close()
