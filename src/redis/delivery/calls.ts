/** The calls of the shared-store dispatcher: what a host and a client say about a command, checked and entered. */
import type { ConnectionRegistry } from '../../contract/connections.js'
import {
  AcknowledgeInput,
  CancelInput,
  type CommandDispatcher,
  DispatchInput,
  SettleInput,
} from '../../contract/delivery.js'
import { requireIdentity } from '../../contract/delivery-rules.js'
import { digest64 } from '../../contract/digest.js'
import { toReason } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import { canonicalJson, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import type { Reply } from '../store/reply.js'
import { unusable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import { admittedRecord, readDeliveryStatus, toDeliveryStatus } from './format.js'
import { commandRef, type DeliveryRun } from './run.js'
import { ACKNOWLEDGE, ADMIT, END, LOOK, RELEASE, RESERVE } from './scripts.js'

export interface DeliveryCallsOptions {
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

type Calls = Pick<CommandDispatcher, 'dispatch' | 'acknowledge' | 'settle' | 'cancel'>

export function createDeliveryCalls(options: DeliveryCallsOptions): Calls {
  const { store, delivery, connections, capacityOf } = options

  /** What the registry says of a client, as scripts are given it. */
  async function asked(client: { user_id: string; client_id: string }): Promise<[string, string]> {
    if (!connections) return ['', '']
    return ['1', (await connections.currentInstance(client)) ?? '']
  }

  return {
    async dispatch(given) {
      const input = parseInput(DispatchInput, given)
      requireIdentity(input)
      const { text } = toJson(input.payload, RECORD_BYTES)
      // What is compared is what travels: two spellings of one JSON value are one payload.
      const fingerprint = digest64(`${input.action}\n${canonicalJson(JSON.parse(text))}`)
      const { user_id, client_id, command_id, action, scope_id: scope = user_id } = input
      const [registry, current] = input.requireWaiter ? await asked(input) : ['', '']
      const needs = input.requireWaiter ? (registry ? 'current' : 'any') : ''
      if (options.isClosed()) throw new Refusal('closed')

      const shards = await store.claimShards()
      const [shard, scopeShard] = [shardOf(user_id, shards), shardOf(scope, shards)]
      const isElsewhere = scopeShard !== shard
      const asksCapacity = capacityOf(scope)
      const capacity = Number.isNaN(asksCapacity) ? 0 : Math.min(asksCapacity, Number.MAX_SAFE_INTEGER)
      const deadlineMs = input.deadlineMs ?? options.deadlineMs
      const ref = commandRef(input)

      // The place is reserved before the command is admitted: whoever dies in between leaves a reservation that its
      // deadline frees, and never a command without one.
      let refusal = ''
      if (isElsewhere) {
        const known = await delivery.run(LOOK, shard, user_id, client_id, command_id)
        const isNew = known.answer === 0 || readDeliveryStatus(known.answer)?.status.terminal?.state === 'rejected'
        if (isNew) {
          const reserved = await delivery.run(RESERVE, scopeShard, scope, ref, deadlineMs, capacity)
          if (reserved.answer !== 1) refusal = 'capacity_exceeded'
        }
      }
      const maxAttempts = input.maxAttempts ?? options.maxAttempts
      const command = [user_id, client_id, command_id, action, scope, isElsewhere ? scopeShard : '', capacity]
      const terms = [deadlineMs, maxAttempts, fingerprint, text, needs, current]
      const shares = [options.maxTracked, options.maxTrackedPerUser, refusal]
      const { now, answer } = await delivery.run(ADMIT, shard, ...command, ...terms, ...shares)
      const [what, record] = answer as [string, Reply]
      if (what === 'admitted') {
        options.nudge(deadlineMs)
        return toDeliveryStatus(admittedRecord({ user_id, client_id, command_id, scope }, now, Number(record)))
      }
      const status = readDeliveryStatus(record)?.status
      if (!status) throw unusable(store, new BadRow('the store answered what is no record of a command'))
      const holds = status.terminal === null && status.admission.scope_id === scope
      if (isElsewhere && !holds)
        await delivery.run(RELEASE, scopeShard, scope, ref).catch((error) => store.report(error))
      if (what === 'conflict') throw new Refusal('command_conflict')
      return status
    },

    async acknowledge(given) {
      const { user_id, client_id, command_id, instance_id, state, reason } = parseInput(AcknowledgeInput, given)
      const about = [user_id, client_id, command_id, state ?? 'acknowledged', toReason(reason) ?? 'refused']
      const fence = [instance_id, ...(await asked({ user_id, client_id }))]
      return (await delivery.runFor(ACKNOWLEDGE, user_id, ...about, ...fence)).answer === 1
    },

    async settle(given) {
      const { user_id, client_id, command_id, state, reason, instance_id } = parseInput(SettleInput, given)
      const about = [user_id, client_id, command_id, state, toReason(reason) ?? '']
      const fence = instance_id === undefined ? ['', '', ''] : [instance_id, ...(await asked({ user_id, client_id }))]
      return (await delivery.runFor(END, user_id, ...about, ...fence)).answer === 1
    },

    async cancel(given) {
      const { user_id, client_id, command_id, reason } = parseInput(CancelInput, given)
      const about = [user_id, client_id, command_id, 'cancelled', toReason(reason) ?? '']
      return (await delivery.runFor(END, user_id, ...about, '', '', '')).answer === 1
    },
  }
}
