/** The direct-mode command dispatcher: admits commands and delivers them to the connections of this process. */
import type { CloseResult } from '../../internal/async/deadline.js'
import { type Clock, createClock } from '../../internal/async/timer.js'
import { publishCommands } from '../../internal/contract/channels.js'
import { type ConnectionRegistry, readInstance } from '../../internal/contract/connections.js'
import type { CommandKey, DeliveryInspector } from '../../internal/contract/delivery.js'
import {
  AcknowledgeInput,
  CancelInput,
  type CommandDispatcher,
  DispatchInput,
  SettleInput,
} from '../../internal/contract/delivery-dispatch.js'
import {
  DispatcherOptions,
  readDeliveryBounds,
  requireIdentity,
  withDeadline,
} from '../../internal/contract/delivery-rules.js'
import { digest64 } from '../../internal/contract/digest.js'
import type { Inspected } from '../../internal/contract/families.js'
import { clientKey, commandKey, toReason } from '../../internal/contract/ids.js'
import { identityText, type Json, toJson } from '../../internal/contract/json.js'
import { METADATA_BYTES, RECORD_BYTES } from '../../internal/contract/limits.js'
import {
  Clocked,
  count,
  defineOptions,
  type Input,
  parseInput,
  readOptions,
  textOrNull,
} from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { createDeliveryAttempts, type DeliveryAttempts } from './attempts.js'
import {
  createTrackedCommand,
  latestAttempt,
  type Mailbox,
  type TrackedCommand,
  toDeliveryStatus,
  type Waiter,
} from './command.js'
import { createDeliveryStore, type DeliveryStore } from './commands.js'
import { createDeliveryInspector } from './inspector.js'
import { createDeliveryLoop, type DeliveryLoop } from './loop.js'

// The dispatcher's calls about commands: input is validated, the instance checked, and the result recorded.

interface DeliveryCallsOptions {
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
  return store.reservations.reserve(command.scope_id, command) ? undefined : 'capacity_exceeded'
}

/** Returns the record under `key`, after ending it if it is past its deadline. */
function current(key: string, { store, attempts }: DeliveryCallsOptions): TrackedCommand | undefined {
  const command = store.find(key)
  if (command && !command.terminal) attempts.expire(command)
  return command
}

function createDeliveryCalls(options: DeliveryCallsOptions): Calls {
  const { store, clock, attempts, mailboxes, loop } = options

  /** Returns the command under `key` unless it is terminal. */
  function tracked(key: string): TrackedCommand | undefined {
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
      // Commands past their deadline must not count against a limit, even if the loop has not ended them yet.
      attempts.expireDue()
      const key = commandKey(input)
      const known = current(key, options)
      if (known && known.terminal?.state !== 'rejected') {
        store.count('other', known.fingerprint === fingerprint ? 'dispatch_repeated' : 'dispatch_conflict')
        if (known.fingerprint !== fingerprint) throw new Refusal('command_conflict')
        return toDeliveryStatus(known, clock.now())
      }

      const at = clock.now()
      const deadlineMs = input.deadline_ms ?? options.deadlineMs
      const command = createTrackedCommand(input, {
        key,
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
      return toDeliveryStatus(command, at)
    },

    async acknowledge(given) {
      const input = parseInput(AcknowledgeInput, given)
      const refuse = (reason: 'late' | 'fenced') => {
        store.count('acknowledgement', reason)
        return false
      }
      const key = commandKey(input)
      if (!tracked(key)) return refuse('late')
      if (!(await isCurrent(input, input.instance_id, options))) return refuse('fenced')
      const command = tracked(key)
      if (!command) return refuse('late')
      const state = input.state ?? 'acknowledged'
      if (command.acknowledged === 'none' || state === 'refused') {
        const mailbox = command.mailbox
        store.acknowledge(command, state, input.instance_id, clock.now())
        if (mailbox) mailboxes.kick(mailbox)
      } else store.count('acknowledgement', 'repeated')
      if (state === 'refused') attempts.end(command, 'failed', toReason(input.reason) ?? 'refused')
      return true
    },

    async settle(given) {
      const input = parseInput(SettleInput, given)
      const key = commandKey(input)
      if (!tracked(key)) return false
      if (input.instance_id !== undefined && !(await isCurrent(input, input.instance_id, options))) {
        store.count('other', 'settle_fenced')
        return false
      }
      const command = tracked(key)
      if (!command) return false
      const at = clock.now()
      const by = input.acknowledge ? input.instance_id : undefined
      if (by !== undefined && command.acknowledged === 'none') store.acknowledge(command, 'acknowledged', by, at)
      attempts.end(command, input.state, toReason(input.reason), at)
      return true
    },

    async cancel(given) {
      const input = parseInput(CancelInput, given)
      const command = tracked(commandKey(input))
      if (command) attempts.end(command, 'cancelled', toReason(input.reason))
      return command !== undefined
    },
  }
}

// Drains the mailboxes at which connections wait: delivers their commands, a few at the same time.

/** Delay before the registry is queried again after it failed, in ms. */
const FENCE_RETRY_MS = 1_000

interface MailboxesOptions {
  store: DeliveryStore
  attempts: DeliveryAttempts
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxDeliveriesPerClient: number
}

type Mailboxes = ReturnType<typeof createMailboxes>

function createMailboxes({ store, attempts, connections, maxDeliveriesPerClient }: MailboxesOptions) {
  /** Whether a command of `mailbox` can be delivered now. */
  const canHandOver = ({ waiter, handovers, ready }: Mailbox) =>
    waiter !== null && handovers.size < maxDeliveriesPerClient && ready.size > 0

  /**
   * Whether the waiter is the current instance of its client; `null` if that is unknown now. An outdated waiter is
   * released: its instance attaches again if it returns.
   */
  async function isCurrent(mailbox: Mailbox, waiter: Waiter): Promise<boolean | null> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(mailbox)
    } catch {
      store.count('other', 'fence_unavailable')
      const command = mailbox.ready.first()
      if (command) attempts.pause(command, FENCE_RETRY_MS)
      return null
    }
    if (mailbox.waiter !== waiter) return false
    if (current === waiter.instance_id) return true
    store.count('other', 'waiter_fenced')
    store.setWaiter(mailbox, null)
    return false
  }

  async function drain(mailbox: Mailbox) {
    while (canHandOver(mailbox)) {
      const waiter = mailbox.waiter as Waiter
      const isOurs = await isCurrent(mailbox, waiter)
      // One query for all waiting commands: the first one pauses, and triggers the next query when its pause is over.
      if (isOurs === null) break
      if (!isOurs) continue
      const command = mailbox.ready.first()
      // Read after the wait: the command or the waiter may have changed.
      if (!command || mailbox.waiter !== waiter || attempts.expire(command)) continue
      attempts.handOver(mailbox, command, waiter)
    }
    // In the same step as the last check of the mailbox; otherwise a kick in between would be lost.
    mailbox.draining = false
  }

  /** Schedules a drain of `mailbox`, soon but never within the caller's own step. */
  function kick(mailbox: Mailbox) {
    if (mailbox.draining || !canHandOver(mailbox)) return
    mailbox.draining = true
    queueMicrotask(() => drain(mailbox))
  }

  return { kick }
}

// Attaches a connection to the mailbox of its client, replacing the previous one.

interface AttachOptions {
  store: DeliveryStore
  clock: Clock
  mailboxes: Mailboxes
  loop: DeliveryLoop
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxWaiters: number
  maxWaitersPerUser: number
}

function createAttach(options: AttachOptions): CommandDispatcher['attach'] {
  const { store, clock, mailboxes, loop, connections, maxWaiters, maxWaitersPerUser } = options
  let attaches = 0

  return async (given, deliver) => {
    if (loop.closed) throw new Refusal('closed')
    const sequence = ++attaches
    const instance = readInstance(given)
    requireIdentity(instance)
    if (typeof deliver !== 'function') throw new Refusal('invalid_input', 'deliver: must be a function')
    if (connections && (await connections.currentInstance(instance)) !== instance.instance_id)
      throw new Refusal('stale_instance')
    if (loop.closed) throw new Refusal('closed')
    const former = store.mailboxes.get(clientKey(instance))?.waiter
    // A later attach finished earlier: this one was replaced while it looked up the instance.
    if (former && former.sequence > sequence) {
      if (former.instance_id !== instance.instance_id) throw new Refusal('stale_instance')
      return { async detach() {} }
    }
    const isFull = store.totals.waiters >= maxWaiters || store.waitersOf.of(instance.user_id) >= maxWaitersPerUser
    if (!former && isFull) throw new Refusal('capacity_exceeded')
    const mailbox = store.openMailbox(instance.user_id, instance.client_id)
    const { instance_id } = instance
    const waiter = { instance_id, sequence, cell: 0, mailbox, attachedAt: clock.now(), deliver }
    store.setWaiter(mailbox, waiter)
    mailboxes.kick(mailbox)
    return {
      async detach() {
        if (mailbox.waiter === waiter) store.setWaiter(mailbox, null)
      },
    }
  }
}

const OfProcess = defineOptions({
  /** Deployment id in the summary; `null` for none. @default null */
  deploymentId: textOrNull().default(null),
  // The size of 4,096 payloads of the maximum size.
  /** Maximum size of the payloads of all commands that are not terminal, in bytes. @default 268435456 */
  maxPayloadBytes: count(268_435_456),
})
/** Options of `createCommandDispatcher`. */
export const CommandDispatcherOptions = defineOptions({
  ...DispatcherOptions.shape,
  ...OfProcess.shape,
  ...Clocked.shape,
})
/** Options of `createCommandDispatcher`. */
export interface CommandDispatcherOptions extends DispatcherOptions, Input<typeof OfProcess>, Clocked {}

/**
 * Creates the dispatcher of one process and starts its loop, which does not keep the process alive. A command is
 * delivered at least once, until the client acknowledges it; its record is retained for `retentionMs` after its end. If
 * the clock is set back, deadlines move with it; retries and retention do not.
 *
 * `reconcile()` immediately does all work of the loop that is due.
 *
 * @throws RangeError for a limit that is not an integer of at least 1, and for a deadline over 24 h.
 * @example
 * const dispatcher = createCommandDispatcher()
 * await dispatcher.attach({ user_id: 'u', client_id: 'c', instance_id: 'i' }, (command) => socket.send(command))
 * await dispatcher.dispatch({ user_id: 'u', client_id: 'c', command_id: '1', action: 'refresh' })
 */
export function createCommandDispatcher(
  options: CommandDispatcherOptions = {},
): Inspected<CommandDispatcher, DeliveryInspector> & { reconcile(): Promise<void> } {
  return publishCommands(assembleDispatcher(options).dispatcher)
}

/** Creates the dispatcher with its store, for tests that check for leftovers. */
export function assembleDispatcher(options: CommandDispatcherOptions) {
  const read = readOptions(CommandDispatcherOptions, options)
  const { now, nodeId = 'local', deploymentId, metadata: given } = read
  const connections = withDeadline(read.connections)
  const metadata = given && JSON.parse(toJson(given, METADATA_BYTES).text)
  const bounds = { ...read, ...readDeliveryBounds(read) }
  const { capacityOf, ackTimeoutMs, maxRetained, retentionMs, maxDeliveriesPerClient } = bounds

  const clock = createClock(now)
  const store: DeliveryStore = createDeliveryStore({ capacity: capacityOf, maxRetained, retentionMs, clock })
  const nudge = (delayMs: number) => loop.nudge(delayMs)
  const kick = (mailbox: Mailbox) => mailboxes.kick(mailbox)
  const attempts = createDeliveryAttempts({ store, clock, nodeId, ackTimeoutMs, nudge, kick })
  const mailboxes: Mailboxes = createMailboxes({ store, attempts, connections, maxDeliveriesPerClient })
  const loop: DeliveryLoop = createDeliveryLoop({ store, clock, attempts })
  loop.start()
  const parts = { ...bounds, store, clock, attempts, mailboxes, loop, connections }
  const { reconcile } = loop

  async function close(): Promise<CloseResult> {
    loop.close()
    for (const mailbox of [...store.mailboxes.values()]) if (mailbox.waiter) store.setWaiter(mailbox, null)
    return { aborted: 0 }
  }

  const inspector = createDeliveryInspector({ store, clock, loop, nodeId, deploymentId, metadata })
  return {
    store,
    dispatcher: { ...createDeliveryCalls(parts), attach: createAttach(parts), reconcile, close, inspector },
  }
}
