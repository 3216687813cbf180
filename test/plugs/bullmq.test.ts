/** That the diagnostics of queues say what BullMQ says of them, whatever their jobs go through. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Queue } from 'bullmq'
import { expect, it, onTestFinished } from 'vitest'
import type { DeliveryCommand } from '../../src/internal/contract/delivery.js'
import { get, type Router } from '../redis/router.js'
import { soon } from '../redis/wait-for.js'
import { commandsOf, describeBullmq, nodesOf, observe, scopesOf, startWorld, statusPath } from './bullmq-world.js'

/** Where a job stands by what BullMQ calls it. */
const standing = (state: string, attempts: number) =>
  ({ completed: 'resulted', failed: 'failed', active: 'attempted' })[state] ?? (attempts > 0 ? 'attempted' : 'waiting')

/** Holds every answer to what the queues themselves say, which rest meanwhile. */
async function expectTruth(router: Router, queues: Queue[]): Promise<DeliveryCommand[]> {
  const counts = await Promise.all(queues.map((queue) => queue.getJobCounts()))
  const scopes = await scopesOf(router)
  expect(scopes.map(({ scope_id }) => scope_id)).toEqual(queues.map(({ name }) => name))
  expect(scopes.map(({ metadata }) => metadata?.jobs)).toEqual(counts)
  const tracked = counts.map(({ completed = 0, failed = 0, ...open }) =>
    Object.values(open).reduce((sum, count) => sum + count, 0),
  )
  expect(scopes.map(({ reserved_commands }) => reserved_commands)).toEqual(tracked)
  const { body: summary } = await get(router, '/delivery/summary')
  expect(summary.tracked_commands).toBe(tracked.reduce((sum, count) => sum + count, 0))

  const workers = (await Promise.all(queues.map((queue) => queue.getWorkers()))).flat()
  const nodes = await nodesOf(router)
  expect(nodes.map(({ metadata }) => metadata?.address).sort()).toEqual(workers.map(({ addr }) => addr).sort())

  const commands = await commandsOf(router)
  const shown = new Map(commands.map((command) => [command.command_id, command]))
  expect(shown.size).toBe(commands.length)
  const jobs = (await Promise.all(queues.map((queue) => queue.getJobs()))).flat()
  expect(commands.length).toBe(jobs.length)
  await Promise.all(
    jobs.map(async (job) => {
      const state = standing(await job.getState(), job.attemptsStarted)
      const {
        overdue,
        state: at,
        waits_for,
        action,
        ...evidence
      } = shown.get(`${job.queueName}:${job.id}`) as DeliveryCommand
      expect([job.id, at, overdue, action]).toEqual([job.id, state, false, job.name])
      expect(['unknown', 'delivery', null]).toContain(waits_for)
      const answer = await get(router, statusPath(job.queueName, job.id as string))
      const { metadata, ...told } = answer.body
      expect([answer.status, { ...told, metadata: null }]).toEqual([200, { ...evidence, overdue: false }])
      const children = (await job.getDependencies({ unprocessed: {} })).unprocessed ?? []
      expect(metadata).toEqual(
        children.length === 0 ? null : { waits_for_children: children.map((key) => key.slice(5)) },
      )
      expect(evidence.attempts.count).toBe(job.attemptsStarted)
      expect(evidence.admission.at).toBe(new Date(job.timestamp).toISOString())
      expect(evidence.terminal?.at).toBe(job.finishedOn && new Date(job.finishedOn).toISOString())
    }),
  )
  for (const state of ['waiting', 'attempted', 'resulted', 'failed', 'acknowledged']) {
    const ids = (await commandsOf(router, `?state=${state}`)).map(({ command_id }) => command_id)
    expect(ids).toEqual(commands.filter((command) => command.state === state).map(({ command_id }) => command_id))
  }
  return commands
}

/** A worker in a process of its own, which takes a job and never ends it. */
const HANGING = (port: number, at: string) => `
import { Worker } from '${at}'
new Worker('emails', () => { process.stdout.write('has it'); return new Promise(() => {}) },
  { connection: { host: '127.0.0.1', port: ${port} }, lockDuration: 3_000, stalledInterval: 200, name: 'doomed' })`

describeBullmq('relayscope/bullmq', (bullmq) => {
  it('says of 200 jobs what the queues say, whatever they go through', async () => {
    const { server, queue, worker, flows } = await startWorld(bullmq)
    const [emails, reports] = [queue('emails'), queue('reports')]
    const queues = [emails, reports]
    const router = observe({ queues })
    expect(await expectTruth(router, queues)).toEqual([])

    // They wait, are delayed, and have priorities.
    const ids = (from: number, count: number) => Array.from({ length: count }, (_, i) => `j${from + i}`)
    const add = (to: Queue, jobIds: string[], opts = {}) =>
      to.addBulk(jobIds.map((jobId) => ({ name: 'send', data: { secret: 'p4yload' }, opts: { ...opts, jobId } })))
    await add(emails, ids(0, 80))
    await add(emails, ids(80, 20), { delay: 3_600_000 })
    await add(emails, ids(100, 20), { priority: 7 })
    await add(reports, ids(0, 60), { attempts: 3 })
    await add(reports, ids(60, 20), { attempts: 2, backoff: 3_600_000 })
    const waiting = await expectTruth(router, queues)
    expect(waiting).toHaveLength(200)
    expect(waiting.find(({ command_id }) => command_id === 'emails:j0')).toMatchObject({
      user_id: null,
      client_id: null,
      admission: { state: 'admitted', scope_id: 'emails', deadline_at: null },
      attempts: { count: 0, confirmed: 0, last_at: null, last_outcome: null },
    })
    const due = async () => (await get(router, '/delivery/summary')).body.due_commands
    expect(await due()).toBe(180)

    await emails.pause()
    await expectTruth(router, queues)
    expect(await due()).toBe(80)
    expect((await scopesOf(router))[0]?.metadata).toMatchObject({ paused: true })
    await emails.resume()

    // One is in hand while others are done.
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const sender = await worker(
      'emails',
      async ({ id }) => {
        if (id === 'j9') await held
        if (id === 'j8') throw new Error('a s3cret reason')
      },
      { name: 'sender', metrics: { maxDataPoints: 60 }, stalledInterval: 200 },
    )
    const isInHand = async () => expect(await emails.getJobCounts('active')).toEqual({ active: 1 })
    await soon(async () => {
      await isInHand()
      expect(await emails.getJobState('j9')).toBe('active')
    })
    const inHand = (await expectTruth(router, queues)).find(({ command_id }) => command_id === 'emails:j9')
    expect(inHand).toMatchObject({ attempts: { count: 1, confirmed: 0, last_node_id: 'sender', last_outcome: null } })
    release()
    await soon(async () =>
      expect(await emails.getJobCounts('wait', 'active', 'prioritized')).toMatchObject({
        wait: 0,
        active: 0,
        prioritized: 0,
      }),
    )
    const sent = await expectTruth(router, queues)
    expect(sent.find(({ command_id }) => command_id === 'emails:j7')).toMatchObject({
      attempts: { confirmed: 1, last_outcome: 'handed_over' },
      acknowledgement: { state: 'none', at: null, instance_id: null },
      recovery: { count: 0, reason: null },
      terminal: { state: 'resulted', reason: null },
    })
    expect(sent.find(({ command_id }) => command_id === 'emails:j8')).toMatchObject({
      attempts: { confirmed: 0, last_outcome: 'rejected' },
      terminal: { state: 'failed', reason: 'attempts_exhausted' },
    })
    expect((await scopesOf(router))[0]?.metadata).toMatchObject({ totals: { completed: 99, failed: 1 } })

    // They fail and are tried again, at once or later.
    const failing = await worker('reports', async ({ attemptsMade, id }) => {
      if (attemptsMade === 0 || id === 'j1') throw new Error('a s3cret reason')
    })
    await soon(async () =>
      expect(await reports.getJobCounts('wait', 'active', 'delayed')).toEqual({
        wait: 0,
        active: 0,
        delayed: 20,
      }),
    )
    await failing.close()
    const tried = await expectTruth(router, queues)
    expect(tried.find(({ command_id }) => command_id === 'reports:j1')).toMatchObject({
      attempts: { count: 3 },
      recovery: { count: 2, reason: 'deliver_rejected' },
      terminal: { state: 'failed', reason: 'attempts_exhausted' },
    })
    expect(tried.find(({ command_id }) => command_id === 'reports:j61')).toMatchObject({
      attempts: { count: 1, last_outcome: 'rejected' },
      recovery: { count: 1, reason: 'deliver_rejected' },
      terminal: null,
    })
    const again = await reports.getJob('j1')
    await again?.retry()
    expect((await expectTruth(router, queues)).find(({ command_id }) => command_id === 'reports:j1')).toMatchObject({
      state: 'attempted',
      attempts: { count: 3, last_at: null, last_outcome: 'other' },
    })

    // A worker dies with a job in hand.
    await sender.close()
    await add(emails, ['fatal', 'lethal'])
    const doomed = spawn(process.execPath, ['--input-type=module', '-e', HANGING(server.port, bullmq.at)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void doomed.kill('SIGKILL'))
    await once(doomed.stdout, 'data')
    await isInHand()
    await expectTruth(router, queues)
    expect((await nodesOf(router)).map(({ metadata }) => metadata?.worker_name)).toEqual(['doomed'])
    doomed.kill('SIGKILL')
    await once(doomed, 'exit')
    await soon(async () => expect(await emails.getWorkersCount()).toBe(0))
    expect(await nodesOf(router)).toEqual([])
    await emails.pause()
    const finder = await worker('emails', async () => {}, { stalledInterval: 200, maxStalledCount: 0 })
    await soon(async () =>
      expect(await emails.getJobCounts('active', 'waiting')).toMatchObject({
        active: 0,
        [bullmq.at === 'bullmq' ? 'waiting' : 'paused']: 2,
      }),
    )
    const stalled = (await expectTruth(router, queues)).find(({ command_id }) => command_id === 'emails:fatal')
    expect(stalled).toMatchObject({
      state: 'attempted',
      attempts: { count: 1, last_outcome: 'timed_out' },
      recovery: { count: 1, last_at: null, reason: 'lease_expired' },
      terminal: null,
    })
    await finder.close()

    // One waits for another.
    const part = { name: 'part', queueName: 'emails', opts: { jobId: 'child' } }
    await flows().add({ name: 'whole', queueName: 'reports', opts: { jobId: 'parent' }, children: [part] })
    expect(await reports.getJobCounts('waiting-children')).toEqual({ 'waiting-children': 1 })
    const family = await expectTruth(router, queues)
    expect(family.find(({ command_id }) => command_id === 'reports:parent')?.state).toBe('waiting')
    const { body: parent } = await get(router, statusPath('reports', 'parent'))
    expect(parent.metadata).toEqual({ waits_for_children: ['emails:child'] })
    expect((await get(router, '/delivery/summary')).body.metadata.jobs).toMatchObject({ 'waiting-children': 1 })

    // They are removed.
    await emails.remove('lethal')
    await Promise.all(ids(80, 10).map((id) => emails.remove(id)))
    await emails.clean(0, 50, 'completed')
    const left = await expectTruth(router, queues)
    expect(left.map(({ command_id }) => command_id)).not.toContain('emails:lethal')
    expect((await get(router, statusPath('emails', 'lethal'))).status).toBe(404)
    // What a bounded index still holds is no total.
    expect((await scopesOf(router))[0]?.metadata).toMatchObject({ jobs: { completed: 49 }, totals: { completed: 99 } })

    // A job that stalled too often is failed by the next worker.
    await worker('emails', async () => {})
    await emails.resume()
    await soon(async () => expect(await emails.getJobCounts('active', 'wait')).toEqual({ active: 0, wait: 0 }))
    const ended = await expectTruth(router, queues)
    expect(ended.find(({ command_id }) => command_id === 'emails:fatal')).toMatchObject({
      attempts: { count: 2, confirmed: 0, last_outcome: 'timed_out' },
      terminal: { state: 'failed', reason: 'stalled' },
    })
    expect(JSON.stringify([waiting, sent, tried, left, ended])).not.toMatch(/p4yload|s3cret/)
  })
})
