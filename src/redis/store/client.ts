/**
 * A common interface to the supported clients: `redis` or `ioredis`, single or Cluster, detected by their shape alone.
 */

import { sleep } from '../../internal/async/timer.js'
import { invalidOption } from '../../internal/contract/checks.js'
import { checkClientOptions, hasAutoPipelining, hasStringNumbers, unsupportedKind } from './client-options.js'
import { type StoreReply, toReply } from './reply.js'

/** An event listener, as clients accept it. */
export type Listener = (...args: unknown[]) => void

/** A client or cluster of node-redis (`redis` 5 or 6), connected or connecting. */
export interface NodeRedisClient {
  sendCommand(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
  on(event: string, listener: Listener): unknown
  readonly isOpen: boolean
}

/** A `Redis` of ioredis 5.3 or newer, or a `Cluster` of 5.11 or newer. */
export interface IoRedisClient {
  call(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
  on(event: string, listener: Listener): unknown
  readonly status: string
}

/** Delay before retrying while the client discovers cluster slots, in ms. */
const SLOTS_MS = 50

/** Options of a command of node-redis, over those of its client: replies have their usual types, and come in order. */
const PLAIN = { typeMapping: {}, asap: false }

/** The supported Redis clients. The library never closes the client. */
export type RedisClient = NodeRedisClient | IoRedisClient

/** One client of any kind. Sends commands as soon as it is connected, without a timeout; `store.ts` adds timeouts. */
export interface Port {
  /** The application's client, for `openSubscriber`. */
  readonly client: RedisClient
  readonly kind: 'node-redis' | 'node-redis-cluster' | 'ioredis' | 'ioredis-cluster'
  /**
   * Returns `undefined` when a command can be sent now, else a promise of the connection, or `null` if the client was
   * closed.
   */
  ready(): undefined | null | Promise<void>
  /**
   * Number of lost connections whose unanswered commands the client sends again; always 0 for a client that does not
   * resend.
   */
  lostLinks(): number
  /**
   * Sends one command. `key` routes it on a Cluster. `signal` removes it from the client's queue if the client supports
   * that.
   */
  send(args: string[], key: string, signal: () => AbortSignal): Promise<StoreReply>
  /** Sends one command to each master, and returns a reply of each. A single client has one. */
  sendToMasters(args: string[]): Promise<StoreReply[]>
}

interface Loose {
  sendCommand(args: string[], options: object): Promise<unknown>
  sendCommand(key: string | undefined, isReadonly: boolean, args: string[], options: object): Promise<unknown>
  call(name: string, ...args: string[]): Promise<unknown>
  createBuiltinCommand?(name: string): Record<'string' | 'buffer', (...args: string[]) => Promise<unknown>>
  connect(): Promise<unknown>
  on(event: string, listener: Listener): unknown
  readonly isReady?: boolean
  readonly isOpen?: boolean
  nodes(role: 'master'): Loose[]
  readonly masters: object[]
  nodeClient(master: object): Promise<Loose>
  readonly isCluster?: boolean
  readonly status?: string
}

/** Returns which of the four kinds of client this is. @throws TypeError for anything else, and for unsupported options. */
export function kindOf(client: RedisClient): Port['kind'] {
  const kind = shapeOf(client)
  checkClientOptions(client, kind)
  return kind
}

function shapeOf(client: RedisClient): Port['kind'] {
  const other = unsupportedKind(client)
  if (other)
    throw new TypeError(`Unsupported client: ${other}. Pass a client of createClient, createCluster or ioredis.`)
  const shape = client as unknown as Partial<Record<string, unknown>>
  const has = (name: string) => typeof shape[name] === 'function'
  if (has('call') && has('duplicate') && typeof shape.status === 'string')
    return shape.isCluster === true ? 'ioredis-cluster' : 'ioredis'
  if (has('sendCommand') && has('duplicate') && typeof shape.isOpen === 'boolean')
    return has('getSlotMaster') ? 'node-redis-cluster' : 'node-redis'
  throw new TypeError(invalidOption('client', 'a client or Cluster of node-redis (5 or later) or ioredis', client))
}

const ports = new WeakMap<RedisClient, Port>()

/**
 * Returns the port of `client`: one per client, so that it gets one listener of each kind however many facilities share
 * it.
 */
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

  // Without an `error` listener, node-redis and ioredis clients end the process on the first lost connection.
  loose.on('error', () => {})
  // A cluster of node-redis emits `connect` when it knows its slots; the others emit `ready`.
  loose.on(kind === 'node-redis-cluster' ? 'connect' : 'ready', () => {
    link = undefined
    resolveLink()
  })

  if (kind === 'ioredis' || kind === 'ioredis-cluster')
    for (const event of ['close', '-node'])
      loose.on(event, () => {
        lost++
      })

  // Commands wait here rather than in the client's own queue, so that a timed-out command is never sent.
  function ready(): undefined | null | Promise<void> {
    if (kind === 'node-redis' || kind === 'node-redis-cluster') {
      // A Cluster of `redis` 5 does not say whether it is ready: it has masters once it knows its slots.
      if (loose.isReady ?? loose.masters.length > 0) return undefined
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
   * A Cluster of node-redis that knows only part of the slots throws a TypeError for the others before sending
   * anything, and learns the rest only from a `MOVED` reply. So this queries any node for the key until the slot is
   * known.
   */
  async function sendToSlot(args: string[], key: string, signal: () => AbortSignal): Promise<unknown> {
    try {
      return await loose.sendCommand(key, false, args, { ...PLAIN, abortSignal: signal() })
    } catch (error) {
      if (!(error instanceof TypeError) || signal().aborted) throw error
    }
    await loose.sendCommand(undefined, true, ['GET', key], { abortSignal: signal() }).catch(() => {})
    await sleep(SLOTS_MS)
    if (signal().aborted) throw signal().reason
    return sendToSlot(args, key, signal)
  }

  /**
   * ioredis: with `stringNumbers`, only replies as bytes differ between a string and a number. Commands made like this
   * are not pipelined by the client itself.
   */
  const isText = hasStringNumbers(client)
  const isMade = isText || hasAutoPipelining(client)
  const call = (to: Loose, [name = '', ...args]: string[]) => {
    const command = isMade ? to.createBuiltinCommand?.(name) : undefined
    return (command?.[isText ? 'buffer' : 'string'] ?? to.call.bind(to, name)).apply(to, args)
  }

  async function toMasters(args: string[]): Promise<unknown[]> {
    if (kind === 'node-redis') return [await loose.sendCommand(args, PLAIN)]
    if (kind === 'ioredis') return [await call(loose, args)]
    if (kind === 'ioredis-cluster') return Promise.all(loose.nodes('master').map((node) => call(node, args)))
    return Promise.all(loose.masters.map(async (master) => (await loose.nodeClient(master)).sendCommand(args, PLAIN)))
  }

  const send = {
    'node-redis': (args: string[], _key: string, signal: () => AbortSignal) =>
      loose.sendCommand(args, { ...PLAIN, abortSignal: signal() }),
    'node-redis-cluster': sendToSlot,
    ioredis: (args: string[]) => call(loose, args),
    // It sends what names no key to a node of its choice; a library belongs on each of them.
    'ioredis-cluster': (args: string[]) => (args[0] === 'FUNCTION' ? toMasters(args) : call(loose, args)),
  }[kind]

  return {
    client,
    kind,
    ready,
    lostLinks: () => lost,
    send: async (args, key, signal) => toReply(await send(args, key, signal), isText),
    sendToMasters: async (args) => (await toMasters(args)).map((reply) => toReply(reply, isText)),
  }
}
