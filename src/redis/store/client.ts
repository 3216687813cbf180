/** The port to whatever client a host hands in: `redis` or `ioredis`, single or Cluster, recognised by shape alone. */

import { sleep } from '../../async/timer.js'
import { invalidOption } from '../../contract/checks.js'
import { type StoreReply, toReply } from './reply.js'

export type Listener = (...args: unknown[]) => void

/** A client or cluster of node-redis (`redis` 5 or 6), connected or connecting. */
export interface NodeRedisClient {
  sendCommand(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
  on(event: string, listener: Listener): unknown
  readonly isOpen: boolean
}

/** A `Redis` or `Cluster` of ioredis 5 or 6. */
export interface IoRedisClient {
  call(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
  on(event: string, listener: Listener): unknown
  readonly status: string
}

/** Between two looks at who has a slot, in ms. */
const SLOTS_MS = 50

/** What a host may hand in. The library never closes it. */
export type RedisClient = NodeRedisClient | IoRedisClient

/** One client, whatever it is: sends commands as soon as there is a link, unbounded in time; `store.ts` bounds them. */
export interface Port {
  /** The host's own client, for `openSubscriber`. */
  readonly client: RedisClient
  readonly kind: 'node-redis' | 'node-redis-cluster' | 'ioredis' | 'ioredis-cluster'
  /** `undefined` when a command can be sent now; else a promise of the link, or `null` when the client was closed. */
  ready(): undefined | null | Promise<void>
  /** Links lost so far with what had been written on them, by a client that sends that again; 0 for one that does not. */
  lostLinks(): number
  /** Sends one command. `key` routes it on a Cluster. `signal` takes it out of the client's queue where that can be. */
  send(args: string[], key: string, signal: () => AbortSignal): Promise<StoreReply>
}

interface Loose {
  sendCommand(args: string[], options: object): Promise<unknown>
  sendCommand(key: string | undefined, isReadonly: boolean, args: string[], options: object): Promise<unknown>
  call(name: string, ...args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  on(event: string, listener: Listener): unknown
  readonly isReady?: boolean
  readonly isOpen?: boolean
  readonly isCluster?: boolean
  readonly status?: string
}

/** Which of the four clients this is. @throws TypeError for anything else. */
export function kindOf(client: RedisClient): Port['kind'] {
  const shape = client as unknown as Partial<Record<string, unknown>>
  const has = (name: string) => typeof shape[name] === 'function'
  if (has('call') && has('duplicate') && typeof shape.status === 'string')
    return shape.isCluster === true ? 'ioredis-cluster' : 'ioredis'
  if (has('sendCommand') && has('duplicate') && typeof shape.isOpen === 'boolean')
    return has('getSlotMaster') ? 'node-redis-cluster' : 'node-redis'
  throw new TypeError(invalidOption('client', 'a client or Cluster of node-redis (5 or later) or ioredis', client))
}

const ports = new WeakMap<RedisClient, Port>()

/** The port of `client`: one per client, so that however many facilities share it, it gets one listener of each kind. */
export function portOf(client: RedisClient): Port {
  const known = ports.get(client)
  if (known) return known
  const port = createPort(client)
  ports.set(client, port)
  return port
}

function createPort(client: RedisClient): Port {
  const kind = kindOf(client)
  const loose = client as unknown as Loose
  let link: Promise<void> | undefined
  let resolveLink = () => {}
  let lost = 0

  // A client without an `error` listener ends the process on the first lost connection.
  loose.on('error', () => {})
  // A cluster of node-redis says `connect` when it knows its slots; the others say `ready`.
  loose.on(kind === 'node-redis-cluster' ? 'connect' : 'ready', () => {
    link = undefined
    resolveLink()
  })

  if (kind === 'ioredis' || kind === 'ioredis-cluster')
    for (const event of ['close', '-node'])
      loose.on(event, () => {
        lost++
      })

  // Waiting here rather than in the client's own queue: what was given up is then never sent after all.
  function ready(): undefined | null | Promise<void> {
    if (kind === 'node-redis' || kind === 'node-redis-cluster') {
      if (loose.isReady) return undefined
      if (!loose.isOpen) return null
    } else {
      if (loose.status === 'ready') return undefined
      if (loose.status === 'end') return null
      if (loose.status === 'wait') loose.connect().catch(() => {})
    }
    link ??= new Promise((resolve) => {
      resolveLink = resolve
    })
    return link
  }

  /**
   * A Cluster of node-redis that knows a part of the slots throws a TypeError for the others, before it sends anything,
   * and learns the rest only from a node that says `MOVED`: any node is asked for the key until then.
   */
  async function sendToSlot(args: string[], key: string, signal: () => AbortSignal): Promise<unknown> {
    try {
      return await loose.sendCommand(key, false, args, { abortSignal: signal() })
    } catch (error) {
      if (!(error instanceof TypeError) || signal().aborted) throw error
    }
    await loose.sendCommand(undefined, true, ['GET', key], { abortSignal: signal() }).catch(() => {})
    await sleep(SLOTS_MS)
    if (signal().aborted) throw signal().reason
    return sendToSlot(args, key, signal)
  }

  const send = {
    'node-redis': (args: string[], _key: string, signal: () => AbortSignal) =>
      loose.sendCommand(args, { abortSignal: signal() }),
    'node-redis-cluster': sendToSlot,
    ioredis: ([name, ...args]: string[]) => loose.call(name as string, ...args),
    'ioredis-cluster': ([name, ...args]: string[]) => loose.call(name as string, ...args),
  }[kind]

  return {
    client,
    kind,
    ready,
    lostLinks: () => lost,
    send: async (args, key, signal) => toReply(await send(args, key, signal)),
  }
}
