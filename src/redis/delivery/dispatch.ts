/** How the shared-store dispatcher admits a command: checked, its place reserved, and entered. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import { type CommandDispatcher, DispatchInput } from '../../contract/delivery-dispatch.js'
import { requireIdentity } from '../../contract/delivery-rules.js'
import { digest64 } from '../../contract/digest.js'
import { commandKey } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import { canonicalJson, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { shown } from '../../contract/options.js'
import { Refusal, wasNotRun } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { unusable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import { fenceOf, NO_FENCE } from './ends.js'
import { admittedRecord, readDeliveryStatus, toDeliveryStatus } from './format.js'
import type { DeliveryRun } from './run.js'
import { ADMIT, LOOK, RELEASE, RESERVE } from './scripts.js'

export interface DispatchOptions {
  store: Store
  delivery: DeliveryRun
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  capacityOf: (scope_id: string) => number
  maxAttempts: number
  deadlineMs: number
  maxTracked: number
  maxTrackedPerUser: number
  isClosed: () => boolean
  nudge: (delayMs: number) => void
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

export function createDispatch(options: DispatchOptions): CommandDispatcher['dispatch'] {
  const { store, delivery, connections, capacityOf } = options
  const told = createToldCapacities()

  return async (given) => {
    const input = parseInput(DispatchInput, given)
    requireIdentity(input)
    const { text } = toJson(input.payload, RECORD_BYTES)
    // What is compared is what travels: two spellings of one JSON value are one payload.
    const fingerprint = digest64(`${input.action}\n${canonicalJson(JSON.parse(text))}`)
    const { user_id, client_id, command_id, action, scope_id: scope = user_id } = input
    const { was_asked, current } = input.requireWaiter ? await fenceOf(connections, input) : NO_FENCE
    const needs = input.requireWaiter ? (was_asked ? 'current' : 'any') : ''
    if (options.isClosed()) throw new Refusal('closed')

    const shards = await store.claimShards()
    const [shard, scopeShard] = [shardOf(user_id, shards), shardOf(scope, shards)]
    const isElsewhere = scopeShard !== shard
    const wanted = capacityOf(scope)
    const capacity = Number.isNaN(wanted) ? 0 : Math.min(wanted, Number.MAX_SAFE_INTEGER)
    const news = told.has(scope, capacity) ? '' : '1'
    const deadlineMs = input.deadlineMs ?? options.deadlineMs
    const ref = commandKey(input)

    // The place is reserved before the command is admitted: whoever dies in between leaves a reservation that its
    // deadline frees, and never a command without one.
    let refused = ''
    const attempt = isElsewhere ? crypto.randomUUID() : ''
    const giveBack = () =>
      delivery.run(RELEASE, scopeShard, { scope, ref, attempt }).catch((error) => store.onError(error))
    if (isElsewhere) {
      const { answer: known } = await delivery.run(LOOK, shard, {
        user: user_id,
        client: client_id,
        id: command_id,
      })
      const isNew = known === null || readDeliveryStatus(known, input)?.status.terminal?.state === 'rejected'
      if (isNew) {
        const reserved = await delivery.run(RESERVE, scopeShard, {
          scope,
          ref,
          ttl: deadlineMs,
          capacity,
          news,
          attempt,
        })
        if (!reserved.answer) refused = 'capacity_exceeded'
      }
    }
    // Written out: an object that begins with a spread costs more than the rest of the admission.
    const admitting = delivery.run(ADMIT, shard, {
      user: user_id,
      client: client_id,
      id: command_id,
      action,
      scope,
      scope_shard: isElsewhere ? scopeShard : '',
      capacity,
      news,
      ttl: deadlineMs,
      max_attempts: input.maxAttempts ?? options.maxAttempts,
      fingerprint,
      payload_text: text,
      needs,
      current,
      max_tracked: options.maxTracked,
      max_per_user: options.maxTrackedPerUser,
      refused,
    })
    const { now, answer } = await admitting.catch(async (error: unknown) => {
      // A place for a command that there certainly is not; where that is not known, its deadline frees it.
      if (isElsewhere && wasNotRun(error)) await giveBack()
      throw error
    })
    const { became, record } = answer
    if (became === 'admitted') {
      told.add(scope, capacity)
      options.nudge(deadlineMs)
      return toDeliveryStatus(admittedRecord(scope, now, Number(record)), input)
    }
    const status = readDeliveryStatus(record, input)?.status
    if (!status)
      throw unusable(store, new BadRow(`the store should have answered the record of ${shown(ref)}, and did not`))
    const holds = status.terminal === null && status.admission.scope_id === scope
    if (isElsewhere && !holds) await giveBack()
    if (became === 'conflict') throw new Refusal('command_conflict')
    return status
  }
}
