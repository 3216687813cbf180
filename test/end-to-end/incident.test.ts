/** An incident of the live host: captured with a client that is stopped, and opened without the host. */
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { type CapturedRouter, captureIncident, diffIncidents, type Incident } from '../../src/incident/index.js'
import { createReplay } from '../../src/incident/recording.js'
import type { Connection } from '../../src/internal/contract/index.js'
import { askRouter, questionsAbout, timeless } from '../incident/subject.js'
import { describeRedis } from '../redis/server.js'
import { end, type LiveHost, PROGRAM, startLiveHost, until } from './live-host-process.js'

let host: LiveHost
beforeAll(async () => {
  host = await startLiveHost()
})
afterAll(async () => {
  await end(host, 'SIGTERM')
})

const original = () => ({ prefix: host.diagnostics, fetch: (request: Request) => host.fetch(request) })
const headers = () => ({ 'x-admin-key': host.key })

/** A capture of an instant without changes; the host keeps working, so it takes some attempts. */
const captureSteady = () =>
  until<Incident>('a capture in which nothing changed', async () => {
    const incident = await captureIncident(original(), { headers: headers() })
    return incident.consistent ? incident : undefined
  })

it('answers on another port what the host answered, with a stopped client', async () => {
  const [pid] = Object.values(host.pids) as [number]
  const before = await captureSteady()
  process.kill(pid, 'SIGSTOP')
  onTestFinished(() => void process.kill(pid, 'SIGCONT'))
  const [client] = Object.keys(host.pids) as [string]
  await until('the stopped client is disconnected', async () => {
    const { body } = await host.ask(`/connections?client_id=${client}`)
    return (body as { items: Connection[] }).items.every(({ status }) => status === 'disconnected') || undefined
  })
  // The host keeps working: what is equal before and after a capture must also be in the capture.
  const { body } = await askRouter(original(), '/openapi.json', headers())
  const templates = Object.keys((body as { paths: object }).paths)
  const kindOf = (question: string) => {
    const [path = '', search] = question.split('?')
    const template = templates.find((each) => new RegExp(`^${each.replace(/\{\w+\}/g, '[^/]+')}$`).test(path))
    return `${template} ${[...new URLSearchParams(search).keys()].sort()}`
  }
  const shown = async (router: CapturedRouter, question: string, fields = {}) => {
    const { status, body } = await askRouter(router, question, fields)
    const { extensions } = body as { extensions?: { operations: string[] } }
    // The host has a recorder, and an incident is of one instant.
    if (extensions) extensions.operations = extensions.operations.filter((name) => name !== 'instants')
    return { status, body: timeless(body) as { items?: unknown[] } }
  }
  type Shown = Awaited<ReturnType<typeof shown>>
  const textOf = (value: unknown) => JSON.stringify(value)
  /** Whether `now` has all that was the same before and after the capture. Rows of a list are compared one by one. */
  const isKept = (before: Shown, now: Shown, after: Shown) => {
    if (textOf(now) === textOf(before) || textOf(now) === textOf(after)) return true
    const [was, is, stays] = [before, now, after].map(({ body }) => body.items?.map(textOf)) as (string[] | undefined)[]
    const steady = was?.filter((row) => stays?.includes(row)) ?? []
    return before.status === now.status && steady.length > 0 && steady.every((row) => is?.includes(row))
  }
  const equal = new Set<string>()
  let differing: string[] = []
  let failure: unknown
  async function compare(): Promise<true | undefined> {
    const probe = await captureIncident(original(), { headers: headers() })
    // Rows become more as the host works: a few of each kind, and never more at once than the host has connections for.
    const asked = new Map<string, number>()
    const questions = questionsAbout(probe, { status: 200, body }).filter((question) => {
      const kind = kindOf(question)
      asked.set(kind, (asked.get(kind) ?? 0) + 1)
      return !equal.has(kind) && (asked.get(kind) as number) <= 5
    })
    const answers = async () => {
      const all: Shown[] = []
      for (let i = 0; i < questions.length; i += 32)
        all.push(...(await Promise.all(questions.slice(i, i + 32).map((one) => shown(original(), one, headers())))))
      return all
    }
    const before = await answers()
    const incident = await captureIncident(original(), { headers: headers() })
    const after = await answers()
    const server = await startNodeServer(await createReplay({ at: () => incident }), { port: 0, closeTimeoutMs: 1 })
    try {
      const replay = { prefix: server.url, fetch: (request: Request) => fetch(request) }
      for (const [i, question] of questions.entries())
        if (isKept(before[i] as Shown, await shown(replay, question), after[i] as Shown)) equal.add(kindOf(question))
      // Sums of a working host are never the same twice: what was captured must be what is answered.
      const sums = incident.parts.find(({ route }) => route === '/delivery/summary')?.answer
      expect((await askRouter(replay, '/delivery/summary')).body).toEqual(sums)
      equal.add(kindOf('/delivery/summary'))
    } finally {
      await server.close()
    }
    differing = questions.filter((question) => !equal.has(kindOf(question)))
    return differing.length === 0 || undefined
  }
  // A question that a busy host did not answer in time is asked again.
  const compareAgain = () =>
    compare().catch((error: unknown) => {
      failure = error
      return undefined
    })
  await until('a capture that answers every kind of question as the host does', compareAgain).catch(() => {})
  expect(differing).toEqual([])
  expect(equal.size, String(failure)).toBeGreaterThan(60)
  const diff = await diffIncidents(before, await captureSteady())
  expect(diff.routes.find(({ route }) => route === '/connections')?.changed).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        fields: expect.arrayContaining([{ field: 'status', before: 'connected', after: 'disconnected' }]),
      }),
    ]),
  )
})

describeRedis('the difference after a node was killed', () => {
  it('names the node, its connections and the new ones at the other node', async () => {
    const deployment = await startLiveHost(['--redis', 'embedded'], PROGRAM, 'ignore')
    onTestFinished(async () => void (await end(deployment, 'SIGTERM')))
    const router = { prefix: deployment.diagnostics, fetch: deployment.fetch }
    const rowsOf = ({ parts }: Incident, route: string) => parts.find((part) => part.route === route)?.rows ?? []
    const captureWhen = (what: string, isReady: (incident: Incident) => boolean) =>
      until<Incident>(what, async () => {
        const incident = await captureIncident(router, { headers: { 'x-admin-key': deployment.key } })
        return isReady(incident) ? incident : undefined
      })
    const connectedAt = (incident: Incident, node: string) =>
      rowsOf(incident, '/connections').filter(({ node_id, status }) => node_id === node && status === 'connected')
    const before = await captureWhen(
      'clients at both nodes',
      (incident) => connectedAt(incident, 'a').length === 2 && connectedAt(incident, 'b').length === 2,
    )
    process.kill(Number(/^ {2}node a {2}pid (\d+)/m.exec(deployment.text)?.[1]), 'SIGKILL')
    const after = await captureWhen(
      'all clients at node b, and node a stale',
      (incident) =>
        connectedAt(incident, 'b').length === 4 &&
        rowsOf(incident, '/delivery/nodes').some(({ node_id, stale }) => node_id === 'a' && stale === true),
    )
    const { routes } = await diffIncidents(before, after)
    const routeOf = (route: string) => routes.find((one) => one.route === route)
    expect(routeOf('/delivery/nodes')).toMatchObject({
      added: [],
      gone: [],
      changed: expect.arrayContaining([
        { id: 'a', fields: expect.arrayContaining([{ field: 'stale', before: false, after: true }]) },
      ]),
    })
    const moved = connectedAt(after, 'b').filter(
      ({ connection_id }) => !connectedAt(before, 'b').some((row) => row.connection_id === connection_id),
    )
    expect(moved).toHaveLength(2)
    expect(routeOf('/connections')?.added).toEqual(
      expect.arrayContaining(moved.map(({ connection_id }) => connection_id)),
    )
    expect(routeOf('/connections')?.unknown).toEqual([])
  })
})
