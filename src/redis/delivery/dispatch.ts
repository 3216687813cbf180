/** How the shared-store dispatcher admits a command: checked, its place reserved, and entered. */
import type * as z from 'zod'
import { shown } from '../../contract/checks.js'
import type { ConnectionRegistry } from '../../contract/connections.js'
import { type CommandDispatcher, DispatchInput } from '../../contract/delivery-dispatch.js'
import { requireIdentity } from '../../contract/delivery-rules.js'
import { digest64 } from '../../contract/digest.js'
import { commandKey } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import { canonicalJson, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { Refusal, wasNotRun } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { toUnavailable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import type { Claims } from './claims.js'
import { fenceOf, NO_FENCE } from './ends.js'
import { admittedStatus, readDeliveryStatus } from './format.js'
import type { DeliveryRun } from './run.js'
import { ADMIT, LOOK, RELEASE, RESERVE } from './scripts.js'

export interface DispatchOptions {
  store: Store
  delivery: DeliveryRun
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  capacityOf: (scope_id: string) => number
  maxAttempts: number
  deadlineMs: number
  isClosed: () => boolean
  nudge: (delayMs: number) => void
  claims: Claims
}

/** Scopes whose capacity the store is known to have been told; that of any other is told again. */
const TOLD_MAX = 10_000

/** What this node has told the store of capacities: the store shows them, and they change at the host's will. */
function createToldCapacities() {
  const told = new Map<string, number>()
  return {
    has: (scope: string, capacity: number) => told.get(scope) === capacity,
    add(scope: string, capacity: number) {
      if (told.size >= TOLD_MAX) told.clear()
      told.set(scope, capacity)
    },
  }
}

type Admission = Parameters<typeof ADMIT.callOf>[0] & { next_claim: string }
type Input = z.output<typeof DispatchInput>

export function createDispatch(options: DispatchOptions): CommandDispatcher['dispatch'] {
  const { store, delivery, connections, capacityOf, claims } = options
  const told = createToldCapacities()

  /**
   * With its place in another shard, which is reserved before the command is admitted: whoever dies in between leaves a
   * reservation that its deadline frees, and never a command without one.
   */
  async function admitElsewhere(input: Input, shard: number, scopeShard: number, admission: Admission) {
    const { scope, ttl, capacity, news, user, client, id } = admission
    const ref = commandKey(input)
    const attempt = crypto.randomUUID()
    const giveBack = () =>
      delivery.run(RELEASE, scopeShard, { scope, ref, attempt }).catch((error) => store.onError(error))

    const { answer: known } = await delivery.run(LOOK, shard, { user, client, id })
    const isNew = known === null || readDeliveryStatus(known, input)?.status.terminal?.state === 'rejected'
    const isReserved =
      !isNew || (await delivery.run(RESERVE, scopeShard, { scope, ref, ttl, capacity, news, attempt })).answer
    const refused = isReserved ? '' : 'capacity_exceeded'
    const admitting = delivery.run(ADMIT, shard, { ...admission, scope_shard: scopeShard, refused })
    const admitted = await admitting.catch(async (error: unknown) => {
      // A place for a command that there certainly is not; where that is not known, its deadline frees it.
      if (wasNotRun(error)) await giveBack()
      throw error
    })
    const { became, record } = admitted.answer
    const status = became === 'admitted' ? undefined : readDeliveryStatus(record, input)?.status
    if (status && (status.terminal !== null || status.admission.scope_id !== scope)) await giveBack()
    return admitted
  }

  function admitHere(input: Input, shard: number, admission: Admission) {
    const { next_claim, claimed, sent } = claims.atOnce(input)
    admission.next_claim = next_claim
    const running = delivery.run(ADMIT, shard, admission, claimed)
    sent(running)
    return running
  }

  return async (given) => {
    const input = parseInput(DispatchInput, given)
    requireIdentity(input)
    const { text } = toJson(input.payload, RECORD_BYTES)
    const { user_id, client_id, command_id, action, scope_id: scope = user_id } = input
    const { was_asked, current } = input.require_waiter ? await fenceOf(connections, input) : NO_FENCE
    if (options.isClosed()) throw new Refusal('closed')

    const shards = await store.claimShards()
    const [shard, scopeShard] = [shardOf(user_id, shards), shardOf(scope, shards)]
    const capacity = Math.min(capacityOf(scope), Number.MAX_SAFE_INTEGER)
    const deadlineMs = input.deadline_ms ?? options.deadlineMs
    // Written out: an object that begins with a spread costs more than the rest of the admission.
    const admission = {
      next_claim: '',
      user: user_id,
      client: client_id,
      id: command_id,
      action,
      scope,
      scope_shard: '',
      capacity,
      news: told.has(scope, capacity) ? '' : '1',
      ttl: deadlineMs,
      max_attempts: input.max_attempts ?? options.maxAttempts,
      // What is compared is what travels: two spellings of one JSON value are one payload.
      fingerprint: digest64(`${action}\n${canonicalJson(JSON.parse(text))}`),
      needs: input.require_waiter ? (was_asked ? 'current' : 'any') : '',
      current,
      refused: '',
      payload_text: text,
    }
    const { now, answer } =
      scopeShard === shard
        ? await admitHere(input, shard, admission)
        : await admitElsewhere(input, shard, scopeShard, admission)
    const { became, record } = answer
    if (became === 'admitted') {
      told.add(scope, capacity)
      options.nudge(deadlineMs)
      return admittedStatus(input, scope, now, Number(record))
    }
    const status = readDeliveryStatus(record, input)?.status
    if (!status)
      throw toUnavailable(
        store,
        new BadRow(`the store should have answered the record of ${shown(commandKey(input))}, and did not`),
      )
    if (became === 'conflict') throw new Refusal('command_conflict')
    return status
  }
}
