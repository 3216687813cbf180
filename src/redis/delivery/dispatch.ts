/** Admits commands to the shared store: validates the input, reserves capacity in the scope and writes the record. */
import type * as z from 'zod'
import { shown } from '../../internal/contract/checks.js'
import type { ConnectionRegistry } from '../../internal/contract/connections.js'
import type { CommandKey } from '../../internal/contract/delivery.js'
import {
  AcknowledgeInput,
  CancelInput,
  type CommandDispatcher,
  DispatchInput,
  SettleInput,
} from '../../internal/contract/delivery-dispatch.js'
import { requireIdentity } from '../../internal/contract/delivery-rules.js'
import { digest64 } from '../../internal/contract/digest.js'
import { commandKey, encodePart, toReason } from '../../internal/contract/ids.js'
import { identityText, toJson } from '../../internal/contract/json.js'
import { RECORD_BYTES } from '../../internal/contract/limits.js'
import { parseInput } from '../../internal/contract/options.js'
import { Refusal, wasNotRun } from '../../internal/refusal.js'
import { shardOf } from '../store/keys.js'
import { toUnavailable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import type { Attempts } from './attempts.js'
import type { Mailboxes } from './mailboxes.js'
import { admittedStatus, decodePart, mailboxOf, readRecord, refOf } from './record.js'
import type { DeliveryRun } from './run.js'

// Acknowledges, settles and cancels commands. Calls on behalf of a client are fenced by its instance.

type Registry = Pick<ConnectionRegistry, 'currentInstance'> | undefined

/** Whether a registry was asked ('1', else ''), and the instance that is current according to it. */
interface Fence {
  wasAsked: string
  current: string
}

/** The fence of a dispatcher without a registry. */
const NO_FENCE: Fence = { wasAsked: '', current: '' }

/** Asks the registry for the current instance of a client. */
async function fenceOf(
  registry: NonNullable<Registry>,
  { user_id, client_id }: { user_id: string; client_id: string },
): Promise<Fence> {
  return { wasAsked: '1', current: (await registry.currentInstance({ user_id, client_id })) ?? '' }
}

/** `k` acknowledges and `n` refuses a command; `r`, `f` and `c` end it as resulted, failed and cancelled. */
type ReportKind = 'k' | 'n' | 'r' | 'f' | 'c'

export function createEnds(
  store: Store,
  delivery: DeliveryRun,
  attempts: Attempts,
  mailboxes: Mailboxes,
  registry: Registry,
): Pick<CommandDispatcher, 'acknowledge' | 'settle' | 'cancel'> {
  /** Prefix of the call ids of this node. The store recognises a call that the Redis client resends by its id. */
  const here = crypto.randomUUID().slice(0, 18)
  let reports = 0

  async function report(
    command: CommandKey,
    kind: ReportKind,
    reason: string,
    instance: string,
    { wasAsked, current }: Fence,
    acknowledges = false,
  ): Promise<boolean> {
    const ref = refOf(command)
    const shard = shardOf(command.user_id, await store.claimShards())
    const handed = attempts.takeReport(ref)
    const given = {
      ref,
      kind,
      reason,
      instance,
      was_asked: wasAsked,
      current,
      handed: handed?.delivery ?? '',
      acknowledges: acknowledges ? '1' : '',
      call_id: `${here}${++reports}`,
    }
    try {
      const { answer } = await delivery.run('report', shard, given, mailboxOf(command))
      if (handed && answer !== '1') attempts.returnReport(handed)
      return answer === '1'
    } catch (error) {
      if (handed) attempts.returnReport(handed)
      if (!wasNotRun(error) && attempts.has(ref)) mailboxes.mayHaveEnded(ref, shard)
      throw error
    }
  }

  return {
    async acknowledge(given) {
      const { instance_id, state, reason, ...command } = parseInput(AcknowledgeInput, given)
      const fence = registry ? await fenceOf(registry, command) : NO_FENCE
      return state === 'refused'
        ? report(command, 'n', toReason(reason) ?? 'refused', instance_id, fence)
        : report(command, 'k', '', instance_id, fence)
    },

    async settle(given) {
      const { state, reason, instance_id, acknowledge, ...command } = parseInput(SettleInput, given)
      const fence = instance_id === undefined || !registry ? NO_FENCE : await fenceOf(registry, command)
      const kind = state === 'resulted' ? 'r' : 'f'
      return report(command, kind, toReason(reason) ?? '', instance_id ?? '', fence, acknowledge)
    },

    async cancel(given) {
      const { reason, ...command } = parseInput(CancelInput, given)
      return report(command, 'c', toReason(reason) ?? '', '', NO_FENCE)
    },
  }
}

interface DispatchOptions {
  store: Store
  delivery: DeliveryRun
  mailboxes: Mailboxes
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  capacityOf: (scope_id: string) => number
  maxAttempts: number
  deadlineMs: number
  isClosed: () => boolean
  nudge: (delayMs: number) => void
}

/** Maximum number of scopes whose written capacity is remembered. */
const WRITTEN_MAX = 10_000

/**
 * Remembers which capacities this node has written to the store, which keeps them for the inspector. A capacity is written
 * again after the host has changed it.
 */
function createWrittenCapacities() {
  const written = new Map<string, number>()
  return {
    has: (scope: string, capacity: number) => written.get(scope) === capacity,
    add(scope: string, capacity: number) {
      if (written.size >= WRITTEN_MAX) written.clear()
      written.set(scope, capacity)
    },
  }
}

type Input = z.output<typeof DispatchInput>

/** The values that all steps of one admission share. */
interface Admission {
  mailbox: string
  ref: string
  id: string
  scope: string
  shard: number
  scopeShard: number
  capacity: number
  writesCapacity: '' | '1'
  deadlineMs: number
  /** Which attached client the command requires: none, any instance, or the current one. */
  required: '' | 'any' | 'current'
  current: string
  payload: string
  maxAttempts: number
}

type Admitted = ReturnType<typeof readAdmitted>

/** Reads the answer of `admit`. */
function readAdmitted(answer: string, now: number, key: CommandKey) {
  const [kind, ...rest] = answer.split('\0')
  if (kind === 'given' || kind === 'admitted') {
    const [deadline, node = '', order = '', instance = ''] = rest
    return { isAdmitted: true, now, deadlineAt: Number(deadline), node, order, instance } as const
  }
  const status = kind === 'conflict' ? undefined : readRecord(rest.join('\0'), key, now)?.status
  return { isAdmitted: false, isConflict: kind === 'conflict', status } as const
}

export function createDispatch(options: DispatchOptions): CommandDispatcher['dispatch'] {
  const { store, delivery, mailboxes, connections, capacityOf } = options
  const written = createWrittenCapacities()

  /** Prefix of the dispatch ids of this node. The store recognises a dispatch that the Redis client resends by its id. */
  const here = crypto.randomUUID().slice(0, 18)
  let dispatched = 0

  /** @param place The deadline of the reservation in another shard, or the reason for which that was refused. */
  async function admit(input: Input, admission: Admission, place = { deadline: '', refused: '' }): Promise<Admitted> {
    const { mailbox, ref, id, scope, shard, scopeShard, payload } = admission
    const given = {
      mailbox,
      id,
      action: input.action,
      trace: input.trace === undefined ? '' : `\t${input.trace}`,
      scope,
      scope_shard: scopeShard === shard ? '' : scopeShard,
      deadline: place.deadline,
      ttl: admission.deadlineMs,
      capacity: admission.capacity,
      writes_capacity: admission.writesCapacity,
      max_attempts: admission.maxAttempts,
      // Compares values, so that two spellings of the same value count as the same payload.
      fingerprint: digest64(`${input.action}\n${identityText(JSON.parse(payload))}`),
      required: admission.required,
      current: admission.current,
      refused: place.refused,
      call_id: `${here}${++dispatched}`,
      payload,
    }
    const answered = await delivery.run('admit', shard, given, mailbox, ({ answer, now }) => {
      const admitted = answer.startsWith('given\0') ? readAdmitted(answer, now, input) : undefined
      if (!admitted?.isAdmitted) return
      // Given to a client that is attached to this node, which already has the payload.
      const { deadlineAt, order } = admitted
      const { action, trace = '' } = input
      mailboxes.take({ ref, delivery: '1', attempt: 1, deadlineAt, order, action, trace, payload }, shard)
    })
    return readAdmitted(answered.answer, answered.now, input)
  }

  /**
   * Admits a command whose scope is in another shard. The reservation comes first and fixes the deadline. If the node dies
   * before the admission, the reservation expires at that deadline; no command is admitted without a reservation.
   */
  async function admitElsewhere(input: Input, admission: Admission): Promise<Admitted> {
    const { shard, scopeShard, scope, ref, deadlineMs: ttl, capacity, writesCapacity: writes_capacity } = admission
    const place = { scope, ref, dispatch: crypto.randomUUID() }
    const release = () => delivery.run('release', scopeShard, place).catch((error) => store.onError(error))
    const refuse = () => admit(input, admission, { deadline: '', refused: 'capacity_exceeded' })

    const { answer: known, now } = await delivery.run('look_up', shard, { ref })
    const isNew = known === '' || readRecord(known, input, now)?.status.terminal?.state === 'rejected'
    // The record may be deleted before the next step. Without a reservation, the command must not be admitted then.
    if (!isNew) return refuse()
    const given = { ...place, ttl, capacity, writes_capacity }
    const { answer: deadline } = await delivery.run('reserve', scopeShard, given)
    if (deadline === '') return refuse()
    const admitted = await admit(input, admission, { deadline, refused: '' }).catch(async (error: unknown) => {
      // Release the reservation only if the admission certainly did not run. Otherwise it expires at its deadline.
      if (wasNotRun(error)) await release()
      throw error
    })
    if (admitted.isAdmitted) return admitted
    const { status } = admitted
    // A command that was admitted before holds this place.
    const isPlaceUsed = status?.terminal === null && status.admission.scope_id === (input.scope_id ?? input.user_id)
    if (!isPlaceUsed) await release()
    return admitted
  }

  return async (given) => {
    const input = parseInput(DispatchInput, given)
    requireIdentity(input)
    const { text: payload } = toJson(input.payload, RECORD_BYTES)
    const { user_id, command_id, scope_id = user_id } = input
    const { wasAsked, current } = input.require_waiter && connections ? await fenceOf(connections, input) : NO_FENCE
    if (options.isClosed()) throw new Refusal('closed')

    const shards = await store.claimShards()
    const [shard, scopeShard] = [shardOf(user_id, shards), shardOf(scope_id, shards)]
    const capacity = Math.min(capacityOf(scope_id), Number.MAX_SAFE_INTEGER)
    const deadlineMs = input.deadline_ms ?? options.deadlineMs
    const mailbox = mailboxOf(input)
    const id = encodePart(command_id)
    const admission: Admission = {
      mailbox,
      ref: `${mailbox}:${id}`,
      id,
      scope: encodePart(scope_id),
      shard,
      scopeShard,
      capacity,
      writesCapacity: written.has(scope_id, capacity) ? '' : '1',
      deadlineMs,
      required: input.require_waiter ? (wasAsked ? 'current' : 'any') : '',
      current,
      payload,
      maxAttempts: input.max_attempts ?? options.maxAttempts,
    }
    const admitted = await (scopeShard === shard ? admit(input, admission) : admitElsewhere(input, admission))
    if (admitted.isAdmitted) {
      written.add(scope_id, capacity)
      options.nudge(deadlineMs)
      const { now, deadlineAt, node, instance } = admitted
      return admittedStatus(input, scope_id, now, deadlineAt, [decodePart(node), instance])
    }
    if (admitted.isConflict) throw new Refusal('command_conflict')
    const { status } = admitted
    if (!status)
      throw toUnavailable(store, new BadRow(`Expected the store to return the record of ${shown(commandKey(input))}`))
    return status
  }
}
