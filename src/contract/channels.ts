/** What facilities publish on `node:diagnostics_channel`: the calls of this process, without payloads. */
import type { DeliveryStatus } from './delivery.js'
import type { CommandDispatcher, Deliver } from './delivery-dispatch.js'
import type { OpenCall, OpenCallInput, RpcCorrelator } from './rpc.js'

// Named channels of `node:diagnostics_channel`, on runtimes that have it.

/** A named channel. `publish` does not throw: the runtime reports an error of a subscriber as uncaught. */
export interface Channel<Message extends object> {
  /** Whether a subscriber receives what is published. Check it before a message is made. */
  readonly hasSubscribers: boolean
  publish(message: Message): void
}

type OfRuntime = { channel(name: string): Channel<object> }

/** Not an import: modules that run outside Node must load nothing of it. */
function loadChannels(): OfRuntime | undefined {
  try {
    return globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')
  } catch {
    return undefined
  }
}

const channels = loadChannels()

const NONE: Channel<object> = { hasSubscribers: false, publish() {} }

/** Returns the channel with that name; without `node:diagnostics_channel` it never has subscribers. */
export const createChannel = <Message extends object>(name: string): Channel<Message> => channels?.channel(name) ?? NONE

/** Fields of every message. */
interface Published {
  /** How long the call took, in ms. */
  duration_ms: number
  /** What the call threw; absent if it succeeded. The ids are then as the caller gave them, and may be invalid. */
  error?: unknown
}

/** Fields of messages about one command. */
export interface CommandMessage extends Published {
  /** Id of the user. */
  user_id: string
  /** Id of the client. */
  client_id: string
  /** Id of the command. */
  command_id: string
}

/** Fields of messages about one call. */
export interface CallMessage extends Published {
  /** Id of the call; `null` if `open` threw and the caller gave none. */
  correlation_id: string | null
  /** Id of the user. */
  user_id: string
  /** Id of the called client. */
  client_id: string
  /** Id of the called instance; `null` for any. */
  instance_id: string | null
  /** Name of the action. */
  action: string
  /** The W3C `traceparent` of the call; absent without one. */
  trace?: string | undefined
}

/** The messages of the channels by their names. Requests are on `relayscope:request`, as an `AccessRecord`. */
export interface ChannelMessages {
  /** After `dispatcher.dispatch`. */
  'relayscope:command:dispatch': CommandMessage & {
    /** Name of the action. */
    action: string
    /** The W3C `traceparent` that the caller gave; absent without one. */
    trace?: string | undefined
    /** Whether the command was admitted; `null` if `dispatch` threw. */
    state: DeliveryStatus['admission']['state'] | null
    /** How the command has ended already, for a repeated `dispatch`; `null` if it has not. */
    ended: NonNullable<DeliveryStatus['terminal']>['state'] | null
  }
  /** After `deliver` of an attached connection, once per attempt. */
  'relayscope:command:deliver': CommandMessage & {
    /** Id of the attached instance. */
    instance_id: string
    /** Name of the action. */
    action: string
    /** Number of the attempt, from 1. */
    attempt: number
  }
  /** After `dispatcher.acknowledge`. */
  'relayscope:command:acknowledge': CommandMessage & {
    /** Id of the instance that acknowledges. */
    instance_id: string
    /** Whether it accepts or refuses the command. */
    state: 'acknowledged' | 'refused'
    /** Whether it counted; `null` if `acknowledge` threw. */
    counted: boolean | null
  }
  /** After `dispatcher.settle`. */
  'relayscope:command:settle': CommandMessage & {
    /** Whether the command succeeded or failed. */
    state: 'resulted' | 'failed'
    /** Whether it counted; `null` if `settle` threw. */
    counted: boolean | null
  }
  /** After `dispatcher.cancel`. */
  'relayscope:command:cancel': CommandMessage & {
    /** Whether it ended the command; `null` if `cancel` threw. */
    counted: boolean | null
  }
  /** After `rpc.open`. */
  'relayscope:call:open': CallMessage
  /** When the result of a call is there, in the process that opened it. `error` is the rejection of `result`. */
  'relayscope:call:end': CallMessage
}

const channelOf = <Name extends keyof ChannelMessages>(name: Name) => createChannel<ChannelMessages[Name]>(name)

const DISPATCH = channelOf('relayscope:command:dispatch')
const DELIVER = channelOf('relayscope:command:deliver')
const ACKNOWLEDGE = channelOf('relayscope:command:acknowledge')
const SETTLE = channelOf('relayscope:command:settle')
const CANCEL = channelOf('relayscope:command:cancel')
const OPEN = channelOf('relayscope:call:open')
const END = channelOf('relayscope:call:end')

/** Runs `work`, and passes its result or error to `publish`. */
async function published<Result>(
  work: () => Result,
  publish: (how: Published, result: Awaited<Result> | null) => void,
): Promise<Awaited<Result>> {
  const startedAt = performance.now()
  const how = () => ({ duration_ms: performance.now() - startedAt })
  try {
    const result = await work()
    publish(how(), result)
    return result
  } catch (error) {
    publish({ ...how(), error }, null)
    throw error
  }
}

/** The ids of a command in an input that may be invalid. */
function keyOf(input: unknown): Pick<CommandMessage, 'user_id' | 'client_id' | 'command_id'> {
  const { user_id, client_id, command_id } = Object(input)
  return { user_id, client_id, command_id }
}

/** Returns the dispatcher with its calls published. Without subscribers a call costs one comparison more. */
export function publishCommands<T extends CommandDispatcher>(dispatcher: T): T {
  return {
    ...dispatcher,
    dispatch(input) {
      if (!DISPATCH.hasSubscribers) return dispatcher.dispatch(input)
      return published(
        () => dispatcher.dispatch(input),
        (how, status) => {
          const state = status?.admission.state ?? null
          const { action, trace } = Object(input)
          const traced = trace === undefined ? {} : { trace }
          const ended = status?.terminal?.state ?? null
          DISPATCH.publish({ ...keyOf(input), action, ...traced, state, ended, ...how })
        },
      )
    },
    attach(instance, deliver) {
      if (typeof deliver !== 'function') return dispatcher.attach(instance, deliver)
      const publishing: Deliver = (command, options) => {
        if (!DELIVER.hasSubscribers) return deliver(command, options)
        const { action, attempt } = command
        const { instance_id } = instance
        return published(
          () => deliver(command, options),
          (how) => DELIVER.publish({ ...keyOf(command), instance_id, action, attempt, ...how }),
        )
      }
      return dispatcher.attach(instance, publishing)
    },
    acknowledge(input) {
      if (!ACKNOWLEDGE.hasSubscribers) return dispatcher.acknowledge(input)
      const { instance_id, state = 'acknowledged' } = Object(input)
      return published(
        () => dispatcher.acknowledge(input),
        (how, counted) => ACKNOWLEDGE.publish({ ...keyOf(input), instance_id, state, counted, ...how }),
      )
    },
    settle(input) {
      if (!SETTLE.hasSubscribers) return dispatcher.settle(input)
      const { state } = Object(input)
      return published(
        () => dispatcher.settle(input),
        (how, counted) => SETTLE.publish({ ...keyOf(input), state, counted, ...how }),
      )
    },
    cancel(input) {
      if (!CANCEL.hasSubscribers) return dispatcher.cancel(input)
      return published(
        () => dispatcher.cancel(input),
        (how, counted) => CANCEL.publish({ ...keyOf(input), counted, ...how }),
      )
    },
  }
}

/** Returns the correlator with its calls published. Without subscribers a call costs one comparison more. */
export function publishCalls<T extends RpcCorrelator>(correlator: T): T {
  async function open(input: OpenCallInput): Promise<OpenCall> {
    const { correlation_id = null, user_id, client_id, instance_id = null, action, trace } = Object(input)
    const call = { correlation_id, user_id, client_id, instance_id, action, ...(trace === undefined ? {} : { trace }) }
    const opened = await published(
      () => correlator.open(input),
      (how, result) => OPEN.publish({ ...call, ...(result && { correlation_id: result.correlation_id }), ...how }),
    )
    const { correlation_id: id, result } = opened
    published(
      () => result,
      (how) => END.publish({ ...call, correlation_id: id, ...how }),
    ).catch(() => {})
    return opened
  }
  return {
    ...correlator,
    open: (input) => (OPEN.hasSubscribers || END.hasSubscribers ? open(input) : correlator.open(input)),
  }
}
