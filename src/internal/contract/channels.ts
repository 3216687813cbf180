/** What facilities publish on `node:diagnostics_channel`: the calls of this process, without payloads. */
import type { DeliveryStatus } from './delivery.js'
import type { CommandDispatcher, Deliver } from './delivery-dispatch.js'
import type { Awaitable } from './page.js'
import type { OpenCall, OpenCallInput, RpcCorrelator } from './rpc.js'

// Channels of `node:diagnostics_channel`, on runtimes that have it.

/** A named channel. `publish` does not throw: the runtime reports an error of a subscriber as uncaught. */
export interface Channel<Message extends object> {
  /** Whether a subscriber receives what is published. Check it before a message is made. */
  readonly hasSubscribers: boolean
  publish(message: Message): void
}

type Part = 'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error'
interface TracingChannel extends Readonly<Record<Part, Channel<object>>> {
  tracePromise(work: () => Promise<void>, message: object): Promise<void>
}
interface OfRuntime {
  channel(name: string): Channel<object>
  tracingChannel?(name: string): TracingChannel
}

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
const NOT_TRACED = { start: NONE, end: NONE, asyncStart: NONE, asyncEnd: NONE, error: NONE }

/** Returns the channel with that name; without `node:diagnostics_channel` it never has subscribers. */
export const createChannel = <Message extends object>(name: string): Channel<Message> => channels?.channel(name) ?? NONE

/** Fields of every message. */
export interface ChannelMessage {
  /** What the call threw; absent if it succeeded. The ids are then as the caller gave them, and may be invalid. */
  error?: unknown
}

/** Fields of messages about one command. */
export interface CommandMessage extends ChannelMessage {
  /** Id of the user. */
  user_id: string
  /** Id of the client. */
  client_id: string
  /** Id of the command. */
  command_id: string
}

/** The messages of the tracing channels by their names. Requests are on the plain channel `relayscope:request`, as an `AccessRecord`. */
export interface ChannelMessages {
  /** `dispatcher.dispatch`. */
  'relayscope:dispatch': CommandMessage & {
    /** Name of the action. */
    action: string
    /** The W3C `traceparent` that the caller gave; absent without one. */
    trace?: string | undefined
    /** Whether the command was admitted; `null` before the end, and if `dispatch` threw. */
    state: DeliveryStatus['admission']['state'] | null
    /** How the command has ended already, for a repeated `dispatch`; `null` if it has not. */
    ended: NonNullable<DeliveryStatus['terminal']>['state'] | null
  }
  /** `deliver` of an attached connection, once per attempt. */
  'relayscope:deliver': CommandMessage & {
    /** Id of the attached instance. */
    instance_id: string
    /** Name of the action. */
    action: string
    /** Number of the attempt, from 1. */
    attempt: number
    /** The `traceparent` that `dispatch` was given; absent without one. */
    trace?: string | undefined
  }
  /** `dispatcher.acknowledge`. */
  'relayscope:acknowledge': CommandMessage & {
    /** Id of the instance that acknowledges. */
    instance_id: string
    /** Whether it accepts or refuses the command. */
    state: 'acknowledged' | 'refused'
    /** Whether it counted; `null` before the end, and if `acknowledge` threw. */
    counted: boolean | null
  }
  /** `dispatcher.settle`. */
  'relayscope:settle': CommandMessage & {
    /** Whether the command succeeded or failed. */
    state: 'resulted' | 'failed'
    /** Whether it counted; `null` before the end, and if `settle` threw. */
    counted: boolean | null
  }
  /** `dispatcher.cancel`. */
  'relayscope:cancel': CommandMessage & {
    /** Whether it ended the command; `null` before the end, and if `cancel` threw. */
    counted: boolean | null
  }
  /** A call, from `rpc.open` until its `result`, in the process that opened it. `error` is the rejection of either. */
  'relayscope:call': ChannelMessage & {
    /** Id of the call; `null` before it is open, if the caller gave none. */
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
  /** `gate.invoke`. */
  'relayscope:action': ChannelMessage & {
    /** Id of the session. */
    session_id: string
    /** Id of the viewer. */
    user_id: string
    /** Name of the action. */
    action: string
    /** The W3C `traceparent` of the caller; absent without one. */
    trace?: string | undefined
    /** Id of the invocation; `null` before the end, and if `invoke` threw. */
    invocation_id: string | null
    /** Whether the action succeeded; `null` before the end, and if `invoke` threw. */
    status: 'succeeded' | 'failed' | null
  }
  /** `execute` of action handlers, in the process of the application. */
  'relayscope:execute': ChannelMessage & {
    /** Name of the action. */
    action: string
    /** Id of the call or command; `null` without one. */
    correlation_id: string | null
    /** The W3C `traceparent` of the command; absent without one. */
    trace?: string | undefined
    /** Whether the handler returned; `null` before the end, and for a call that was repeated and did not run. */
    ok: boolean | null
  }
  /** `ingestCooperativeSiteMessage`. */
  'relayscope:ingest': ChannelMessage & {
    /** Id of the publishing user. */
    user_id: string
    /** The stream, as the message names it. */
    stream: string
    /** Id of the message. */
    message_id: string
    /** The W3C `traceparent` of the message; absent without one. */
    trace?: string | undefined
    /** Whether its event was published; `null` before the end, if that is unknown, and if the message was refused. */
    published: boolean | null
  }
}

/** The field of a message about something that may have a trace. */
export const withTrace = (trace: string | undefined) => (trace === undefined ? {} : { trace })

/**
 * Returns the tracing channel with that name. Its `run` publishes `start` and `end` around the synchronous part of `work`, which
 * therefore runs in the async context of its subscribers, and `asyncStart` and `asyncEnd` when it has settled, with the fields
 * that `conclude` makes of its result.
 */
export function createTracing<Name extends keyof ChannelMessages>(name: Name) {
  type Message = ChannelMessages[Name]
  const channel = channels?.tracingChannel?.(name)
  const { start, end, asyncStart, asyncEnd, error } = channel ?? NOT_TRACED
  return {
    get hasSubscribers(): boolean {
      return (
        start.hasSubscribers ||
        asyncEnd.hasSubscribers ||
        error.hasSubscribers ||
        end.hasSubscribers ||
        asyncStart.hasSubscribers
      )
    },
    async run<Result>(
      message: Message,
      work: () => Awaitable<Result>,
      conclude: (result: Result) => Partial<Message>,
    ): Promise<Result> {
      let result: Result | undefined
      // Not the result itself, which may be a payload.
      const traced = async () => {
        result = await work()
        Object.assign(message, conclude(result))
      }
      await (channel ? channel.tracePromise(traced, message) : traced())
      return result as Result
    },
  }
}

const DISPATCH = createTracing('relayscope:dispatch')
const DELIVER = createTracing('relayscope:deliver')
const ACKNOWLEDGE = createTracing('relayscope:acknowledge')
const SETTLE = createTracing('relayscope:settle')
const CANCEL = createTracing('relayscope:cancel')
const CALL = createTracing('relayscope:call')

/** The ids of a command in an input that may be invalid. */
function keyOf(input: unknown): Pick<CommandMessage, 'user_id' | 'client_id' | 'command_id'> {
  const { user_id, client_id, command_id } = Object(input)
  return { user_id, client_id, command_id }
}

const countedAs = (counted: boolean) => ({ counted })

/** Returns the dispatcher with its calls published. Without subscribers a call costs some comparisons more. */
export function publishCommands<T extends CommandDispatcher>(dispatcher: T): T {
  return {
    ...dispatcher,
    dispatch(input) {
      if (!DISPATCH.hasSubscribers) return dispatcher.dispatch(input)
      const { action, trace } = Object(input)
      return DISPATCH.run(
        { ...keyOf(input), action, ...withTrace(trace), state: null, ended: null },
        () => dispatcher.dispatch(input),
        ({ admission, terminal }) => ({ state: admission.state, ended: terminal?.state ?? null }),
      )
    },
    attach(instance, deliver) {
      if (typeof deliver !== 'function') return dispatcher.attach(instance, deliver)
      const publishing: Deliver = (command, options) => {
        if (!DELIVER.hasSubscribers) return deliver(command, options)
        const { action, attempt, trace } = command
        const { instance_id } = instance
        return DELIVER.run(
          { ...keyOf(command), instance_id, action, attempt, ...withTrace(trace) },
          () => deliver(command, options),
          () => ({}),
        )
      }
      return dispatcher.attach(instance, publishing)
    },
    acknowledge(input) {
      if (!ACKNOWLEDGE.hasSubscribers) return dispatcher.acknowledge(input)
      const { instance_id, state = 'acknowledged' } = Object(input)
      const message = { ...keyOf(input), instance_id, state, counted: null }
      return ACKNOWLEDGE.run(message, () => dispatcher.acknowledge(input), countedAs)
    },
    settle(input) {
      if (!SETTLE.hasSubscribers) return dispatcher.settle(input)
      const message = { ...keyOf(input), state: Object(input).state, counted: null }
      return SETTLE.run(message, () => dispatcher.settle(input), countedAs)
    },
    cancel(input) {
      if (!CANCEL.hasSubscribers) return dispatcher.cancel(input)
      return CANCEL.run({ ...keyOf(input), counted: null }, () => dispatcher.cancel(input), countedAs)
    },
  }
}

/** Returns the correlator with its calls published. Without subscribers a call costs some comparisons more. */
export function publishCalls<T extends RpcCorrelator>(correlator: T): T {
  function open(input: OpenCallInput): Promise<OpenCall> {
    const { correlation_id = null, user_id, client_id, instance_id = null, action, trace } = Object(input)
    const message = { correlation_id, user_id, client_id, instance_id, action, ...withTrace(trace) }
    return new Promise((resolve, reject) => {
      const work = async () => {
        const opened = await correlator.open(input)
        message.correlation_id = opened.correlation_id
        resolve(opened)
        await opened.result
      }
      CALL.run(message, work, () => ({})).catch(reject)
    })
  }
  return { ...correlator, open: (input) => (CALL.hasSubscribers ? open(input) : correlator.open(input)) }
}
