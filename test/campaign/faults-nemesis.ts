/** What happens to the nodes of a fault campaign and their links, as a seed decides; all of it passes again. */
import { pause } from './faults-clients.js'
import type { Entry } from './faults-history.js'
import type { Cut } from './faults-link.js'
import type { CampaignNode } from './faults-nodes.js'
import type { Random } from './fuzz-random.js'

export interface NemesisOptions {
  nodes: readonly CampaignNode[]
  /** Those of the store; one of them stalls. */
  servers: readonly { pause(): void; resume(): void }[]
  random: Random
  record: (entry: Entry) => void
  now: () => number
  /** Has some client change its node. */
  move: (index: number) => void
}

export interface Nemesis {
  /** Begins no more; resolves when every node lives and every link is whole. */
  stop(): Promise<void>
}

/** A node's lease, which the longest stops outlast. */
const LEASE_MS = 5_000
const PAUSE_MS = 250
/** Commands to the store before a node dies: about two deliveries. */
const STEPS_MAX = 30
/** A node that sends nothing dies all the same. */
const FUSE_MS = 2_000

const CUTS: readonly Cut[] = ['reset', 'hold', 'swallow', 'late']
type Fault = 'kill' | 'stop' | 'cut' | 'stall' | 'move'
const FAULTS: readonly Fault[] = ['kill', 'kill', 'kill', 'stop', 'cut', 'cut', 'cut', 'cut', 'move', 'move', 'stall']
/** With what every campaign begins, however short it is. */
const FIRST: readonly Fault[] = ['stop', 'kill', 'cut']

export function startNemesis({ nodes, servers, random, record, now, move }: NemesisOptions): Nemesis {
  const busy = new Set<CampaignNode>()
  const underWay = new Set<Promise<void>>()
  let isStopped = false
  const note = (fault: string, node: string) => record({ type: 'fault', at: now(), fault, node })

  async function kill(node: CampaignNode) {
    const victim = node.process
    if (random.chance(0.7)) {
      let timer: ReturnType<typeof setTimeout> | undefined
      await new Promise<void>((resolve) => {
        node.link.atCommand(1 + random.below(STEPS_MAX), random.chance(0.5), resolve)
        timer = setTimeout(resolve, FUSE_MS)
      })
      clearTimeout(timer)
    }
    await node.kill()
    note('kill', victim)
    await pause(random.below(800))
    node.link.restore()
    await node.start()
  }

  async function stop(node: CampaignNode, isLong: boolean) {
    note('stop', node.process)
    node.signal('SIGSTOP')
    await pause(isLong ? LEASE_MS + 500 + random.below(1_500) : 500 + random.below(2_500))
    node.signal('SIGCONT')
  }

  async function cut(node: CampaignNode) {
    const how = random.pick(CUTS)
    note(`cut ${how}`, node.process)
    node.link.cut(how)
    if (how !== 'reset') await pause(300 + random.below(3_000))
    node.link.restore()
  }

  async function stall() {
    note('stall', 'store')
    const server = random.pick(servers)
    server.pause()
    await pause(300 + random.below(2_500))
    server.resume()
  }

  let isStalled = false
  function begin(fault: Fault, isFirst: boolean): Promise<void> | undefined {
    if (fault === 'move') {
      note('move', 'client')
      move(random.below(1_000))
      return undefined
    }
    if (fault === 'stall') {
      if (isStalled) return undefined
      isStalled = true
      return stall().finally(() => {
        isStalled = false
      })
    }
    const free = nodes.filter((node) => !busy.has(node))
    // Keep at least one node free of faults.
    if (free.length < 2) return undefined
    const node = random.pick(free)
    busy.add(node)
    const happening =
      fault === 'kill' ? kill(node) : fault === 'stop' ? stop(node, isFirst || random.chance(0.3)) : cut(node)
    return happening.finally(() => busy.delete(node))
  }

  const running = (async () => {
    const first = [...FIRST]
    while (!isStopped || first.length > 0) {
      await pause(random.below(2 * PAUSE_MS))
      const happening = begin(first[0] ?? random.pick(FAULTS), first.length > 0)
      if (!happening) continue
      first.shift()
      const ended = happening.finally(() => underWay.delete(ended))
      underWay.add(ended)
    }
  })()

  return {
    async stop() {
      isStopped = true
      await running
      await Promise.all(underWay)
    },
  }
}
