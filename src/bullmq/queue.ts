/** The queues of a host, known by their shape, and how one is asked: within a time, and only so much at once. */
import { runWithin } from '../async/time-limit.js'
import type { Ask } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import type { Script } from './scripts.js'
import { type Connected, connectionsOf, type Told, workersAmong } from './store-connections.js'

/** What is used of a `Queue` of BullMQ 5. The library never closes it. */
export interface BullmqQueue {
  readonly name: string
  /** The client of the queue's own connection, once there is one. */
  readonly client: Promise<object>
  /** The key of a part of the queue; of `''`, what the keys of its jobs begin with. */
  toKey(part: string): string
  /** The clients of the store that bear the name of a worker of this queue. */
  getWorkers(): Promise<readonly Connected[]>
}

/** What is used of the client, whichever library it is of: BullMQ has made them alike since 5.7x. */
interface Client {
  readonly status?: string
  defineCommand(name: string, definition: { numberOfKeys: number; lua: string }): unknown
  runCommand?(name: string, args: readonly string[]): Promise<unknown>
  readonly isCluster?: boolean
  /** All connections of the store, one a line. A client of ioredis as such has it under another name. */
  clientList?(): Promise<string>
}

/** Below the router's 5 s, so that a queue that hangs is unavailable and not only late. */
export const TIMEOUT_MS = 2_000
/** Questions to one queue that have no answer yet; with more, a store that hangs would gather them. */
const OPEN_MAX = 1_000

// A Cluster of ioredis is connected before it is ready, and BullMQ takes it for ready then.
const LINKED = ['ready', 'connect']
// What a server of Redis says no with: a word in capitals.
const REPLY = /^-?[A-Z]{2,}\b/
/** Words of a server that cannot answer now. */
const UNAVAILABLE = /^-?(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOAUTH|WRONGPASS)\b/

/** One queue that can be asked. */
export interface Link {
  readonly name: string
  /** @throws Refusal `unavailable`; the reason of the signal when it aborts; an `Error` for a script that failed. */
  run<Given>(script: Script<Given>, given: Given, ask: Ask): Promise<unknown>
  /**
   * @param told What stores have told in the same request: queues of one client share it.
   * @throws as `run`
   */
  workers(ask: Ask, told: Told): Promise<readonly Connected[]>
}

/** What a rejection of the queue's client means. Its text is for a host's hook, never for an answer. */
function toError(cause: unknown): Error {
  if (cause instanceof Refusal) return cause
  const message = cause instanceof Error ? cause.message : ''
  if (REPLY.test(message) && !UNAVAILABLE.test(message))
    return new Error(`the store of a queue refused a command: ${message}`, { cause })
  return new Refusal('unavailable', message, { cause })
}

export function createLink(queue: BullmqQueue, timeoutMs: number): Link {
  const { name } = queue
  const defined = new WeakMap<object, Set<string>>()
  let open = 0

  async function linked(): Promise<Client> {
    const client = (await queue.client) as Client
    // What waits in a client's own queue is sent after all, long after it was given up.
    if (typeof client.status === 'string' && !LINKED.includes(client.status))
      throw new Refusal('unavailable', `the connection of the queue ${name} is ${client.status}`)
    return client
  }

  /** `work`, which goes on counting as open for as long as it has not ended. */
  async function within<T>(work: (client: Client) => Promise<T>, { signal }: Ask): Promise<T> {
    signal.throwIfAborted()
    if (open >= OPEN_MAX) throw new Refusal('unavailable', `${open} questions to the queue ${name} are unanswered`)
    open += 1
    const done = linked()
      .then(work)
      .catch((error) => {
        throw toError(error)
      })
      .finally(() => {
        open -= 1
      })
    const late = () => new Refusal('unavailable', `no answer of the queue ${name} within ${timeoutMs} ms`)
    return runWithin(() => done, { ms: timeoutMs, signal, late })
  }

  return {
    name,
    run: (script, given, ask) =>
      within((client) => {
        const known = defined.get(client) ?? new Set()
        defined.set(client, known)
        if (!known.has(script.name)) client.defineCommand(script.name, { numberOfKeys: 1, lua: script.lua })
        known.add(script.name)
        const args = [queue.toKey(''), ...script.argv(given)]
        if (client.runCommand) return client.runCommand(script.name, args)
        // A client of ioredis as such has the command as a method.
        return (Reflect.get(client, script.name) as (args: unknown) => Promise<unknown>).call(client, args)
      }, ask),
    workers: (ask, told) =>
      within(async (client) => {
        // Which node of a cluster to believe, BullMQ knows.
        if (client.isCluster || !client.clientList) return queue.getWorkers()
        const list = client.clientList.bind(client)
        return workersAmong(await connectionsOf(told, client, list), queue)
      }, ask),
  }
}
