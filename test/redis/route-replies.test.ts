/** Every route while one reply of the store is lost or held: it returns correct or partial data, or an error. */
import type { EventEmitter } from 'node:events'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createClock } from '../contract/clock.js'
import { createTurns } from './in-turn.js'
import { lossyClient } from './lossy-client.js'
import type { Fault } from './lossy-plan.js'
import { type Answer, createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'
import { createIds, live } from './world.js'

const ID = 'id-2'.padEnd(32, 'x')
/** The requests for each route. */
const ASKED: Record<string, string[]> = {
  '/': ['/'],
  '/capabilities': ['/capabilities'],
  '/actions': ['/actions', '/actions?user_id=bob'],
  '/browser-windows': ['/browser-windows?limit=5', '/browser-windows?limit=500'],
  '/browser-windows/count': ['/browser-windows/count'],
  '/browser-windows/{window_id}': ['/browser-windows/window-3'],
  '/connections': [
    '/connections?limit=3',
    '/connections?limit=500',
    '/connections?user_id=bob',
    '/connections?ended_reason=client_closed',
  ],
  '/connections/churn': ['/connections/churn'],
  '/rpc/ended': ['/rpc/ended?limit=3', '/rpc/ended?user_id=bob'],
  '/rpc/ended/{correlation_id}': ['/rpc/ended/nope'],
  '/connections/events': ['/connections/events?limit=3', '/connections/events?user_id=bob'],
  '/connections/count': ['/connections/count', '/connections/count?user_id=bob'],
  '/connections/{connection_id}': [`/connections/${ID}`],
  '/connections/{connection_id}/history': [`/connections/${ID}/history`],
  '/contexts': ['/contexts?limit=3', '/contexts?limit=500'],
  '/contexts/count': ['/contexts/count', '/contexts/count?status=closed'],
  '/contexts/{context_id}': ['/contexts/context-1-0'],
  '/deduplicator/summary': ['/deduplicator/summary'],
  '/deduplicator/users/{user_id}': ['/deduplicator/users/bob'],
  '/delivery/churn': ['/delivery/churn'],
  '/delivery/commands': ['/delivery/commands', '/delivery/commands?user_id=bob'],
  '/delivery/mailboxes': ['/delivery/mailboxes'],
  '/delivery/nodes': ['/delivery/nodes'],
  '/delivery/status': ['/delivery/status?user_id=bob&client_id=client-0&command_id=k'],
  '/delivery/summary': ['/delivery/summary'],
  '/delivery/tenants': ['/delivery/tenants?limit=2', '/delivery/tenants'],
  '/delivery/why': ['/delivery/why?user_id=bob&client_id=client-0&command_id=k'],
  '/findings': ['/findings?limit=500'],
  '/search': ['/search?q=bob', `/search?q=${ID}`],
  '/findings/summary': ['/findings/summary'],
  '/history/messages': ['/history/messages?stream=users%2Fbob%2Flog'],
  '/history/streams': ['/history/streams?limit=3', '/history/streams'],
  '/openapi.json': ['/openapi.json'],
  '/rpc/instances/{instance_id}': ['/rpc/instances/instance-1-0?user_id=bob&client_id=client-0'],
  '/rpc/pending': ['/rpc/pending?limit=3', '/rpc/pending', '/rpc/pending?overdue=true'],
  '/rpc/pending/{correlation_id}': [`/rpc/pending/${'id-4'.padEnd(32, 'x')}`],
  '/rpc/summary': ['/rpc/summary'],
  '/sessions': ['/sessions?limit=3', '/sessions?owner=bob'],
  '/sessions/{session_id}': [`/sessions/${'id-5'.padEnd(32, 'x')}`],
  '/sites': ['/sites?limit=3', '/sites?owner=bob'],
  '/sites/{site_id}': ['/sites/site-1-0'],
  '/sources': ['/sources'],
  '/subscriptions': ['/subscriptions?limit=3', '/subscriptions?order=slowest', '/subscriptions?user_id=bob'],
  '/users': ['/users?limit=3', '/users?limit=500'],
  '/users/{user_id}/summary': ['/users/bob/summary', '/users/missing/summary'],
  '/workers': ['/workers?user_id=bob'],
  '/workers/available': ['/workers/available?user_id=bob'],
  '/workers/count': ['/workers/count?user_id=bob'],
  '/workers/tasks/{task_id}': ['/workers/tasks/task-1?user_id=bob'],
}

/** The fault, and which timeout ends the wait: that of a command, or that of the whole request. */
const CASES: [Fault, { commandTimeoutMs: number; deadlineMs: number }][] = [
  ['lost', { commandTimeoutMs: 30_000, deadlineMs: 60_000 }],
  ['held', { commandTimeoutMs: 1_000, deadlineMs: 60_000 }],
  ['held', { commandTimeoutMs: 30_000, deadlineMs: 1_000 }],
]
/** Number of concurrent requests, most of which wait. */
const AT_ONCE = 60
const REFUSALS = [
  [503, 'inspector_unavailable'],
  [504, 'inspector_timeout'],
]
/** On a busy machine the time of a request may be up before its caller is known. */
const NOT_AUTHENTICATED = [403, 'forbidden']

/**
 * Fields about the response rather than the data, the description from the latest reachable connection, and the oldest
 * finding of those that were found.
 */
const ABOUT = [
  'completeness',
  'cut',
  'exact',
  'next_cursor',
  'has_more',
  'description',
  'parameters_schema',
  'oldest_since',
  'sample',
]

/** Whether `given` equals `truth` or is part of it: no other number, and none that is greater. */
function isWithin(given: unknown, truth: unknown): boolean {
  if (given === null) return true
  if (typeof given === 'number') return typeof truth === 'number' && given <= truth
  if (Array.isArray(given))
    return Array.isArray(truth) && given.every((one) => truth.some((other) => isWithin(one, other)))
  if (typeof given !== 'object') return given === truth
  return (
    typeof truth === 'object' &&
    truth !== null &&
    Object.entries(given).every(([name, value]) => ABOUT.includes(name) || isWithin(value, truth[name as never]))
  )
}
/** Whether `given` equals `truth`, except for unknown values. */
function isKnown(given: unknown, truth: unknown): boolean {
  if (given === null || typeof given !== 'object') return given === null || given === truth
  if (typeof truth !== 'object' || truth === null) return false
  const names = Object.keys(given)
  return (
    names.length === Object.keys(truth).length &&
    names.every((name) => isKnown(given[name as never], truth[name as never]))
  )
}
/** Whether each source has a row with its status. */
function isAboutSources(given: Row[], truth: Row[]): boolean {
  const codes = [null, ...REFUSALS.map(([, code]) => code)]
  return (
    given.length === truth.length &&
    given.every(
      ({ source, answered, code }, i) =>
        source === truth[i]?.source && answered === (code === null) && codes.includes(code),
    )
  )
}
/** Whether each link is as in the truth, or unknown. */
function isAboutLinks({ links }: Why, truth: Why): boolean {
  return links.every(({ link, holds }, i) => {
    const real = truth.links[i]
    return link === real?.link && (holds === null || holds === real.holds)
  })
}
type Why = { links: { link: string; holds: boolean | null }[] }
type Row = { source: string; answered: boolean; code: string | null }
/** Whether a value is empty. */
const isNothing = (value: unknown): boolean =>
  typeof value !== 'number' ? !Array.isArray(value) || value.length === 0 : value === 0
const plain = (body: Record<string, unknown>) =>
  JSON.stringify({ ...body, completeness: { ...(body.completeness as object), examined: null } })

describeRedis('a route with one missing reply', () => {
  const clock = createClock()
  const where = { deploymentId: 'replies', now: clock.now }
  let server: Server
  let host: Connected
  let facilities: ReturnType<typeof createRedisFacilities>
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
    // Each observer adds a listener with its own client.
    ;(host.client as unknown as EventEmitter).setMaxListeners(0)
    const node = { newId: createIds(), rpc: { newId: createIds() }, nodeId: 'n', connections: { nodeId: null } }
    facilities = createRedisFacilities({ client: host.client, ...where, ...node, shards: 2 })
    await live(facilities, clock)
    for (const user_id of ['ann', 'bob', 'zoe'])
      await facilities.dispatcher.dispatch({ user_id, client_id: 'client-0', command_id: 'k', action: 'a' })
    // From here on the store holds still.
    await facilities.dispatcher.close()
  })
  afterAll(async () => {
    await facilities?.close()
    await host?.close()
    await server?.stop()
  })

  /** Returns the response of a new observer with its own client. */
  async function ask(path: string, bounds: (typeof CASES)[number][1], at?: { sent: string; fault: Fault }) {
    const { client, plan } = lossyClient(host.client)
    const { deadlineMs, commandTimeoutMs } = bounds
    if (at) void plan.meet(at.fault, (args) => JSON.stringify(args) === at.sent)
    const answer = await get(createObserver({ client, ...where, commandTimeoutMs }, deadlineMs), path)
    // Held replies are held until here: the response did not depend on them.
    await plan.release()
    return { answer, sent: [...new Set(plan.seen.map((args) => JSON.stringify(args)))] }
  }

  /** @param whole All data that a page is part of: if one source is unknown, later entries move up. */
  function wrongIn(answer: Answer, truth: Answer, whole: Answer): string | undefined {
    if (
      [...REFUSALS, NOT_AUTHENTICATED].some(([status, code]) => answer.status === status && answer.body.code === code)
    )
      return undefined
    const { completeness, cut = [], has_more } = answer.body
    if (truth.body.items?.[0]?.answered)
      return isAboutSources(answer.body.items, truth.body.items) ? undefined : `is wrong: ${plain(answer.body)}`
    if (truth.body.links)
      return answer.status === 200 && isAboutLinks(answer.body as never, truth.body as never)
        ? undefined
        : `is wrong: ${plain(answer.body)}`
    const isLess = completeness?.complete === false || cut.length > 0 || has_more === true
    // If a source was not read, it is unknown whether a user exists.
    if (answer.status === 200 && truth.status === 404 && isLess)
      return Object.values(answer.body).every(isNothing) ? undefined : `is wrong: ${plain(answer.body)}`
    if (answer.status !== truth.status) return `${answer.status} instead of ${truth.status}`
    if (isKnown(JSON.parse(plain(answer.body)), JSON.parse(plain(truth.body)))) return undefined
    if (!isLess) return `is not marked as partial: ${plain(answer.body)}`
    return isWithin(answer.body, truth.body) || isWithin(answer.body, whole.body)
      ? undefined
      : `is wrong: ${plain(answer.body)}`
  }

  it('is requested at least once', () => {
    expect(Object.keys(ASKED).sort()).toEqual([...new Set(ROUTES.map(({ path }) => path))].sort())
  })

  it('returns correct data, marked partial data, or an error', async () => {
    const patient = { commandTimeoutMs: 30_000, deadlineMs: 60_000 }
    const outcomes = { refused: 0, less: 0, whole: 0 }
    const wrong: string[] = []
    const inTurn = createTurns(AT_ONCE)
    // Few at a time: parts that the router reads for a second at most must come, on a busy machine too.
    const undisturbed = createTurns(3)
    /** Once the scripts are known to the store, and on a machine that has time. */
    const truthOf = async (path: string) => {
      await ask(path, patient)
      const known = await ask(path, patient)
      expect([path, known.answer.status < 500]).toEqual([path, true])
      expect(known.answer.body.completeness?.complete ?? true).toBe(true)
      // A busy machine may have kept a source from answering in time.
      expect(known.answer.body.of_silent_nodes).not.toBe(null)
      expect((known.answer.body.items ?? []).filter((row: Partial<Row>) => row.answered === false)).toEqual([])
      const whole = /limit=/.test(path)
        ? (await ask(path.replace(/limit=\d+/, 'limit=500'), patient)).answer
        : known.answer
      expect(whole.body.completeness?.complete ?? true).toBe(true)
      return { ...known, whole }
    }
    const meet = async (
      path: string,
      { answer: truth, whole }: Awaited<ReturnType<typeof truthOf>>,
      sent: string,
      [fault, bounds]: (typeof CASES)[number],
    ) => {
      const { answer } = await ask(path, bounds, { sent, fault })
      const what = wrongIn(answer, truth, whole)
      if (what !== undefined) wrong.push(`${path}, ${fault} ${sent.slice(0, 120)}: ${what.slice(0, 3_000)}`)
      const isWhole = answer.status === truth.status && plain(answer.body) === plain(truth.body)
      outcomes[answer.status >= 500 ? 'refused' : isWhole ? 'whole' : 'less']++
    }
    const paths = Object.values(ASKED).flat()
    const truths = await Promise.all(
      paths.map(async (path) => ({ path, truth: await undisturbed(() => soon(() => truthOf(path))) })),
    )
    await Promise.all(
      truths.flatMap(({ path, truth }) =>
        truth.sent.flatMap((one) => CASES.map((each) => inTurn(() => meet(path, truth, one, each)))),
      ),
    )
    expect(wrong).toEqual([])
    // What nothing happens to proves nothing.
    expect(outcomes.refused).toBeGreaterThan(200)
    expect(outcomes.less).toBeGreaterThan(50)
  })
})
