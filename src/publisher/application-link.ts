/** The connection of an application to its relay: its stream of commands, their replies, and the next connection. */
import { endWithin, runWithin } from '../internal/async/deadline.js'
import { sleep } from '../internal/async/timer.js'
import type {
  ApplicationBody,
  ApplicationReadyFrame,
  CommandFrame,
  CommandReplyBody,
} from '../internal/contract/applications.js'
import { TIMER_MAX_MS } from '../internal/contract/checks.js'
import type { Json } from '../internal/contract/json.js'
import {
  RETRY_DEFAULT_MS,
  readEventStream,
  reconnectDelay,
  type StreamEvent,
} from '../internal/relay-client/event-stream.js'
import {
  type HeaderFields,
  isNumber,
  isRecordOf,
  isText,
  parseObject,
  readObject,
} from '../internal/relay-client/wire.js'
import { ANSWER_BYTES, late, RelayError, toError } from './publisher.js'

type Outcome = NonNullable<CommandReplyBody['outcome']>

/** The actions of an application: `createActionHandlers()` of `relayscope/cooperative-site`, or your own. */
export interface ApplicationActions {
  /** Names of the actions. Read at each connection. */
  readonly names: readonly string[]
  /** Runs one call and never rejects. Returns `undefined` for a repeated `correlation_id`, which gets no reply. */
  execute(
    call: { action: string; parameters?: unknown; correlation_id?: string | undefined; trace?: string | undefined },
    options: { signal: AbortSignal },
  ): Promise<{ ok: true; result: unknown } | { ok: false; error: { code: string; message: string | null } } | undefined>
}

// Calls that wait for a connection at once.
const WAITING_MAX = 1_000
const CLOSE_MS = 5_000
// As many calls as a relay lets one viewer make; further ones fail at once.
const RUNNING_MAX = 1_000
// Time limit of one acknowledgement or reply, and the pause before it is sent again.
const REPLY_MS = 10_000
const REPLY_AGAIN_MS = 1_000
const HEARTBEAT_DEFAULT_MS = 15_000

const isReady = isRecordOf<ApplicationReadyFrame>({
  connection_id: isText,
  user_id: isText,
  client_id: isText,
  instance_id: isText,
  heartbeat_ms: isNumber,
})
const isCommand = isRecordOf<CommandFrame>({
  command_id: isText,
  action: isText,
  payload: (value): value is Json => value !== undefined,
  attempt: isNumber,
  remaining_ms: isNumber,
  trace: (value): value is string | undefined => value === undefined || isText(value),
})

/** Whether the relay would refuse the same request again. 501: it accepts no applications. */
const isFinal = (error: unknown) =>
  error instanceof RelayError &&
  (error.code === 'superseded' ||
    (error.status !== null &&
      error.status !== 408 &&
      error.status !== 429 &&
      (error.status < 500 || error.status === 501)))

type Send = (command_id: string, outcome: Outcome | undefined, signal: AbortSignal) => Promise<void>

/** Runs commands: acknowledges, executes, replies. A command ends at its deadline, or when it is cancelled. */
export function createRunner(
  actions: ApplicationActions,
  send: Send,
  { stop, onError }: { stop: AbortSignal; onError: (error: unknown) => void },
) {
  const running = new Map<string, { cancel: AbortController; ended: Promise<void> }>()

  /** Sends until the relay has it or refuses it, or the command has expired. Once the application closes, it sends once. */
  async function sendReply(command_id: string, outcome: Outcome | undefined, until: number): Promise<void> {
    for (;;) {
      try {
        return await runWithin((signal) => send(command_id, outcome, signal), { ms: REPLY_MS, late })
      } catch (error) {
        if (isFinal(error) || stop.aborted || !(performance.now() + REPLY_AGAIN_MS < until)) throw error
      }
      await sleep(REPLY_AGAIN_MS, stop)
    }
  }

  async function execute({ action, payload, command_id, trace }: CommandFrame, signal: AbortSignal) {
    if (running.size >= RUNNING_MAX) return { ok: false as const, error: { code: 'busy', message: null } }
    return actions.execute({ action, parameters: payload, correlation_id: command_id, trace }, { signal })
  }

  async function handle(command: CommandFrame, signal: AbortSignal, until: number): Promise<void> {
    const { command_id } = command
    // The reply acknowledges, too, so nothing waits for this.
    void sendReply(command_id, undefined, until).catch(onError)
    const outcome = await execute(command, signal)
    // The handler of an aborted call may have had its effect. Without a reply, the outcome is unknown to the relay.
    if (outcome === undefined || (signal.aborted && !outcome.ok && outcome.error.code === 'cancelled')) return
    const sent = outcome.ok ? { ok: true as const, result: (outcome.result ?? null) as Json } : outcome
    await sendReply(command_id, sent, until)
  }

  return {
    /** Waits for running commands to end, and aborts their signals if they take too long. */
    async end(): Promise<void> {
      await endWithin(
        [...running.values()].map(({ ended }) => ended),
        CLOSE_MS,
      )
      for (const { cancel } of running.values()) cancel.abort()
    },
    cancel: (command_id: string) => running.get(command_id)?.cancel.abort(),
    run(command: CommandFrame): void {
      const { command_id, remaining_ms } = command
      const cancel = new AbortController()
      const remaining = Math.max(0, Math.min(remaining_ms, TIMER_MAX_MS))
      const timer = setTimeout(() => cancel.abort(), remaining)
      const ended = handle(command, cancel.signal, performance.now() + remaining)
        .catch(onError)
        .finally(() => {
          clearTimeout(timer)
          if (running.get(command_id)?.cancel === cancel) running.delete(command_id)
        })
      // Another attempt of a running command gets no reply of its own.
      if (!running.has(command_id)) running.set(command_id, { cancel, ended })
    },
  }
}

/** Whether the application is connected, for the calls that wait until it is. */
export function createConnectedState() {
  let state: 'connecting' | 'connected' | { error: unknown } = 'connecting'
  const waiting = new Set<() => void>()
  return {
    get isConnected() {
      return state === 'connected'
    },
    set(next: typeof state): void {
      state = next
      if (next !== 'connecting') for (const wake of [...waiting]) wake()
    },
    /** Resolves when it is connected. `ms`: the time limit, if any. */
    async wait(signal: AbortSignal | undefined, ms?: number): Promise<void> {
      const notConnected = () => new RelayError('not_connected', null)
      while (state !== 'connected') {
        if (typeof state === 'object') throw state.error
        if (waiting.size >= WAITING_MAX) throw notConnected()
        let wake = () => {}
        const woken = new Promise<void>((resolve) => {
          wake = resolve
        })
        waiting.add(wake)
        try {
          await (ms === undefined ? woken : runWithin(() => woken, { ms, late: notConnected, signal }))
        } finally {
          waiting.delete(wake)
        }
      }
    },
  }
}

interface LinkParts {
  /** Sends the request for the stream. */
  open(signal: AbortSignal): Promise<Response>
  /** Declares the site. */
  declare(frame: ApplicationReadyFrame): Promise<unknown>
  runner: Pick<ReturnType<typeof createRunner>, 'run' | 'cancel'>
  /** Called when it is connected and its site is declared. */
  connected(): void
}

/** The connection to the relay, and what the relay says about the next one. */
export function createLink({ open, declare, runner, connected }: LinkParts) {
  let retryMs = RETRY_DEFAULT_MS
  let heartbeatMs = HEARTBEAT_DEFAULT_MS

  async function connect(signal: AbortSignal): Promise<void> {
    let failed: unknown
    let isOver = false

    async function start(frame: ApplicationReadyFrame, end: () => void): Promise<void> {
      if (frame.heartbeat_ms > 0) heartbeatMs = frame.heartbeat_ms
      try {
        await declare(frame)
        if (!isOver) connected()
      } catch (error) {
        failed = error
        end()
      }
    }

    function receive({ type, data }: StreamEvent, end: () => void): void {
      const frame = parseObject(data)
      if (type === 'ready' && isReady(frame)) void start(frame, end)
      else if (type === 'command' && isCommand(frame)) runner.run(frame)
      else if (type === 'cancel' && isText(frame?.command_id)) runner.cancel(frame.command_id)
      else if (type === 'end') {
        isOver = true
        if (frame?.reason === 'superseded') failed = new RelayError('superseded', null)
        end()
      }
    }

    try {
      const reading = {
        send: open,
        toError: async (response: Response) =>
          toError({ status: response.status, body: await readObject(response, ANSWER_BYTES) }),
        onEvent: receive,
        onRetry: (ms: number) => {
          retryMs = ms
        },
        silent: late,
        heartbeatMs: () => heartbeatMs,
      }
      await readEventStream(reading, signal)
    } catch (error) {
      // The stream broke off.
      const isLost = error instanceof TypeError
      if (!isOver) failed ??= isLost ? new RelayError('unreachable', null, { cause: error }) : error
    } finally {
      isOver = true
    }
    if (failed !== undefined) throw failed
  }

  return {
    /** Keeps one connection. Returns when it has ended; rejects with the reason if it was refused or lost. */
    connect,
    /** Returns the wait before the next connection, in milliseconds. */
    delay: (failures: number) => reconnectDelay(retryMs, failures, Math.random()),
  }
}

/** Sends the request for a stream of commands. A network error becomes a `RelayError`, and so does a silent relay. */
export async function openCommands(
  {
    fetch = globalThis.fetch,
    headers,
    url,
  }: { fetch: typeof globalThis.fetch | undefined; headers: HeaderFields; url: string },
  body: ApplicationBody,
  signal: AbortSignal,
): Promise<Response> {
  const sent = new Headers(headers)
  sent.set('content-type', 'application/json')
  sent.set('accept', 'text/event-stream')
  try {
    // Followed, a redirect would take the credentials along.
    return await fetch(url, { method: 'POST', headers: sent, body: JSON.stringify(body), redirect: 'manual', signal })
  } catch (cause) {
    throw new RelayError('unreachable', null, { cause })
  }
}

interface LoopParts {
  link: ReturnType<typeof createLink>
  connected: ReturnType<typeof createConnectedState>
  failures: { count: number }
  onError(error: unknown): void
}

/** Connects again and again until `stop` aborts. Rejects when the relay refuses for good. */
export async function keepConnected(
  { link, connected, failures, onError }: LoopParts,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    try {
      await link.connect(stop)
    } catch (error) {
      if (stop.aborted) return
      onError(error)
      if (isFinal(error)) throw error
    }
    if (stop.aborted) return
    connected.set('connecting')
    await sleep(link.delay(failures.count++), stop)
  }
}
