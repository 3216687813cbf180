/** The nodes of a fault campaign: their processes, one life after the other, and every call to them with how it ended. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Call, Entry, Failure, Operation } from './faults-history.js'
import { type Link, startLink } from './faults-link.js'
import type { ClientKind, NodePlan, Order, Word } from './faults-words.js'

export interface NodesOptions {
  /** The bundled program of a node. */
  program: string
  /** Ports of the store: several of a Cluster. */
  ports: readonly number[]
  client: ClientKind
  deploymentId: string
  shards: number
  count: number
  record: (entry: Entry) => void
  /** Ms since the campaign began. */
  now: () => number
  onHandedOver: (word: Extract<Word, { kind: 'handed_over' }>) => void
  onSuperseded: (word: Extract<Word, { kind: 'superseded' }>) => void
}

/** A place for a node: the link stays, the process is replaced when it has died. */
export interface CampaignNode {
  readonly link: Link
  /** The process by its name, another one in each life. */
  readonly process: string
  /** Whether it takes calls: it lives, stopped or not. */
  readonly isUp: boolean
  /** Asks; resolves when it has answered or is dead, and never rejects. */
  ask(call: Call): Promise<Operation['end']>
  start(): Promise<void>
  /** Resolves when all that it had told is recorded. */
  kill(): Promise<void>
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
}

export interface Nodes {
  all: CampaignNode[]
  /** Calls that have not ended. */
  readonly open: number
  close(): Promise<void>
}

interface Life {
  name: string
  child: ChildProcess
  open: Map<number, (end: Operation['end']) => void>
  isReady: boolean
  isKilled: boolean
  gone: Promise<void>
}

export async function startNodes(options: NodesOptions): Promise<Nodes> {
  const { record, now, count, onHandedOver, onSuperseded } = options
  let ops = 0
  const lives = new Set<Life>()

  function heard(life: Life, word: Word) {
    const at = now()
    if (word.kind === 'ended') {
      record({ op: word.op, at, ...word.end })
      life.open.get(word.op)?.(word.end)
      life.open.delete(word.op)
    } else if (word.kind === 'handed_over') {
      const { kind: type, ...rest } = word
      record({ type, at, process: life.name, ...rest })
      onHandedOver(word)
    } else if (word.kind === 'heard') {
      const { kind: type, ...rest } = word
      record({ type, at, process: life.name, ...rest })
    } else if (word.kind === 'superseded') onSuperseded(word)
    else if (word.kind === 'gap') {
      const { kind: type, ...rest } = word
      record({ type, at, process: life.name, ...rest })
    }
  }

  function born(name: string, links: readonly number[]): Life {
    const { client, deploymentId, shards, program, ports } = options
    const servers = ports.map((port, i) => ({ port, link: links[i] as number }))
    const plan: NodePlan = { servers, client, deploymentId, shards, nodeId: name.split('.')[0] as string }
    const child = fork(program, [JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    child.on('error', () => {})
    const life: Life = { name, child, open: new Map(), isReady: false, isKilled: false, gone: Promise.resolve() }
    lives.add(life)
    // What it had told before its death still comes, up to the end of the channel.
    life.gone = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).then(() => {
      lives.delete(life)
      if (!life.isKilled) record({ type: 'died', at: now(), node: name })
      const end: Failure = { type: 'unanswered' }
      for (const [op, settle] of life.open) {
        record({ op, at: now(), ...end })
        settle(end)
      }
      life.open.clear()
    })
    return life
  }

  async function createNode(index: number): Promise<CampaignNode> {
    const link = await startLink(options.ports)
    let lived = 0
    let life: Life | undefined
    const node: CampaignNode = {
      link,
      get process() {
        return life?.name ?? `n${index}`
      },
      get isUp() {
        return life?.isReady === true && life.child.connected
      },
      ask(call) {
        const asked = life
        if (!asked || !node.isUp) return Promise.resolve({ type: 'unanswered' })
        const op = ++ops
        record({ type: 'invoke', op, at: now(), process: asked.name, call })
        return new Promise((resolve) => {
          asked.open.set(op, resolve)
          const order: Order = { op, call }
          asked.child.send(order, () => {})
        })
      },
      async start() {
        const own = born(`n${index}.${++lived}`, link.ports)
        life = own
        await new Promise<void>((resolve) => {
          own.child.on('message', (word: Word) => {
            if (word.kind !== 'ready') return heard(own, word)
            own.isReady = true
            resolve()
          })
          void own.gone.then(resolve)
        })
      },
      async kill() {
        const own = life
        if (!own) return
        own.isReady = false
        own.isKilled = true
        own.child.kill('SIGKILL')
        await own.gone
      },
      signal: (name) => void life?.child.kill(name),
    }
    return node
  }

  const all = await Promise.all(Array.from({ length: count }, (_, index) => createNode(index)))
  // A run that is interrupted leaves no stopped process behind.
  const last = () => {
    for (const { child } of lives) child.kill('SIGKILL')
  }
  process.once('exit', last)
  await Promise.all(all.map((node) => node.start()))
  return {
    all,
    get open() {
      return [...lives].reduce((sum, { open }) => sum + open.size, 0)
    },
    async close() {
      await Promise.all(all.map((node) => node.kill()))
      await Promise.all(all.map(({ link }) => link.close()))
      process.removeListener('exit', last)
    },
  }
}
