/** The application side of actions: declared handlers, and the checks before one of them runs. */

import type * as z from 'zod'
import { raceAbort } from '../../internal/async/abort.js'
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import { sleep } from '../../internal/async/timer.js'
import { createTracing, withTrace } from '../../internal/contract/channels.js'
import { shown } from '../../internal/contract/checks.js'
import { type Instance, readInstance } from '../../internal/contract/connections.js'
import type { AcknowledgeInput, Deliver } from '../../internal/contract/delivery-dispatch.js'
import { type InvocationError, SESSION_PARAMETER, SITE_PARAMETER } from '../../internal/contract/invocations.js'
import { deepFreeze } from '../../internal/contract/json.js'
import {
  custom,
  defineOptions,
  func,
  hook,
  type Input,
  readOptions,
  readParts,
} from '../../internal/contract/options.js'
import type { Awaitable } from '../../internal/contract/page.js'
import { ActionName, isGenericActionName } from '../../internal/contract/sites.js'
import { Refusal } from '../../internal/refusal.js'
import { ActionFailure, isDefinite, toInvocationError } from './failure.js'
import { ownParameters, withReserved } from './parameters.js'

// Correlation ids that are remembered, so that a command delivered twice runs once. Older ones have long timed out.
const SEEN_MAX = 10_000

/** A call as it arrives by RPC. */
export interface ActionCall {
  /** Name of the action. */
  action: string
  /** An object, with the runtime's two reserved ones: the payload of a command as it came. Its schema reads it. */
  parameters?: unknown
  /** The same id again is the same call, and is dropped. */
  correlation_id?: string | undefined
  /** W3C `traceparent` of the call, for subscribers of `relayscope:execute`. @default none */
  trace?: string | undefined
}

/** The context of a handler call. Session and site are set by the runtime; `null` outside a session. */
export interface ActionContext {
  /** Name of the action. */
  action: string
  /** Id of the call; `null` if the caller sent none. */
  correlation_id: string | null
  /** Id of the session; `null` if the call is of no session. */
  session_id: string | null
  /** Id of the site; `null` if the call is of no site. */
  site_id: string | null
  /** Aborted when the result is no longer needed. */
  signal: AbortSignal
}

/** What becomes of a call. */
export type ActionOutcome = { ok: true; result: unknown } | { ok: false; error: InvocationError }

/** Options of one action. */
export interface HandleOptions<Schema extends z.ZodType> {
  /**
   * Validates the parameters, frozen and without the reserved ones. The schema's output must be a plain object; the
   * handler gets it together with the reserved parameters. Anything else is a `handler_error`.
   */
  parameters: Schema
  /** Local authorization: anything but `true` denies the call. An error is reported, and the action does not run. */
  authorize?: ((parameters: z.output<Schema>, context: ActionContext) => Awaitable<boolean>) | undefined
  /** Called once per call, after `authorize` and with the same rules, for exactly these frozen parameters. */
  approve?: ((parameters: z.output<Schema>, context: ActionContext) => Awaitable<boolean>) | undefined
  /**
   * `true`: one call at a time. A name: one call at a time among all actions with that name. A second call is refused,
   * not queued.
   */
  lease?: boolean | string | undefined
}

const HANDLE_OPTIONS = defineOptions({
  parameters: custom('a zod schema', (value) => typeof Object(value).safeParseAsync === 'function'),
  authorize: func().optional(),
  approve: func().optional(),
  lease: custom('true, false or a string', (value) => ['boolean', 'string'].includes(typeof value)).optional(),
} satisfies Record<keyof HandleOptions<z.ZodType>, z.ZodType>)

/** The result of one call and, for invalid parameters, the reasons; viewers only get the paths. */
export interface ActionResult extends ActionContext {
  /** Outcome of the call. */
  outcome: ActionOutcome
  /** Why the parameters are invalid, if they are. */
  issues?: readonly z.core.$ZodIssue[]
}

/** Called once per call, including refused ones but not repeated ones. Errors of the sink change no outcome. */
export type ResultSink = (record: ActionResult) => void

/** Runs an action; its result becomes the reply. */
export type ActionHandler<Schema extends z.ZodType> = (
  parameters: z.output<Schema> & Record<string, unknown>,
  context: ActionContext,
) => unknown

/** Options of `createActionHandlers`. */
export const ActionHandlersOptions = defineOptions({
  /** Called once per call with its outcome. */
  resultSink: func<ResultSink>().optional(),
  /**
   * Called with errors of a handler, `authorize`, `approve` or a schema, except `ActionFailure`; viewers only learn that there was
   * an error. Also called if `deliver` could not send an acknowledgement or a reply. `null` disables it.
   * @default console.error, with the action and the stack
   */
  onError: hook<(error: unknown, context: ActionContext) => void>(),
})
export interface ActionHandlersOptions extends Input<typeof ActionHandlersOptions> {}

/** The reply of a client to a command that was delivered to it. */
export interface ActionReply {
  /** Id of the user of the replying client. */
  user_id: string
  /** Id of the replying client. */
  client_id: string
  /** Id of the replying instance. */
  instance_id: string
  /** The `command_id` of the command. */
  correlation_id: string
  /** The result of `execute`. `undefined`, the result of a repeated call, is not a reply. */
  outcome: ActionOutcome | undefined
}

/** Where `deliver` sends acknowledgements and replies: the connector, or your own connection to the relay. */
export interface ReplyTarget {
  /** Called before the handler runs. If it rejects, the handler runs all the same: the reply is an acknowledgement too. */
  acknowledge(input: AcknowledgeInput): Awaitable<unknown>
  /** Called with the outcome; called again if it rejects and the error is not final, until the command's deadline. */
  reply(reply: ActionReply): Awaitable<unknown>
}

/** The actions of an application. */
export interface ActionHandlers {
  /**
   * Declares an action.
   *
   * @throws Refusal `generic_action_name`, `invalid_input` for a name that is not an action name or is taken.
   */
  handle<Schema extends z.ZodType>(name: string, options: HandleOptions<Schema>, handler: ActionHandler<Schema>): void
  /**
   * Runs one call: new, known, valid, authorized, approved, leased, checked in that order. Never rejects. Resolves to
   * `undefined` for a repeated correlation id: the first call has its own reply, and this one gets none.
   */
  execute(call: ActionCall, options?: { signal?: AbortSignal | undefined }): Promise<ActionOutcome | undefined>
  /**
   * Returns the function that `dispatcher.attach` takes. For each command it acknowledges, runs the handler with the
   * signal of the delivery, and replies; the signal aborts when the viewer disconnects. It returns immediately, so a
   * slow handler does not delay other commands of the client.
   *
   * @param client The attached instance.
   * @param target `createDispatchConnector`, or your own connection to the relay.
   * @example
   * await dispatcher.attach(client, actions.deliver(client, connector))
   */
  deliver(client: Instance, target: ReplyTarget): Deliver
  /** The declared action names: announce them when the client connects. */
  readonly names: string[]
}

interface Declared {
  options: HandleOptions<z.ZodType>
  handler: ActionHandler<z.ZodType>
}

const REPLY_TARGET = defineOptions({ acknowledge: func(), reply: func() })

// Pauses before a reply is sent again, in milliseconds: doubled up to the longest.
const REPLY_AGAIN_MS = 500
const REPLY_AGAIN_MAX_MS = 5_000

/** Sends until it is answered, refused for good, or `deadline` of this process's monotonic clock has passed. */
async function sendUntilAnswered(send: () => Awaitable<unknown>, deadline: number): Promise<void> {
  for (let pause = REPLY_AGAIN_MS; ; pause = Math.min(2 * pause, REPLY_AGAIN_MAX_MS)) {
    try {
      return void (await send())
    } catch (error) {
      if (isDefinite(error) || !(performance.now() + pause <= deadline)) throw error
      await sleep(pause)
    }
  }
}

const NEVER = new AbortController().signal

const EXECUTE = createTracing('relayscope:execute')

const PARAMETERS = 'the parameters'

/** Parameters refused by their schema. Viewers only get the paths. */
class UnreadParameters extends ActionFailure {
  readonly issues: readonly z.core.$ZodIssue[]

  constructor(issues: readonly z.core.$ZodIssue[]) {
    const paths = issues.map(({ path }) => path.map(String).join('.') || PARAMETERS)
    super('invalid_parameters', `invalid: ${[...new Set(paths)].join(', ')}`)
    this.issues = issues
  }
}

const text = (value: unknown) => (typeof value === 'string' ? value : null)

const contextOf = ({ action, parameters, correlation_id }: ActionCall, signal: AbortSignal): ActionContext =>
  Object.freeze({
    action,
    correlation_id: correlation_id ?? null,
    session_id: text(named(parameters)[SESSION_PARAMETER]),
    site_id: text(named(parameters)[SITE_PARAMETER]),
    signal,
  })

const cancelled = () => new ActionFailure('cancelled')

const named = (parameters: unknown) => (parameters ?? {}) as Record<string, unknown>

/**
 * The handlers of one application.
 *
 * @example
 * const handlers = createActionHandlers()
 * handlers.handle('archive_note', { parameters: z.object({ id: z.int() }) }, ({ id }) => notes.archive(id))
 * const outcome = await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })
 */
export function createActionHandlers(options: ActionHandlersOptions = {}): ActionHandlers {
  const read = readOptions(ActionHandlersOptions, options)
  const declared = new Map<string, Declared>()
  const leases = new Set<string>()
  const seen = new Set<string>()
  const toSink = guardHook(read.resultSink)
  const onError = guardErrorHook(read.onError)

  /** Whether the id is new. It is remembered from now on. */
  function isNew(id: unknown): boolean {
    if (typeof id !== 'string') return true
    if (seen.has(id)) return false
    seen.add(id)
    const [oldest] = seen
    if (seen.size > SEEN_MAX && oldest !== undefined) seen.delete(oldest)
    return true
  }

  async function run(call: ActionCall, context: ActionContext): Promise<unknown> {
    const known = declared.get(call.action)
    if (known === undefined) throw new ActionFailure('unknown_action')
    const { options, handler } = known
    const { [SESSION_PARAMETER]: sessionId, [SITE_PARAMETER]: siteId, ...own } = named(call.parameters)
    // Only the input is frozen: the schema's output may contain objects of the application.
    const read = await options.parameters.safeParseAsync(deepFreeze(own))
    if (!read.success) throw new UnreadParameters(read.error.issues)
    const parameters = ownParameters(read.data)
    const allowed = async (check: typeof options.authorize) =>
      check === undefined || (await check(parameters, context)) === true
    if (!(await allowed(options.authorize))) throw new ActionFailure('not_authorized')
    if (!(await allowed(options.approve))) throw new ActionFailure('approval_denied')
    if (context.signal.aborted) throw cancelled()
    const lease = options.lease === true ? call.action : options.lease || undefined
    if (lease !== undefined && leases.has(lease)) throw new ActionFailure('busy')
    if (lease !== undefined) leases.add(lease)
    try {
      return await handler(withReserved(parameters, sessionId, siteId), context)
    } finally {
      if (lease !== undefined) leases.delete(lease)
    }
  }

  async function executeCall(given: ActionCall, { signal = NEVER }: { signal?: AbortSignal | undefined } = {}) {
    // Commands come from the network: a value that is not a call is handled like an unknown action.
    const call: ActionCall = given ?? { action: '' }
    if (!isNew(call.correlation_id)) return undefined
    const context = contextOf(call, signal)
    const running = run(call, context).catch((error: unknown) => {
      // A handler that throws the reason of its aborted signal has stopped as it should.
      const hasStopped = signal.aborted && error === signal.reason
      if (!hasStopped && !(error instanceof ActionFailure)) onError(error, context)
      throw error
    })
    try {
      const outcome = { ok: true as const, result: (await raceAbort(running, signal, cancelled)) ?? null }
      toSink({ ...context, outcome })
      return outcome
    } catch (error) {
      const outcome = { ok: false as const, error: toInvocationError(error) }
      toSink({ ...context, outcome, ...(error instanceof UnreadParameters ? { issues: error.issues } : {}) })
      return outcome
    }
  }

  const execute: ActionHandlers['execute'] = (call, options) => {
    if (!EXECUTE.hasSubscribers) return executeCall(call, options)
    const { action, correlation_id = null, trace } = Object(call)
    const message = { action, correlation_id, ...withTrace(trace), ok: null }
    return EXECUTE.run(
      message,
      () => executeCall(call, options),
      (outcome) => ({ ok: outcome?.ok ?? null }),
    )
  }

  return {
    get names() {
      return [...declared.keys()]
    },
    handle(name, options, handler) {
      if (isGenericActionName(name)) throw new Refusal('generic_action_name')
      if (!ActionName.safeParse(name).success)
        throw new Refusal('invalid_input', `${shown(name)} cannot be the name of an action`)
      if (declared.has(name)) throw new Refusal('invalid_input', `the action ${name} is declared already`)
      readOptions(HANDLE_OPTIONS, options)
      if (typeof handler !== 'function')
        throw new TypeError(`Invalid handler: expected a function, got ${shown(handler)}`)
      declared.set(name, { options, handler } as unknown as Declared)
    },
    execute,
    deliver(instance, target) {
      const client = readInstance(instance)
      readParts(REPLY_TARGET, target)
      return ({ command_id, action, payload, remaining_ms, trace }, { signal }) => {
        const deadline = performance.now() + remaining_ms
        const call = { action, parameters: payload, correlation_id: command_id, trace }
        const failed = (error: unknown) => onError(error, contextOf(call, signal))
        const handle = async () => {
          await (async () => target.acknowledge({ ...client, command_id }))().catch(failed)
          const outcome = await execute(call, { signal })
          // A repeated call has no reply, and neither has an aborted one: its handler may have had its effect.
          if (outcome === undefined || (signal.aborted && !outcome.ok && outcome.error.code === 'cancelled')) return
          const send = () => target.reply({ ...client, correlation_id: command_id, outcome })
          await sendUntilAnswered(send, deadline)
        }
        handle().catch(failed)
      }
    },
  }
}
