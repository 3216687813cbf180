/** One host node as a process of its own, for the crash campaign: it may be killed, or kill itself at a given step. */
import { createClient } from 'redis'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import type { RedisClient } from '../../src/redis/store/client.js'

/** What a node is started with. */
export interface NodePlan {
  port: number
  deploymentId: string
  nodeId: string
  shards: number
  ackTimeoutMs: number
  /** Commands to the store, from its first order on, after which it dies by its own hand; never when absent. */
  diesAfter?: number | undefined
  /** Whether the last command is still sent and answered. */
  diesAnswered?: boolean | undefined
}

/** What the campaign asks of a node. */
export type Order =
  | { kind: 'attach'; user_id: string; client_id: string }
  | { kind: 'dispatch'; user_id: string; client_id: string; command_id: string; scope_id: string; deadlineMs: number }

/** What a node tells. */
export type Word =
  | { kind: 'ready' }
  | { kind: 'admitted' | 'rejected'; command_id: string }
  | { kind: 'delivered'; command_id: string; attempt: number }
  | { kind: 'acknowledged'; command_id: string; attempts: number }
  | { kind: 'settled'; command_id: string }

const plan = JSON.parse(process.argv[2] ?? '') as NodePlan
const say = (word: Word) => void process.send?.(word)

const die = () => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise<never>(() => {})
}

// How long a node has been up when its order reaches it is the machine's affair: none of its steps may be spent by then.
let left = Number.POSITIVE_INFINITY

/** `client` whose `diesAfter`-th command after the first order is the last thing the process does. */
function mortal(client: object): RedisClient {
  return new Proxy(client, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'sendCommand') return value.bind(target)
      return async (...args: unknown[]) => {
        left--
        if (left > 0) return value.apply(target, args)
        if (plan.diesAnswered) await value.apply(target, args)
        return die()
      }
    },
  }) as RedisClient
}

const client = createClient({ url: `redis://127.0.0.1:${plan.port}` })
client.on('error', () => {})
await client.connect()
const { deploymentId, nodeId, shards, ackTimeoutMs } = plan
const dispatcher = createRedisCommandDispatcher({
  client: mortal(client),
  deploymentId,
  nodeId,
  shards,
  ackTimeoutMs,
  maxAttempts: 100,
  // On a machine that is busy with other nodes a slow answer is no lost one.
  commandTimeoutMs: 20_000,
})
const ask = { signal: new AbortController().signal }

async function obey(order: Order) {
  if (order.kind === 'dispatch') {
    const { kind: _, ...input } = order
    const { admission, command_id } = await dispatcher.dispatch({ ...input, action: 'work', payload: { n: 1 } })
    return say({ kind: admission.state, command_id })
  }
  const instance = { user_id: order.user_id, client_id: order.client_id, instance_id: nodeId }
  await dispatcher.attach(instance, async ({ command_id, attempt, user_id, client_id }) => {
    say({ kind: 'delivered', command_id, attempt })
    const key = { user_id, client_id, command_id }
    // Every third command meets a connection that breaks first.
    if (attempt === 1 && command_id.endsWith('3')) throw new Error('the connection broke')
    if (await dispatcher.acknowledge({ ...key, instance_id: nodeId })) {
      const status = await dispatcher.inspector.status(key, ask)
      say({ kind: 'acknowledged', command_id, attempts: status?.attempts.count ?? 0 })
    }
    if (await dispatcher.settle({ ...key, state: 'resulted' })) say({ kind: 'settled', command_id })
  })
}

process.on('message', (order: Order) => {
  left = Math.min(left, plan.diesAfter ?? Number.POSITIVE_INFINITY)
  obey(order).catch(() => {})
})
// The campaign is over, or was interrupted.
process.on('disconnect', () => process.exit(0))
say({ kind: 'ready' })
