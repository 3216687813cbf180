/**
 * Fifty operators who ask for aggregates at once, over 10 k records in memory and in a Redis that the bench starts: the CPU
 * of a question, compared with one operator who asks one after the other; and how long the host's own work waits meanwhile,
 * compared with one operator. Build first; run with `node --expose-gc bench/operators.mjs [records]`.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { cpuMs, createHost } from './records.mjs'
import { check, report } from './report.mjs'

const RECORDS = Number(process.argv[2] ?? 10_000)
const OPERATORS = 50
/** Each over Redis takes a quarter of a minute. */
const ROUNDS = { memory: 3, Redis: 1 }
const AGGREGATES = [
  '/findings/summary',
  '/delivery/summary',
  '/rpc/summary',
  '/connections/count',
  '/connections/churn',
  '/delivery/churn',
  '/actions?limit=50',
  '/users?limit=50',
  '/search?q=user-1',
  '/delivery/why?user_id=user-1&client_id=client-1&command_id=k',
]
/** The same question of many at once, against one after the other. */
/** Of a host that answers all of them at once: below what its users notice. */
const TIMERS_MS = 100
const GOAL = 1.1

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

const questionOf = (operator, i) =>
  new Request(`http://localhost${AGGREGATES[(operator + i) % AGGREGATES.length]}`, {
    headers: { 'x-principal': `operator-${operator}` },
  })

/** One round of all questions: every operator asks every aggregate, each after its answer to the last one. */
async function roundOf({ router, redis }, isTogether) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const stored = (await redis?.cpuMs()) ?? 0
  const from = process.cpuUsage()
  const answers = []
  let slowest = 0
  const operate = async (operator) => {
    for (let i = 0; i < AGGREGATES.length; i++) {
      const start = performance.now()
      answers.push(await router.reply(questionOf(operator, i)))
      slowest = Math.max(slowest, performance.now() - start)
    }
  }
  delay.enable()
  if (isTogether) await Promise.all(Array.from({ length: OPERATORS }, (_, operator) => operate(operator)))
  else for (let operator = 0; operator < OPERATORS; operator++) await operate(operator)
  delay.disable()
  const all = cpuMs(from) + ((await redis?.cpuMs()) ?? 0) - stored
  const wrong = answers.filter(({ status }) => status !== 200).map(({ status, body }) => `${status} ${body}`)
  check('every operator gets every answer', wrong, [], answers.length)
  return { cpu: all / answers.length, longest: delay.percentile(99) / 1e6, slowest }
}

async function measure(place) {
  const host = await createHost(RECORDS, { isInRedis: place === 'Redis' })
  const [alone, together] = [[], []]
  await roundOf(host, true)
  globalThis.gc?.()
  for (let round = 0; round < ROUNDS[place]; round++) {
    alone.push(await roundOf(host, false))
    together.push(await roundOf(host, true))
  }
  const of = (rounds, name) => median(rounds.map((round) => round[name]))
  const said = `${OPERATORS} operators at once, ${RECORDS} records in ${place}`
  const better = 'lower'
  report([
    { what: `CPU of an aggregate, ${said}`, goal: null, found: of(together, 'cpu'), unit: 'ms', better },
    {
      what: `${said}: CPU, against one after the other`,
      goal: GOAL,
      found: median(together.map(({ cpu }, i) => cpu / alone[i].cpu)),
      unit: '×',
      better,
    },
    {
      what: `${said}: delay of the host's timers, 99th percentile`,
      goal: TIMERS_MS,
      found: of(together, 'longest'),
      unit: 'ms',
      better,
    },
    { what: `${said}: slowest answer`, goal: null, found: of(together, 'slowest'), unit: 'ms', better },
    { what: `the delay in ${place}, one after the other`, goal: null, found: of(alone, 'longest'), unit: 'ms', better },
  ])
  await host.close()
}

await measure('memory')
await measure('Redis')
process.exit(0)
