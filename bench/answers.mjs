/**
 * What the routes cost that answer "why" and "what happened", by the number of records: 1 k to 1 M in memory, and 10 k and
 * 100 k in a Redis that the bench starts. Each size takes turns with the smallest in the same process. Build first; run
 * with `node --expose-gc --max-old-space-size=8000 bench/answers.mjs [--memory sizes] [--redis sizes]`, sizes as
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

/** The goal for routes that read one page, or one record: no more than this from the smallest size to the greatest. */
const GOAL = 1.5
/** Client 1 is the same one in every size. */
const ROUTES = [
  { path: '/rpc/ended?limit=50', goal: GOAL, requests: 100, rounds: 12 },
  { path: '/delivery/why?user_id=user-1&client_id=client-1&command_id=k', goal: GOAL, requests: 100, rounds: 12 },
  { path: '/delivery/churn', goal: GOAL, requests: 100, rounds: 12 },
  // These read as many records as a request may, so they grow until that limit.
  { path: '/search?q=user-1', goal: null, requests: 2, rounds: 4 },
  { path: '/findings/summary', goal: null, requests: 2, rounds: 4 },
]

/** What each answer must contain, whatever the size. */
const CONTENTS = {
  '/rpc/ended': ({ items }) => items.length === 50 && items.every(({ outcome }) => outcome === 'succeeded'),
  '/delivery/why': ({ links }) => links.some(({ holds }) => holds === true),
  '/delivery/churn': ({ items }) => items.some(({ admitted }) => admitted > 0),
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

async function measure(place, [least, ...greater], isInRedis) {
  if (least === undefined) return
  const small = await createHost(least, { isInRedis })
  await checkContents(small, `${least} in ${place}`)
  const costs = (path, size, found) =>
    report([{ what: `${routeOf(path)}, ${size} records in ${place}`, goal: null, found, unit: 'µs', better: 'lower' }])
  const growths = new Map()
  for (const size of greater) {
    const large = await createHost(size, { isInRedis })
    await checkContents(large, `${size} in ${place}`)
    globalThis.gc?.()
    for (const { path, requests, rounds } of ROUTES) {
      const [before, { all }] = await bestOf([small, large], path, { requests, rounds })
      if (size === greater[0]) costs(path, least, before.all)
      costs(path, size, all)
      growths.set(path, all / before.all)
    }
    await large.close()
  }
  for (const { path, goal } of ROUTES)
    if (growths.has(path)) {
      const what = `${routeOf(path)}, from ${least} to ${greater.at(-1)} records in ${place}`
      report([{ what, goal, found: growths.get(path), unit: '×', better: 'lower' }])
    }
  await small.close()
}

await measure('memory', sizesOf(values.memory), false)
await measure('Redis', sizesOf(values.redis), true)
process.exit(0)
