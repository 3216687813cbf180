/** The dispatcher's calls about commands: input is validated, the instance checked, and the result recorded. */

import type { Clock } from '../../async/timer.js'
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { CommandKey } from '../../contract/delivery.js'
import {
  AcknowledgeInput,
  CancelInput,
  type CommandDispatcher,
  DispatchInput,
  SettleInput,
} from '../../contract/delivery-dispatch.js'
import { requireIdentity } from '../../contract/delivery-rules.js'
import { digest64 } from '../../contract/digest.js'
import { clientKey, commandKey, toReason } from '../../contract/ids.js'
import { identityText, type Json, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { parseInput } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import type { DeliveryAttempts } from './attempts.js'
import { createTrackedCommand, latestAttempt, type TrackedCommand, toDeliveryStatus } from './command.js'
import type { DeliveryStore } from './commands.js'
import type { DeliveryLoop } from './loop.js'
import type { Mailboxes } from './mailboxes.js'

export interface DeliveryCallsOptions {
  store: DeliveryStore
  clock: Clock
  attempts: DeliveryAttempts
  mailboxes: Mailboxes
  loop: DeliveryLoop
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxAttempts: number
  deadlineMs: number
  maxTracked: number
  maxTrackedPerUser: number
  maxPayloadBytes: number
}

type Calls = Pick<CommandDispatcher, 'dispatch' | 'acknowledge' | 'settle' | 'cancel'>

const lastInstanceOf = (command: TrackedCommand | undefined) => command && latestAttempt(command)?.instance_id

/** Whether `instance_id` is the client's current instance: by the registry, else the attached or last attempted one. */
async function isCurrent(
  key: CommandKey,
  instance_id: string,
  { store, connections }: DeliveryCallsOptions,
): Promise<boolean> {
  if (connections) return (await connections.currentInstance(key)) === instance_id
  const waiter = store.mailboxes.get(clientKey(key))?.waiter
  return (waiter?.instance_id ?? lastInstanceOf(store.tracked.get(commandKey(key)))) === instance_id
}

/** Whether a current instance of the client is attached. */
async function isWaitedFor(client: CommandKey, { store, connections }: DeliveryCallsOptions): Promise<boolean> {
  const waiter = store.mailboxes.get(clientKey(client))?.waiter
  return waiter != null && (!connections || (await connections.currentInstance(client)) === waiter.instance_id)
}

/** Returns why a new command cannot be admitted, or `undefined` after reserving its place. */
function admissionRefusal(command: TrackedCommand, options: DeliveryCallsOptions): string | undefined {
  const { store } = options
  const payloadBytes = store.totals.payloadBytes + command.payloadBytes
  if (store.tracked.size >= options.maxTracked || payloadBytes > options.maxPayloadBytes) return 'overloaded'
  if (store.trackedOf.of(command.user_id) >= options.maxTrackedPerUser) return 'capacity_exceeded'
  return store.reservations.reserve(command.scope_id, command, command.admittedAt) ? undefined : 'capacity_exceeded'
}

/** Returns the record under `key`, after ending it if it is past its deadline. */
function current(key: CommandKey, { store, attempts }: DeliveryCallsOptions): TrackedCommand | undefined {
  const command = store.find(commandKey(key))
  if (command && !command.terminal) attempts.expire(command)
  return command
}

export function createDeliveryCalls(options: DeliveryCallsOptions): Calls {
  const { store, clock, attempts, mailboxes, loop } = options

  /** Returns the command under `key` unless it is terminal. */
  function tracked(key: CommandKey): TrackedCommand | undefined {
    const command = current(key, options)
    return command?.terminal ? undefined : command
  }

  return {
    async dispatch(given) {
      const input = parseInput(DispatchInput, given)
      requireIdentity(input)
      const { text, bytes } = toJson(input.payload, RECORD_BYTES)
      const payload: Json = JSON.parse(text)
      // Compares values: two spellings of the same value are the same payload.
      const fingerprint = digest64(`${input.action}\n${identityText(payload)}`)
      const waitedFor = !input.require_waiter || (await isWaitedFor(input, options))
      // Nothing is awaited from here, so that two equal calls cannot both find the key unused.
      if (loop.closed) throw new Refusal('closed')
      const known = current(input, options)
      if (known && known.terminal?.state !== 'rejected') {
        store.count('other', known.fingerprint === fingerprint ? 'dispatch_repeated' : 'dispatch_conflict')
        if (known.fingerprint !== fingerprint) throw new Refusal('command_conflict')
        return toDeliveryStatus(known)
      }

      const at = clock.now()
      const deadlineMs = input.deadline_ms ?? options.deadlineMs
      const command = createTrackedCommand(input, {
        sequence: store.nextSequence(),
        admittedAt: at,
        queuedAt: clock.steady(),
        deadlineAt: at + deadlineMs,
        maxAttempts: input.max_attempts ?? options.maxAttempts,
        fingerprint,
        payload,
        payloadBytes: bytes,
      })
      const refusal = waitedFor ? admissionRefusal(command, options) : 'no_waiter'
      if (refusal) store.reject(command, refusal, at)
      else {
        const mailbox = store.openMailbox(command.user_id, command.client_id)
        store.admit(command, mailbox)
        loop.nudge(deadlineMs)
        mailboxes.kick(mailbox)
      }
      return toDeliveryStatus(command)
    },

    async acknowledge(given) {
      const input = parseInput(AcknowledgeInput, given)
      const refuse = (reason: 'late' | 'fenced') => {
        store.count('acknowledgement', reason)
        return false
      }
      if (!tracked(input)) return refuse('late')
      if (!(await isCurrent(input, input.instance_id, options))) return refuse('fenced')
      const command = tracked(input)
      if (!command) return refuse('late')
      const state = input.state ?? 'acknowledged'
      if (command.acknowledged === 'none') {
        const mailbox = command.mailbox
        store.acknowledge(command, state, input.instance_id, clock.now())
        if (mailbox) mailboxes.kick(mailbox)
      } else store.count('acknowledgement', 'repeated')
      if (state === 'refused') attempts.end(command, 'failed', toReason(input.reason) ?? 'refused')
      return true
    },

    async settle(given) {
      const input = parseInput(SettleInput, given)
      if (!tracked(input)) return false
      if (input.instance_id !== undefined && !(await isCurrent(input, input.instance_id, options))) {
        store.count('other', 'settle_fenced')
        return false
      }
      const command = tracked(input)
      if (!command) return false
      const at = clock.now()
      const by = input.acknowledge ? input.instance_id : undefined
      if (by !== undefined && command.acknowledged === 'none') store.acknowledge(command, 'acknowledged', by, at)
      attempts.end(command, input.state, toReason(input.reason), at)
      return true
    },

    async cancel(given) {
      const input = parseInput(CancelInput, given)
      const command = tracked(input)
      if (command) attempts.end(command, 'cancelled', toReason(input.reason))
      return command !== undefined
    },
  }
}
