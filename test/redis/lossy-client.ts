/** A client whose commands or replies get lost, are late or come twice; the connection beneath it stays as it is. */
import type { RedisClient } from '../../src/redis/store/client.js'
import { createPlan, type Plan } from './lossy-plan.js'

/** The error of the clients for a connection that ended while a reply was pending. */
const cut = () => new Error('Socket closed unexpectedly')

type Send = (...args: unknown[]) => Promise<unknown>

/**
 * Wraps `client` with a plan of faults for single commands: either client, single or Cluster. For a store whose
 * connections break as well, which makes ioredis resend, see `lossy-store.ts`.
 */
export function lossyClient<Client extends RedisClient>(client: Client): { client: Client; plan: Plan } {
  const { plan, met, wait } = createPlan()
  const target = client as unknown as Record<string, unknown>
  const name = typeof target.call === 'function' && typeof target.status === 'string' ? 'call' : 'sendCommand'

  const send: Send = async (...args) => {
    const run = () => (target[name] as Send).apply(client, args)
    // node-redis takes a list, its Cluster a key and a flag before it, ioredis the arguments themselves.
    const words = name === 'call' ? args : (args.find(Array.isArray) ?? [])
    const found = met(words as string[])
    if (!found) return run()
    const { fault, happened } = found
    if (fault === 'unsent') {
      happened()
      throw cut()
    }
    if (fault === 'late') {
      wait(async () => void (await run().catch(() => {})))
      happened()
      throw cut()
    }
    const reply = await run().finally(() => fault !== 'repeated' && happened())
    if (fault === 'lost') throw cut()
    if (fault === 'resent') return run()
    if (fault === 'repeated') {
      await run().catch(() => {})
      happened()
      return reply
    }
    return new Promise((resolve) => wait(async () => resolve(reply)))
  }

  const lossy = new Proxy(client, {
    get(own, property) {
      if (property === name) return send
      const value = Reflect.get(own, property, own)
      return typeof value === 'function' ? value.bind(own) : value
    },
  })
  return { client: lossy, plan }
}
