/** A shard of a dispatcher without a loop beside it: each script runs as a node would run it, when the test says so. */
import type { DeliveryStatus } from '../../src/contract/delivery.js'
import { commandKey } from '../../src/contract/ids.js'
import { readDeliveryStatus } from '../../src/redis/delivery/format.js'
import type { DeliveryScript, NodeArguments } from '../../src/redis/delivery/node-script.js'
import { ACKNOWLEDGE, END } from '../../src/redis/delivery/script-ends.js'
import { ATTACH, DETACH, ORDER, RECONCILE, TAKE } from '../../src/redis/delivery/script-nodes.js'
import { ADMIT, CLAIM, CONCLUDE, LOOK, RELEASE, RESERVE } from '../../src/redis/delivery/scripts.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { toScriptError } from '../../src/redis/store/reply.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore, type Store } from '../../src/redis/store/store.js'
import { createClock } from '../contract/clock.js'
import { client as mailbox } from '../contract/delivery-commands.js'
import { spoil } from './record.js'

export const PATIENCE_MS = 10_000
export const LEASE_MS = 5_000
export const RETENTION_MS = 60_000

const about = { user: mailbox.user_id, client: mailbox.client_id }
/** How a shard names the mailbox of the tests, and a command in it. */
export const PLACE = `${mailbox.user_id}\n${mailbox.client_id}`
export const refOf = (command_id: string) => commandKey({ ...mailbox, command_id })
/** What the key of its record ends in. */
export const recordOf = (command_id: string) => ['command', mailbox.user_id, mailbox.client_id, command_id]

/** An admission of the mailbox's user in its own scope, but for its id. */
export const ADMISSION = {
  ...about,
  next_claim: '',
  action: 'refresh',
  scope: about.user,
  scope_shard: '',
  capacity: 100,
  news: '',
  ttl: 600_000,
  max_attempts: 3,
  fingerprint: 'f',
  payload_text: '1',
  needs: '',
  current: '',
  refused: '',
}

/** One call by itself: its answer, and all that was answered beside it. */
export async function runAlone<Given, Answer>(
  store: Store,
  script: DeliveryScript<Given, Answer>,
  node: NodeArguments,
  given: Given,
) {
  const { answers, failed, counted, claims, ...beside } = await runScript(store, script, 0, {
    ...node,
    given: [script.callOf(given)],
  })
  for (const text of failed.values()) throw toScriptError(text)
  const all = [...counted].flatMap(([entry, times]) => Array<string>(times).fill(entry))
  return { ...beside, counted: all, answer: script.answerOf(answers[0] ?? null), claimed: claims.get(1) }
}

let shards = 0

/** A shard that nobody has used yet, on a clock that only the test moves. */
export function openShard(client: RedisClient) {
  const clock = createClock()
  const store = createStore({ client, deploymentId: `shard${++shards}`, shards: 1, now: clock.now })
  const key = (...parts: string[]) => store.key(0, 'delivery', ...parts)
  const ask = (name: string, end: string[], ...rest: string[]) =>
    store.command([name, key(...end), ...rest], key(...end))
  const spoilt = (command_id: string, field: Parameters<typeof spoil>[2], value: string) =>
    spoil((...command) => store.command(command, key()), key(...recordOf(command_id)), field, value)

  /** A node by its incarnation. What is not given is as any dispatcher has it. */
  function node(incarnation: string, max_per_user = 100) {
    const kept = { retention_ms: RETENTION_MS, max_kept: 100, patience_ms: PATIENCE_MS }
    const bounds = { incarnation, node: incarnation, ...kept, max_tracked: 100, max_per_user }
    const run = <Given, Answer>(script: DeliveryScript<Given, Answer>, given: Given) =>
      runAlone(store, script, bounds, given)
    const ends = { ...about, reason: '', instance: '', was_asked: '', current: '', next_claim: '' }
    return {
      order: () => run(ORDER, {}),
      /** `token` is the instance unless it is another. */
      attach: (instance: string, own_order: number | string, token = instance) =>
        run(ATTACH, { ...about, token, instance, lease_ms: LEASE_MS, own_order }),
      detach: (token: string, own_order: number | string, unsure: number | '' = '') =>
        run(DETACH, { ...about, token, own_order, unsure }),
      admit: (
        id: string,
        more: Partial<{ ttl: number; max_attempts: number; needs: string; current: string; next_claim: string }> = {},
      ) => run(ADMIT, { ...ADMISSION, id, ...more }),
      claim: (token: string, claim: number) => run(CLAIM, { ...about, token, claim }),
      conclude: (id: string, attempt: number, outcome: 'handed_over' | 'rejected', ago = 0) =>
        run(CONCLUDE, { ...about, id, attempt, outcome, ago, next_claim: '' }),
      acknowledge: (id: string, instance: string, attempt: string, next_claim = '', handed_over: number | '' = '') =>
        run(ACKNOWLEDGE, { ...ends, id, state: 'acknowledged', instance, handed_over, ago: 0, attempt, next_claim }),
      end: (
        id: string,
        state: 'resulted' | 'cancelled',
        attempt: string,
        next_claim = '',
        handed_over: number | '' = '',
      ) => run(END, { ...ends, id, state, handed_over, ago: 0, attempt, next_claim, acknowledges: '' }),
      reserve: (scope: string, id: string, ttl: number, attempt = id) =>
        run(RESERVE, { scope, ref: refOf(id), ttl, capacity: 1, news: '1', attempt }),
      release: (scope: string, id: string, attempt: string) => run(RELEASE, { scope, ref: refOf(id), attempt }),
      take: (after: string) => run(TAKE, { after }),
      reconcile: (after = '0') =>
        run(RECONCILE, { max_commands: 200, lease_ms: LEASE_MS, after, waiters: 0, held_json: '[]' }),
      async status(id: string): Promise<DeliveryStatus | null> {
        const { answer } = await run(LOOK, { ...about, id })
        return answer === null ? null : (readDeliveryStatus(answer, { ...mailbox, command_id: id })?.status ?? null)
      },
    }
  }

  return { clock, store, node, ask, spoilt, key }
}
