/** A shard of a dispatcher without a loop: a step runs only when the test calls it. */
import type { DeliveryStatus } from '../../src/internal/contract/delivery.js'
import { readRecord } from '../../src/redis/delivery/record.js'
import { createDeliveryRun } from '../../src/redis/delivery/run.js'
import { type Given as Arguments, STEPS, type Step } from '../../src/redis/delivery/steps.js'
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

const STEP_OF = new Map(Object.entries(STEPS).map(([name, { letter, args }]) => [letter as string, { name, args }]))

/** Parses the names of the steps of a call of the store. */
function stepsOf([name = '', , , , head = '', batch = '']: readonly string[]): string[] {
  if (!['FCALL', 'EVALSHA', 'EVAL'].includes(name) || !head.includes('\0')) return []
  const steps: string[] = []
  for (let rest = batch; rest !== ''; ) {
    const step = STEP_OF.get(rest[0] as string)
    if (!step) throw new Error(`unknown step ${rest[0]}`)
    steps.push(step.name)
    rest = rest.slice(1).split('\0').slice(step.args.length).join('\0')
  }
  return steps
}

/** Matches runs with a step. The first run may be sent twice, because the function or script is not loaded yet. */
export const runsOf =
  (step: Step): Matcher =>
  (words) =>
    stepsOf(words).includes(step)

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
      onTime: () => {},
      onCount: () => {},
    })
    delivery.connect({
      receive: (message) => messages.push(message),
      unsure: (mailboxes) => unsure.push(...mailboxes),
    })
    const run = async <S extends Step>(step: S, given: Arguments<S>) => (await delivery.run(step, 0, given)).answer
    let words = 0
    let heard = ''
    return {
      counters: delivery.counters,
      run,
      /** Returns the messages in the replies of its own runs since the last call. */
      told: () => messages.splice(0),
      unsure,
      order: () => run('take_order', {}),
      attach: async (instance: string, order: number | string, most = 8) =>
        (await run('attach', { mailbox: MAILBOX, instance, order, max_deliveries: most })).split('\0'),
      detach: (order: number | string) => run('detach', { mailbox: MAILBOX, order }),
      /** Dispatches a command. Returns the kind of the result, followed by its details. */
      admit: async (
        id: string,
        {
          ttl = 600_000,
          maxAttempts = 3,
          required = '',
          current = '',
          scope = mailbox.user_id,
          capacity = 100,
          fingerprint = 'f',
          payload = '1',
          trace = '',
          by = `by${++words}`,
        } = {},
      ) => {
        const of = { mailbox: MAILBOX, id, action: 'refresh', trace: trace && `\t${trace}`, fingerprint, payload }
        const place = { scope, scope_shard: '', deadline: '', ttl, capacity, writes_capacity: '1', refused: '' }
        const given = { ...of, ...place, max_attempts: maxAttempts, required, current, call_id: by }
        return (await run('admit', given)).split('\0')
      },
      say: (
        id: string,
        kind: 'k' | 'n' | 'r' | 'f' | 'c',
        { instance = '', handed = '', by = `by${++words}`, acknowledges = '' } = {},
      ) => {
        const of = { ref: refOf(id), kind, reason: '', instance, was_asked: '', current: '' }
        return run('report', { ...of, handed, acknowledges, call_id: by })
      },
      conclude: (id: string, delivery: number, outcome: string, ago = 0) =>
        run('conclude', { ref: refOf(id), delivery, outcome, ago }),
      retry: (id: string, delivery: number) => run('retry', { ref: refOf(id), delivery }),
      giveBack: (id: string, delivery: number) => run('give_back', { ref: refOf(id), delivery }),
      fetch: (id: string, delivery: number) => run('fetch', { ref: refOf(id), delivery }),
      reserve: (scope: string, id: string, ttl: number, dispatch = id, capacity = 1) =>
        run('reserve', { scope, ref: refOf(id), ttl, capacity, writes_capacity: '1', dispatch }),
      release: (scope: string, id: string, dispatch: string) => run('release', { scope, ref: refOf(id), dispatch }),
      /** Runs a pass. Returns the state of the lease, the expired leases and the messages. */
      async pass(suspects = '', from = heard) {
        const [standing = '', , , , seen = '', ...entries] = (
          await run('pass', { heard: from, suspects, scope_after: '0', former: '' })
        ).split('\x03')
        const read = entries.filter((entry) => entry !== '').map((entry) => entry.split('\x02'))
        if (standing !== 'restart') heard = read.at(-1)?.[0] ?? (from || '0-0')
        return { standing, seen, messages: read.flatMap(([, ...rest]) => rest) }
      },
      async status(id: string): Promise<DeliveryStatus | null> {
        const answer = await run('look_up', { ref: refOf(id) })
        return readRecord(answer, { ...mailbox, command_id: id }, clock.now())?.status ?? null
      },
    }
  }

  /** Returns the delivery attempts in messages. */
  const givenIn = (messages: readonly string[]): Given[] =>
    messages
      .map((message) => message.split('\t'))
      .filter(([kind]) => kind === 'command')
      .map(([, ref = '', delivery = '', attempt = '']) => ({ ref, delivery, attempt }))

  return { clock, store, node, ask, key, givenIn }
}
