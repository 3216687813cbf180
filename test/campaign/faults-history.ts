/** What a fault campaign writes down: every operation with when it was invoked and answered, and what the store held at last. */
import type { DeliveryStatus } from '../../src/internal/contract/delivery.js'

export interface CommandName {
  user_id: string
  client_id: string
  command_id: string
}

/** What a client asks of a node. `n` stands in payloads, so that another's would be seen. */
export type Call =
  | { what: 'connect'; user_id: string; client_id: string; instance_id: string }
  | ({ what: 'dispatch'; scope_id: string; deadline_ms: number; n: number } & CommandName)
  | ({ what: 'acknowledge'; instance_id: string; state: 'acknowledged' | 'refused' } & CommandName)
  | ({ what: 'settle'; instance_id: string | null; state: 'resulted' | 'failed' } & CommandName)
  | ({ what: 'cancel' } & CommandName)
  | {
      what: 'ingest'
      user_id: string
      client_id: string
      instance_id: string
      site_id: string
      /** Canonical, and the topic of the site's events. */
      stream: string
      message_id: string
      n: number
    }
  | { what: 'subscribe'; topic: string }

type State = NonNullable<DeliveryStatus['terminal']>['state']

/** What a node answers, by the call: a connection and a subscription no more than that they stand. */
export interface Answers {
  connect: true
  dispatch: { admission: 'admitted' | 'rejected'; terminal: State | null }
  acknowledge: boolean
  settle: boolean
  cancel: boolean
  ingest: { duplicate: boolean; published: boolean | null; reason: string | null }
  subscribe: true
}
export type Answer = Answers[Call['what']]

/** How a call ended that was not answered with a result. `error`: thrown, and no refusal. */
export type Failure =
  | { type: 'refused'; code: string; outcome: 'not_run' | 'unknown' }
  | { type: 'error'; message: string }
  | { type: 'unanswered' }

/** Instants are ms of the campaign's own steady clock; those within records are the store's. */
export type Entry =
  | { type: 'invoke'; op: number; at: number; process: string; call: Call }
  | { type: 'ok'; op: number; at: number; answer: Answer }
  | ({ op: number; at: number } & Failure)
  | ({
      type: 'handed_over'
      at: number
      process: string
      instance_id: string
      attempt: number
      n: number
    } & CommandName)
  | { type: 'heard'; at: number; process: string; topic: string; epoch: string; seq: number; event_id: string }
  | { type: 'gap'; at: number; process: string; topic: string; last_seq: number | null }
  | { type: 'fault'; at: number; fault: string; node: string }
  /** A process ended without being killed by the campaign. */
  | { type: 'died'; at: number; node: string }
  /** From here on no faults are injected. */
  | { type: 'healed'; at: number }
  | ({ type: 'command'; status: DeliveryStatus | null } & CommandName)
  | {
      type: 'stream'
      stream: string
      user_id: string
      message_count: number
      messages: { message_id: string; sequence: number; n: number }[]
    }
  | { type: 'account'; user_id: string; entries: number; accepted: number; duplicates: number }
  | {
      type: 'delivery'
      now: string
      shards: number
      tracked_commands: number
      tenants: { scope_id: string; reserved_commands: number; oldest_deadline_at: string | null }[]
    }

/** An operation from its invocation to its end. */
export interface Operation<C extends Call = Call> {
  op: number
  process: string
  call: C
  from: number
  /** When it was answered; never, where what it did may still happen. */
  to: number
  end: { type: 'ok'; answer: Answers[C['what']] } | Failure
}

/** Returns whether an operation may have had an effect that its caller doesn't know of. */
const isOpen = ({ end }: Operation): boolean =>
  end.type === 'unanswered' || end.type === 'error' || (end.type === 'refused' && end.outcome === 'unknown')

/** A definite no: it had no effect and never will. */
export const isRefused = ({ end }: Operation): boolean => end.type === 'refused' && end.outcome === 'not_run'

/** The operations of a history, as they were invoked. */
export function operationsOf(history: readonly Entry[]): Operation[] {
  const operations = new Map<number, Operation>()
  for (const entry of history) {
    if (entry.type === 'invoke') {
      const { op, process, call, at: from } = entry
      const to = Number.POSITIVE_INFINITY
      operations.set(op, { op, process, call, from, to, end: { type: 'unanswered' } } as Operation)
    } else if ('op' in entry) {
      const operation = operations.get(entry.op)
      if (!operation) throw new Error(`operation ${entry.op} is answered and was never invoked`)
      const { op: _, at, ...end } = entry
      operation.end = end as Operation['end']
      operation.to = isOpen(operation) ? Number.POSITIVE_INFINITY : at
    }
  }
  return [...operations.values()]
}

/** Those of one call. */
export const callsOf = <W extends Call['what']>(operations: readonly Operation[], what: W) =>
  operations.filter(({ call }) => call.what === what) as unknown as Operation<Extract<Call, { what: W }>>[]

/** `items` by what `nameOf` makes of each. */
export function grouped<T>(items: Iterable<T>, nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const name = nameOf(item)
    const group = groups.get(name)
    if (group) group.push(item)
    else groups.set(name, [item])
  }
  return groups
}
