/** Who sends in a fault campaign: commands to clients, messages with ids, repeats of both, and who listens to the events. */
import { askFor, type Clients, type Intent, pause } from './faults-clients.js'
import type { Call, Operation } from './faults-history.js'
import type { CampaignNode } from './faults-nodes.js'
import { TIGHT_SCOPE } from './faults-words.js'
import type { Random } from './fuzz-random.js'

type Name = { user_id: string; client_id: string }
type Dispatch = Extract<Call, { what: 'dispatch' }>
type Ingest = Extract<Call, { what: 'ingest' }>

export interface SendersOptions {
  nodes: readonly CampaignNode[]
  names: readonly Name[]
  clients: () => Clients
  random: Random
}

export interface Senders {
  intentOf(command_id: string): Intent
  /** Every command that a sender tried to dispatch. */
  commands: ReadonlyMap<string, Dispatch>
  streams: ReadonlyMap<string, { user_id: string }>
  /** Sends no more; resolves when the last have been answered or given up. */
  stop(): Promise<void>
  /** Sends a command to every client, until it is known to be admitted or `isOver`. */
  probe(isOver: () => boolean): Promise<void>
  /** Has every node hear all that was published; resolves when they have. */
  catchUp(isOver: () => boolean): Promise<void>
  close(): Promise<void>
}

const SENDERS = 6
const PAUSE_MS = 40
/** Longer than a campaign's faults leave a client without a node, and than its end may take. */
const LONG_MS = 120_000
const BRIEF_MS = 1_500
const MESSAGES_PER_SITE = 400
/** Of the latest messages, which are sent again now and then. */
const LATEST = 20

const isUnclear = (end: Operation['end'] | undefined) => end?.type !== 'ok'

export function createSenders({ nodes, names, clients, random }: SendersOptions): Senders {
  const commands = new Map<string, Dispatch>()
  const intents = new Map<string, Intent>()
  const streams = new Map<string, { user_id: string }>()
  const sentOf = new Map<string, number>()
  const latest: Ingest[] = []
  let messages = 0
  let isStopped = false
  let isClosed = false

  const anyNode = (): CampaignNode => {
    const up = nodes.filter(({ isUp }) => isUp)
    return random.pick(up.length > 0 ? up : nodes)
  }
  const ask = (call: Call) => askFor(anyNode(), call)

  function nextCommand(name: Name, intent: Intent, isBrief: boolean): Dispatch {
    const n = commands.size
    const command_id = `k${n}`
    const scope_id = random.chance(0.1) ? TIGHT_SCOPE : `s${n % 7}`
    const deadline_ms = isBrief ? BRIEF_MS + random.below(BRIEF_MS) : LONG_MS
    const dispatch: Dispatch = { what: 'dispatch', ...name, command_id, scope_id, deadline_ms, n }
    commands.set(command_id, dispatch)
    intents.set(command_id, intent)
    return dispatch
  }

  async function sendCommand() {
    const kind = random.below(100)
    const intent = kind < 3 ? 'fail' : kind < 6 ? 'refuse' : kind < 8 ? 'forget' : 'result'
    const dispatch = nextCommand(random.pick(names), intent, intent === 'forget' || kind < 12)
    const { user_id, client_id, command_id } = dispatch
    let end = await ask(dispatch)
    // Senders without a clear answer ask again, and so do some others.
    for (
      let tries = 0;
      tries < 3 && !isStopped && (isUnclear(end) ? random.chance(0.7) : random.chance(0.05));
      tries++
    ) {
      await pause(random.below(200))
      end = await ask(dispatch)
    }
    if (!random.chance(0.05)) return
    await pause(random.below(500))
    await ask({ what: 'cancel', user_id, client_id, command_id })
  }

  function nextMessage(): Ingest {
    const { user_id, client_id } = random.pick(names)
    const sent = sentOf.get(user_id) ?? 0
    sentOf.set(user_id, sent + 1)
    const site_id = `site${Math.floor(sent / MESSAGES_PER_SITE)}`
    const stream = `users/${user_id}/sites/${site_id}/events`
    streams.set(stream, { user_id })
    const n = messages++
    return { what: 'ingest', user_id, client_id, instance_id: '', site_id, stream, message_id: `m${n}`, n }
  }

  async function sendMessage() {
    const isAgain = latest.length > 0 && random.chance(0.1)
    const message = isAgain ? random.pick(latest) : nextMessage()
    latest.push(message)
    if (latest.length > LATEST) latest.shift()
    for (let tries = 0; tries < 4; tries++) {
      const current = clients().instanceOf(message)
      const [index, count] = current.split('-').map(Number) as [number, number]
      const instance_id = count > 1 && random.chance(0.03) ? `${index}-${count - 1}` : current
      const end = await ask({ ...message, instance_id })
      if (!isUnclear(end) || isStopped || random.chance(0.3)) return
      await pause(random.below(200))
    }
  }

  const sending = Array.from({ length: SENDERS }, async (_, index) => {
    while (!isStopped) {
      await (index % 2 === 0 ? sendCommand() : sendMessage())
      await pause(random.below(PAUSE_MS))
    }
  })

  const listening = nodes.map(async (node) => {
    const done = new Set<string>()
    while (!isClosed) {
      for (const topic of streams.keys()) {
        const name = `${node.process} ${topic}`
        if (isClosed || done.has(name) || !node.isUp) continue
        const asked = node.process
        const end = await askFor(node, { what: 'subscribe', topic })
        if (end?.type === 'ok') done.add(`${asked} ${topic}`)
      }
      await pause(PAUSE_MS)
    }
  })

  return {
    intentOf: (command_id) => intents.get(command_id) ?? 'result',
    commands,
    streams,
    async stop() {
      isStopped = true
      await Promise.all(sending)
    },
    async probe(isOver) {
      const probing = names.map(async (name) => {
        const dispatch = { ...nextCommand(name, 'result', false), scope_id: 'probe' }
        commands.set(dispatch.command_id, dispatch)
        while (!isOver() && isUnclear(await ask(dispatch))) await pause(PAUSE_MS)
      })
      await Promise.all(probing)
    },
    async catchUp(isOver) {
      const catching = nodes.map(async (node) => {
        for (const topic of streams.keys())
          while (!isOver() && isUnclear(await askFor(node, { what: 'subscribe', topic }))) await pause(PAUSE_MS)
      })
      await Promise.all(catching)
    },
    async close() {
      isClosed = true
      await Promise.all(listening)
    },
  }
}
