/** A shard of a dispatcher without a loop: a step runs only when the test calls it. */
import type { DeliveryStatus } from '../../src/contract/delivery.js'
import { readRecord } from '../../src/redis/delivery/record.js'
import { createDeliveryRun, type Step } from '../../src/redis/delivery/run.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { createStore } from '../../src/redis/store/store.js'
import { createClock } from '../contract/clock.js'
import { client as mailbox } from '../contract/delivery-commands.js'
import type { Matcher } from './lossy-plan.js'

export const LEASE_MS = 5_000
export const RETENTION_MS = 60_000
/** The mailbox of the tests and the reference of a command in it, as in keys of the store. */
export const MAILBOX = `${mailbox.user_id}:${mailbox.client_id}`
export const refOf = (command_id: string) => `${MAILBOX}:${command_id}`

/** The number of arguments of each step. */
const ARGUMENTS: Record<Step, number> = {
  ...{ A: 17, S: 9, C: 4, G: 2, B: 2, D: 2, K: 1, O: 0, W: 4, X: 2, V: 6, L: 3, R: 4 },
}

/** Parses the steps of a call of the store: letters and arguments. */
function stepsOf([name = '', , , , head = '', batch = '']: readonly string[]): [Step, ...string[]][] {
  if (!['FCALL', 'EVALSHA', 'EVAL'].includes(name) || !head.includes('\0')) return []
  const steps: [Step, ...string[]][] = []
  for (let rest = batch; rest !== ''; ) {
    const step = rest[0] as Step
    const parts = rest.slice(1).split('\0')
    steps.push([step, ...parts.slice(0, ARGUMENTS[step])])
    rest = parts.slice(ARGUMENTS[step]).join('\0')
  }
  return steps
}

/** Matches runs with a step. The first run may be sent twice, because the function or script is not loaded yet. */
export const runsOf =
  (step: Step): Matcher =>
  (words) =>
    stepsOf(words).some(([letter]) => letter === step)

/** A delivery attempt in a message of the store. */
export interface Given {
  ref: string
  delivery: string
  attempt: string
}

let shards = 0

/** Opens an unused shard, with a clock that only the test moves. */
export function openShard(client: RedisClient, options: { maxPerUser?: number; maxRetained?: number } = {}) {
  const clock = createClock()
  const store = createStore({ client, deploymentId: `shard${++shards}`, shards: 1, now: clock.now, onError: null })
  const key = (...parts: string[]) => store.key(0, 'delivery', ...parts)
  const ask = (name: string, end: string[], ...rest: string[]) =>
    store.command([name, key(...end), ...rest], key(...end))

  /** Returns a node with this incarnation. */
  function node(incarnation: string) {
    const messages: string[] = []
    const unsure: string[] = []
    const delivery = createDeliveryRun({
      store,
      nodeId: incarnation,
      retentionMs: RETENTION_MS,
      maxRetained: options.maxRetained ?? 100,
      maxTracked: 100,
      maxTrackedPerUser: options.maxPerUser ?? 100,
      incarnationIn: () => incarnation,
      onMessage: (message) => messages.push(message),
      onUnsure: (_, mailboxes) => unsure.push(...mailboxes),
      onTime: () => {},
      onCount: () => {},
    })
    const run = async (step: Step, ...given: (string | number)[]) => (await delivery.run(step, 0, given)).answer
    let words = 0
    let heard = ''
    return {
      counters: delivery.counters,
      run,
      /** Returns the messages in the replies of its own runs since the last call. */
      told: () => messages.splice(0),
      unsure,
      order: () => run('O'),
      attach: (instance: string, order: number | string, most = 8) => run('W', MAILBOX, instance, order, most),
      detach: (order: number | string) => run('X', MAILBOX, order),
      /** Dispatches a command. Returns the letter of the result, followed by its details. */
      admit: (
        id: string,
        {
          ttl = 600_000,
          maxAttempts = 3,
          needs = '',
          current = '',
          scope = mailbox.user_id,
          capacity = 100,
          print = 'f',
          payload = '1',
          trace = '',
          by = `by${++words}`,
        } = {},
      ) =>
        run(
          'A',
          MAILBOX,
          id,
          'refresh',
          trace && `\t${trace}`,
          scope,
          '',
          '',
          ttl,
          capacity,
          '1',
          maxAttempts,
          print,
          needs,
          current,
          '',
          by,
          payload,
        ),
      say: (
        id: string,
        word: 'k' | 'n' | 'r' | 'f' | 'c',
        { instance = '', handed = '', by = `by${++words}`, acknowledges = '' } = {},
      ) => run('S', refOf(id), word, '', instance, '', '', handed, acknowledges, by),
      conclude: (id: string, delivery: number, what: string, ago = 0) => run('C', refOf(id), delivery, what, ago),
      retry: (id: string, delivery: number) => run('G', refOf(id), delivery),
      giveBack: (id: string, delivery: number) => run('B', refOf(id), delivery),
      fetch: (id: string, delivery: number) => run('D', refOf(id), delivery),
      reserve: (scope: string, id: string, ttl: number, dispatch = id, capacity = 1) =>
        run('V', scope, refOf(id), ttl, capacity, '1', dispatch),
      release: (scope: string, id: string, dispatch: string) => run('L', scope, refOf(id), dispatch),
      /** Runs a pass. Returns the state of the lease, the expired leases and the messages. */
      async pass(suspects = '', from = heard) {
        const [standing = '', , , , seen = '', ...entries] = (await run('R', from, suspects, '0', '')).split('\x03')
        const read = entries.filter((entry) => entry !== '').map((entry) => entry.split('\x02'))
        if (standing !== 'restart') heard = read.at(-1)?.[0] ?? (from || '0-0')
        return { standing, seen, messages: read.flatMap(([, ...rest]) => rest) }
      },
      async status(id: string): Promise<DeliveryStatus | null> {
        const answer = await run('K', refOf(id))
        return readRecord(answer, { ...mailbox, command_id: id }, clock.now())?.status ?? null
      },
    }
  }

  /** Returns the delivery attempts in messages. */
  const givenIn = (messages: readonly string[]): Given[] =>
    messages
      .map((message) => message.split('\t'))
      .filter(([kind]) => kind === 'c')
      .map(([, ref = '', delivery = '', attempt = '']) => ({ ref, delivery, attempt }))

  return { clock, store, node, ask, key, givenIn }
}
