/** Real queues of BullMQ over a server of the test's own, and the router that looks into them. */
import type { FlowProducer, Job, Queue, QueueOptions, Worker, WorkerOptions } from 'bullmq'
import * as newest from 'bullmq'
import * as former from 'bullmq-5'
import { onTestFinished } from 'vitest'
import { type BullmqOptions, createBullmqInspectors } from '../../src/bullmq/index.js'
import type { DeliveryCommand, DeliveryNode, DeliveryTenant } from '../../src/internal/contract/delivery.js'
import type { Page } from '../../src/internal/contract/page.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { get, type Router } from '../redis/router.js'
import { describeRedis, type Server, startServer } from '../redis/server.js'

export type Processor = (job: Job) => Promise<unknown>

/** A version of BullMQ, and the package it is installed as. Of both, tests use what has the types of the newer. */
export type Bullmq = Pick<typeof newest, 'FlowProducer' | 'Queue' | 'QueueEvents' | 'Worker'> & { readonly at: string }

const VERSIONS: readonly Bullmq[] = [
  { ...(former as unknown as typeof newest), at: 'bullmq-5' },
  { ...newest, at: 'bullmq' },
]

/** What does not depend on how a version stores its jobs. */
export const NEWEST = VERSIONS.slice(-1)

/** The same tests with each supported version of BullMQ, or with some. */
export function describeBullmq(name: string, tests: (bullmq: Bullmq) => void, versions = VERSIONS): void {
  for (const bullmq of versions) describeRedis(`${name}, BullMQ ${bullmq.at === 'bullmq' ? 6 : 5}`, () => tests(bullmq))
}

/** Opens queues and workers that end with the test, before their server does. */
export function worldOver(server: Pick<Server, 'port'>, bullmq: Bullmq) {
  const connection = { host: '127.0.0.1', port: server.port }
  return {
    queue(name: string, options: Partial<QueueOptions> = {}): Queue {
      const queue = new bullmq.Queue(name, { connection, ...options })
      queue.on('error', () => {})
      onTestFinished(() => queue.close().catch(() => {}))
      return queue
    },
    flows(): FlowProducer {
      const flows = new bullmq.FlowProducer({ connection })
      flows.on('error', () => {})
      onTestFinished(() => flows.close().catch(() => {}))
      return flows
    },
    async worker(name: string, processor: Processor, options: Partial<WorkerOptions> = {}): Promise<Worker> {
      const worker = new bullmq.Worker(name, processor, { connection, ...options })
      worker.on('error', () => {})
      onTestFinished(() => worker.close(true).catch(() => {}))
      await worker.waitUntilReady()
      return worker
    },
  }
}

export async function startWorld(bullmq: Bullmq) {
  const server = await startServer()
  onTestFinished(() => server.stop())
  return { server, ...worldOver(server, bullmq) }
}

/** Creates a router over the queues, by default with timeouts that are long enough for a busy machine. */
export function observe(
  options: BullmqOptions,
  deadlineMs = 60_000,
  onError: ((error: unknown) => void) | null = null,
) {
  return createDiagnosticsRouter({
    inspectors: createBullmqInspectors({ timeoutMs: 30_000, ...options }),
    auth: noopAuth(),
    deadlineMs,
    onError,
  })
}

/** What a walk over a list shows, page by page. */
export async function listed<T>(router: Router, path: string, limit = 40): Promise<T[]> {
  const items: T[] = []
  for (let cursor: string | null = null; ; ) {
    const query = `${path.includes('?') ? '&' : '?'}limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`
    const { status, body } = await get(router, `${path}${query}`)
    if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(body)}`)
    const page: Page<T> = body
    items.push(...page.items)
    if (!page.has_more) return items
    cursor = page.next_cursor
  }
}

export const commandsOf = (router: Router, query = '') => listed<DeliveryCommand>(router, `/delivery/commands${query}`)
export const scopesOf = (router: Router) => listed<DeliveryTenant>(router, '/delivery/tenants')
export const nodesOf = (router: Router) => listed<DeliveryNode>(router, '/delivery/nodes', 2)

/** Returns the `/delivery/status` path of a job whose owner is unknown. */
export function statusPath(queue: string, job: string, user = queue, client = queue): string {
  return `/delivery/status?${new URLSearchParams({ user_id: user, client_id: client, command_id: `${queue}:${job}` })}`
}
