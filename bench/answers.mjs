/**
 * What the routes cost that answer "why" and "what happened", by the number of records: 1 k to 1 M in memory, and 10 k and
 * 100 k in a Redis that the bench starts, with the number of commands that the store runs for each. Each size takes turns
 * with the smallest in the same process. Build first; run with `node --expose-gc --max-old-space-size=8000 bench/answers.mjs [--memory sizes] [--redis sizes]`, sizes as
 * `1000,10000`.
 */
import { parseArgs } from 'node:util'
import { bestOf, createHost, request } from './records.mjs'
import { check, report } from './report.mjs'

const { values } = parseArgs({
  options: {
    memory: { type: 'string', default: '1000,10000,100000,1000000' },
    redis: { type: 'string', default: '10000,100000' },
  },
})
const sizesOf = (text) => text.split(',').filter(Boolean).map(Number)

/** The goal: no more than this from the smallest size to the greatest. */
const GOAL = 1.5
/** Client 1 is the same one in every size. */
const ROUTES = [
  { path: '/rpc/ended?limit=50', requests: 100, rounds: 12 },
  { path: '/delivery/why?user_id=user-1&client_id=client-1&command_id=k', requests: 100, rounds: 12 },
  { path: '/delivery/churn', requests: 100, rounds: 12 },
  { path: '/delivery/summary', requests: 100, rounds: 12 },
  // These read a bounded number of records of each list.
  { path: '/search?q=user-1', requests: 10, rounds: 8 },
  { path: '/findings/summary', requests: 4, rounds: 8 },
]

/** What each answer must contain, whatever the size. */
const CONTENTS = {
  '/rpc/ended': ({ items }) => items.length === 50 && items.every(({ outcome }) => outcome === 'succeeded'),
  '/delivery/why': ({ links }) => links.some(({ holds }) => holds === true),
  '/delivery/churn': ({ items }) => items.some(({ admitted }) => admitted > 0),
  '/delivery/summary': ({ by_state }) => by_state.waiting > 0,
  '/search': ({ hits }) => hits.some(({ id, match }) => id === 'user-1' && match === 'exact'),
  '/findings/summary': ({ kinds }) => kinds.some(({ count }) => count > 0),
}

const routeOf = (path) => path.split('?')[0]

async function checkContents({ router }, place) {
  for (const { path } of ROUTES) {
    const { status, body } = await router.reply(request(path))
    const isRight = status === 200 && CONTENTS[routeOf(path)](JSON.parse(body))
    check('every answer has what was recorded', isRight, true, 1, `${path}, ${place}: ${body.slice(0, 300)}`)
  }
}

/** Commands of the store for one request: the fewest of some over a while, because nodes report and clean up in between. */
async function commandsOf({ router, redis }, path) {
  let fewest = Number.POSITIVE_INFINITY
  for (let i = 0; i < 10; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    const before = await redis.commands()
    await router.reply(request(path))
    fewest = Math.min(fewest, (await redis.commands()) - before)
  }
  return fewest
}

async function reportCommands(host, size) {
  const counts = new Map()
  for (const { path } of ROUTES) {
    const found = await commandsOf(host, path)
    counts.set(path, found)
    const what = `commands of ${routeOf(path)}, ${size} records in Redis`
    report([{ what, goal: null, found, unit: '', better: 'lower' }])
  }
  return counts
}

async function measure(place, [least, ...greater], isInRedis) {
  if (least === undefined) return
  const small = await createHost(least, { isInRedis })
  await checkContents(small, `${least} in ${place}`)
  const fewest = isInRedis && (await reportCommands(small, least))
  const costs = (path, size, found) => {
    const what = `${routeOf(path)}, ${size} records in ${place}`
    report([{ what, goal: null, found, unit: 'µs', better: 'lower' }])
  }
  const growths = new Map()
  for (const size of greater) {
    const large = await createHost(size, { isInRedis })
    await checkContents(large, `${size} in ${place}`)
    const counts = isInRedis && (await reportCommands(large, size))
    if (counts && size === greater.at(-1))
      for (const [path, found] of counts) {
        const what = `commands of ${routeOf(path)}, from ${least} to ${size} records in Redis`
        report([{ what, goal: GOAL, found: found / fewest.get(path), unit: '×', better: 'lower' }])
      }
    globalThis.gc?.()
    for (const { path, requests, rounds } of ROUTES) {
      const [before, { all }] = await bestOf([small, large], path, { requests, rounds })
      if (size === greater[0]) costs(path, least, before.all)
      costs(path, size, all)
      growths.set(path, all / before.all)
    }
    await large.close()
  }
  for (const { path } of ROUTES)
    if (growths.has(path)) {
      const what = `${routeOf(path)}, from ${least} to ${greater.at(-1)} records in ${place}`
      report([{ what, goal: GOAL, found: growths.get(path), unit: '×', better: 'lower' }])
    }
  await small.close()
}

await measure('memory', sizesOf(values.memory), false)
await measure('Redis', sizesOf(values.redis), true)
process.exit(0)
