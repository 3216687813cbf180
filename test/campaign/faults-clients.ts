/** The clients of a fault campaign: connected to one node at a time, they take commands as real ones would, and forget none. */

import type { Call, CommandName, Operation } from './faults-history.js'
import type { CampaignNode } from './faults-nodes.js'
import type { Random } from './fuzz-random.js'

type HandedOver = CommandName & { instance_id: string; attempt: number }

/** What a client means to do with a command. */
export type Intent = 'result' | 'fail' | 'refuse' | 'forget'

export interface ClientsOptions {
  nodes: readonly CampaignNode[]
  names: readonly { user_id: string; client_id: string }[]
  random: Random
  intentOf: (command_id: string) => Intent
}

export interface Clients {
  handedOver(word: HandedOver): void
  /** The instance's node has found that another one has its place. */
  superseded(word: { user_id: string; client_id: string; instance_id: string }): void
  /** Connected and with no command in hand. */
  readonly areIdle: boolean
  /** The instance by which a client speaks. */
  instanceOf(client: { user_id: string; client_id: string }): string
  /** Has a client leave its node for another one. */
  move(index: number): void
  /** Ends every loop; resolves when they are over. */
  close(): Promise<void>
}

/** A client that receives no answer for this long considers its node dead. */
const TIMEOUT_MS = 2_500
const PAUSE_MS = 100

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Returns the answer, or `undefined` on a timeout; the outcome of the call is recorded either way. */
export async function askFor(node: CampaignNode, call: Call): Promise<Operation['end'] | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), TIMEOUT_MS)
  })
  const end = await Promise.race([node.ask(call), timeout])
  clearTimeout(timer)
  return end
}

export function createClients({ nodes, names, random, intentOf }: ClientsOptions): Clients {
  const nameOf = ({ user_id, client_id }: { user_id: string; client_id: string }) => `${user_id} ${client_id}`
  let isClosed = false
  const clients = new Map(names.map((name, index) => [nameOf(name), createClient(name, index)]))

  function createClient(name: { user_id: string; client_id: string }, index: number) {
    const inHand = new Set<string>()
    const under = new Set<Promise<void>>()
    let node = random.pick(nodes)
    /** The process that it is connected to; another one of the same node is as good as dead. */
    let home = ''
    let instances = 0
    let instance_id = `${index}-0`

    const isConnected = () => node.isUp && node.process === home
    const isOk = (end: Operation['end'] | undefined) => end?.type === 'ok'

    async function connect() {
      const up = nodes.filter(({ isUp }) => isUp)
      if (up.length === 0) return
      node = random.pick(up)
      const to = node.process
      const own = `${index}-${++instances}`
      // From here on the old instance is no longer current.
      instance_id = own
      if (isOk(await askFor(node, { what: 'connect', ...name, instance_id: own }))) home = to
    }

    const life = (async () => {
      while (!isClosed) {
        if (!isConnected()) await connect()
        await pause(PAUSE_MS)
      }
    })()

    /** Acknowledges and settles the command, retrying until its end is certain. */
    async function work(command_id: string, intent: Intent) {
      const key = { ...name, command_id }
      const state = intent === 'refuse' ? 'refused' : 'acknowledged'
      while (!isClosed) {
        const end = await askFor(node, { what: 'acknowledge', ...key, instance_id, state })
        if (end?.type === 'ok') break
        await miss(end)
      }
      if (intent === 'forget') return
      // Refused, fenced or over: an end after another end has no effect.
      while (!isClosed) {
        const fence = random.chance(0.2) ? instance_id : null
        const ending = intent === 'fail' ? 'failed' : 'resulted'
        const end = await askFor(node, { what: 'settle', ...key, instance_id: fence, state: ending })
        if (end?.type === 'ok' && (end.answer === true || fence === null)) return
        await miss(end)
      }
    }

    /** What an old connection still brings. */
    async function answerLate(command_id: string, old: string) {
      const word: Call = { what: 'acknowledge', ...name, command_id, instance_id: old, state: 'acknowledged' }
      const end = await askFor(random.pick(nodes), word)
      const isRefused = end?.type === 'ok' && end.answer === false
      // Once this is accepted, the command is never delivered again.
      if (!isRefused) await work(command_id, intentOf(command_id))
    }

    function undertake(command_id: string, work: Promise<void>) {
      inHand.add(command_id)
      const working = work.finally(() => {
        inHand.delete(command_id)
        under.delete(working)
      })
      under.add(working)
    }

    /** The outcome is unknown: a silent node has lost its client, and another node is asked again. */
    async function miss(end: Operation['end'] | undefined) {
      if (end === undefined) home = ''
      await pause(PAUSE_MS)
    }

    return {
      take({ command_id, instance_id: of, attempt }: HandedOver) {
        if (inHand.has(command_id)) return
        if (of !== instance_id) {
          if (random.chance(0.3)) undertake(command_id, answerLate(command_id, of))
        } else if (attempt > 2 || !random.chance(0.05)) undertake(command_id, work(command_id, intentOf(command_id)))
      },
      superseded(instance: string) {
        if (instance === instance_id) home = ''
      },
      get isIdle() {
        return isConnected() && inHand.size === 0
      },
      get instance_id() {
        return instance_id
      },
      leave() {
        home = ''
      },
      end: () => Promise.all([life, ...under]),
    }
  }

  return {
    handedOver: (word) => clients.get(nameOf(word))?.take(word),
    superseded: (word) => clients.get(nameOf(word))?.superseded(word.instance_id),
    get areIdle() {
      return [...clients.values()].every(({ isIdle }) => isIdle)
    },
    instanceOf: (name) => clients.get(nameOf(name))?.instance_id ?? '',
    move(index) {
      const name = names[index % names.length]
      if (name) clients.get(nameOf(name))?.leave()
    },
    async close() {
      isClosed = true
      await Promise.all([...clients.values()].map((client) => client.end()))
    },
  }
}
