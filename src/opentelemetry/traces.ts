/** Spans of what facilities do in this process, made from the tracing channels. */
import type { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import {
  type Attributes,
  type Context,
  context as contexts,
  isSpanContextValid,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace as traces,
} from '@opentelemetry/api'
import type { ChannelMessages, CommandMessage } from '../internal/contract/channels.js'
import { ANYTHING, checkOptions, type Shape } from '../internal/contract/checks.js'
import { VERSION } from '../internal/version.js'

type Name = keyof ChannelMessages
type Message = ChannelMessages[Name] & { trace?: string | undefined }

/** Options of `instrumentation`. */
export interface InstrumentationOptions {
  /** Makes the tracer. @default the global provider of `@opentelemetry/api` */
  tracerProvider?: TracerProvider | undefined
}

/** What an SDK takes in `instrumentations`. */
export interface RelayInstrumentation {
  /** `relayscope`. */
  readonly instrumentationName: string
  /** The version of the package. */
  readonly instrumentationVersion: string
  /** Makes spans again after `disable`. It is enabled when it is made. */
  enable(): void
  /** Ends making spans, and those that are open. */
  disable(): void
  /** Makes the following spans with this provider. */
  setTracerProvider(provider: TracerProvider): void
  /** It makes no metrics: see `createMetricProducer`. */
  setMeterProvider(provider: unknown): void
  /** It has no configuration of its own. */
  setConfig(config: object): void
  /** `{}`. */
  getConfig(): object
}

const OPTIONS: Shape<InstrumentationOptions> = { tracerProvider: ANYTHING }

/** Commands whose trace is remembered for their acknowledgement and their end. */
const REMEMBERED_MAX = 10_000

/** How a span is drawn from a message. */
interface Drawing<Of extends Name> {
  kind: SpanKind
  /** First word of its name; the action follows. */
  verb: string
  /** Where it belongs: to the caller's span, to the trace of its message, or to whichever of both has the same trace. */
  within: 'caller' | 'trace' | 'either'
  /** Attributes at its start. */
  of(message: ChannelMessages[Of]): Attributes
  /** Attributes of the result. */
  ended?(message: ChannelMessages[Of]): Attributes
}

const MESSAGING = { 'messaging.system': 'relayscope' }

const ofCommand = (operation: string, type: string) => (message: CommandMessage) => ({
  ...MESSAGING,
  'messaging.operation.name': operation,
  'messaging.operation.type': type,
  'messaging.message.id': message.command_id,
  'relayscope.client.id': message.client_id,
  'user.id': message.user_id,
})
const counted = ({ counted }: { counted: boolean | null }) => ({ 'relayscope.counted': counted ?? undefined })

/** The drawing of each channel's spans. */
const DRAWINGS: { [Of in Name]: Drawing<Of> } = {
  'relayscope:dispatch': {
    kind: SpanKind.PRODUCER,
    verb: 'dispatch',
    within: 'caller',
    of: (message) => ({
      ...ofCommand('dispatch', 'send')(message),
      'relayscope.action': message.action,
    }),
    ended: ({ state, ended }) => ({ 'relayscope.state': state ?? undefined, 'relayscope.ended': ended ?? undefined }),
  },
  'relayscope:deliver': {
    kind: SpanKind.CONSUMER,
    verb: 'deliver',
    // Its caller is a loop, which may have begun in the span of any request.
    within: 'trace',
    of: (message) => ({
      ...ofCommand('deliver', 'process')(message),
      'relayscope.action': message.action,
      'relayscope.attempt': message.attempt,
      'relayscope.instance.id': message.instance_id,
    }),
  },
  'relayscope:acknowledge': {
    kind: SpanKind.CLIENT,
    verb: 'acknowledge',
    within: 'caller',
    of: (message) => ({ ...ofCommand('acknowledge', 'settle')(message), 'relayscope.state': message.state }),
    ended: counted,
  },
  'relayscope:settle': {
    kind: SpanKind.CLIENT,
    verb: 'settle',
    within: 'caller',
    of: (message) => ({ ...ofCommand('settle', 'settle')(message), 'relayscope.state': message.state }),
    ended: counted,
  },
  'relayscope:cancel': {
    kind: SpanKind.CLIENT,
    verb: 'cancel',
    within: 'caller',
    of: ofCommand('cancel', 'settle'),
    ended: counted,
  },
  'relayscope:call': {
    kind: SpanKind.CLIENT,
    verb: 'call',
    within: 'caller',
    of: (message) => ({
      'rpc.system.name': 'relayscope',
      'rpc.method': message.action,
      'relayscope.client.id': message.client_id,
      'user.id': message.user_id,
    }),
    ended: ({ correlation_id }) => ({ 'relayscope.correlation.id': correlation_id ?? undefined }),
  },
  'relayscope:action': {
    kind: SpanKind.INTERNAL,
    verb: 'invoke',
    within: 'caller',
    of: (message) => ({
      'relayscope.action': message.action,
      'relayscope.session.id': message.session_id,
      'user.id': message.user_id,
    }),
    ended: ({ status, invocation_id }) => ({
      'relayscope.state': status ?? undefined,
      'relayscope.invocation.id': invocation_id ?? undefined,
    }),
  },
  'relayscope:execute': {
    kind: SpanKind.CONSUMER,
    verb: 'execute',
    within: 'either',
    of: (message) => ({
      ...MESSAGING,
      'messaging.operation.name': 'execute',
      'messaging.operation.type': 'process',
      'messaging.message.id': message.correlation_id ?? undefined,
      'relayscope.action': message.action,
    }),
    ended: ({ ok }) => ({ 'relayscope.ok': ok ?? undefined }),
  },
  'relayscope:ingest': {
    kind: SpanKind.CONSUMER,
    verb: 'ingest',
    within: 'caller',
    of: (message) => ({
      ...MESSAGING,
      'messaging.operation.name': 'ingest',
      'messaging.operation.type': 'receive',
      'messaging.message.id': message.message_id,
      'messaging.destination.name': message.stream,
      'user.id': message.user_id,
    }),
    ended: ({ published }) => ({ 'relayscope.published': published ?? undefined }),
  },
}

/** The span context of a W3C `traceparent`; `undefined` for none, or an invalid one. */
function spanContextOf(traceparent: unknown): SpanContext | undefined {
  const [version, traceId = '', spanId = '', flags = ''] = String(traceparent ?? '').split('-')
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true }
  return version === '00' && isSpanContextValid(found) ? found : undefined
}

/** Why a call failed, without its words: they may contain what a span must not show. */
function errorType(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' ? name : '_OTHER'
}

const keyOf = ({ user_id, client_id, command_id }: Record<'user_id' | 'client_id' | 'command_id', unknown>) =>
  JSON.stringify([user_id, client_id, command_id])

/** The `traceparent` of the latest commands that this process dispatched or delivered. */
function createTraces() {
  const known = new Map<string, string>()
  return {
    /** The trace of a message, or that of its command. */
    of(name: Name, message: Message): string | undefined {
      if (!('command_id' in message)) return message.trace
      const key = keyOf(message)
      if (message.trace === undefined) return known.get(key)
      known.delete(key)
      known.set(key, message.trace)
      const [oldest] = known.keys()
      if (known.size > REMEMBERED_MAX && oldest !== undefined) known.delete(oldest)
      if (name === 'relayscope:settle' || name === 'relayscope:cancel') known.delete(key)
      return message.trace
    },
  }
}

/**
 * Makes spans of what facilities do in this process: short ones for an admission, an attempt, an acknowledgement, an end, a
 * call until its result, an action and an ingested message. What is delivered runs inside its span. A command's `trace`
 * makes its attempts part of that trace, on whichever node; a span that belongs to another one is linked to it. Attributes
 * contain ids and names, never a payload or the words of an error. Throws nothing into what it watches.
 *
 * @throws TypeError for an unknown option.
 * @example
 * new NodeSDK({ instrumentations: [instrumentation()] })
 */
export function instrumentation(options: InstrumentationOptions = {}): RelayInstrumentation {
  checkOptions(options, OPTIONS)
  let provider = options.tracerProvider
  const open = new Map<object, Span>()
  const remembered = createTraces()
  // A channel only calls `run` of a store.
  const store = { run: (context: Context, work: () => unknown) => contexts.with(context, work) }

  function placeOf<Of extends Name>({ within }: Drawing<Of>, trace: SpanContext | undefined) {
    const active = contexts.active()
    const caller = traces.getSpanContext(active)
    const remote = trace && traces.setSpanContext(ROOT_CONTEXT, trace)
    const isSame = trace !== undefined && caller?.traceId === trace.traceId
    if (within === 'trace') return { parent: remote ?? ROOT_CONTEXT, links: [] }
    if (!remote || isSame) return { parent: active, links: [] }
    if (within === 'either' || !caller) return { parent: remote, links: [] }
    return { parent: active, links: [{ context: trace }] satisfies Link[] }
  }

  function begin<Of extends Name>(name: Of, message: ChannelMessages[Of]): Context {
    const drawing: Drawing<Of> = DRAWINGS[name]
    const { kind, verb, of } = drawing
    const { parent, links } = placeOf(drawing, spanContextOf(remembered.of(name, message as Message)))
    const action = 'action' in message ? ` ${message.action}` : ''
    const tracer = (provider ?? traces).getTracer('relayscope', VERSION)
    const span = tracer.startSpan(verb + action, { kind, attributes: of(message), links }, parent)
    open.set(message, span)
    return traces.setSpan(parent, span)
  }

  function end<Of extends Name>(name: Of, message: ChannelMessages[Of]): void {
    const span = open.get(message)
    if (!span) return
    open.delete(message)
    const drawing: Drawing<Of> = DRAWINGS[name]
    if ('error' in message) {
      span.setAttribute('error.type', errorType(message.error))
      span.setStatus({ code: SpanStatusCode.ERROR })
    } else span.setAttributes(drawing.ended?.(message) ?? {})
    span.end()
  }

  function follow<Of extends Name>(name: Of) {
    const channel = tracingChannel<Context, ChannelMessages[Of]>(name)
    const stores = store as unknown as AsyncLocalStorage<Context>
    const onEnd = (message: unknown) => end(name, message as ChannelMessages[Of])
    return {
      start() {
        channel.start.bindStore(stores, (message) => begin(name, message))
        channel.asyncEnd.subscribe(onEnd)
      },
      stop() {
        channel.start.unbindStore(stores)
        channel.asyncEnd.unsubscribe(onEnd)
      },
    }
  }

  const followed = (Object.keys(DRAWINGS) as Name[]).map((name) => follow(name))
  let isEnabled = false
  function enable() {
    if (isEnabled) return
    isEnabled = true
    for (const { start } of followed) start()
  }
  enable()
  return {
    instrumentationName: 'relayscope',
    instrumentationVersion: VERSION,
    enable,
    disable() {
      if (!isEnabled) return
      isEnabled = false
      for (const { stop } of followed) stop()
      for (const span of open.values()) span.end()
      open.clear()
    },
    setTracerProvider(given) {
      provider = given
    },
    setMeterProvider() {},
    setConfig() {},
    getConfig: () => ({}),
  }
}
