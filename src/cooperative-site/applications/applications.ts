/** The connected applications of one relay: each is a connection of the registry and a waiter of the dispatcher. */
import { onAbort } from '../../internal/async/abort.js'
import { createTicker } from '../../internal/async/timer.js'
import type { ApplicationBody, CommandReplyBody } from '../../internal/contract/applications.js'
import type { Connection, ConnectionRegistry, Instance } from '../../internal/contract/connections.js'
import type { CommandDispatcher, Waiter } from '../../internal/contract/delivery-dispatch.js'
import type { Awaitable } from '../../internal/contract/page.js'
import type { Chunks } from '../../internal/http/respond.js'
import { Refusal } from '../../internal/refusal.js'
import type { ReplyTarget } from '../actions/handlers.js'
import { createShares } from '../actions/shares.js'
import { type CommandStream, createCommandStream } from './stream.js'

/** The registry that connected applications are entered in. */
export type ApplicationConnections = Pick<
  ConnectionRegistry,
  'connect' | 'heartbeat' | 'disconnect' | 'currentInstance'
>

interface ApplicationsOptions {
  connections: ApplicationConnections
  dispatcher: Pick<CommandDispatcher, 'attach'>
  connector: ReplyTarget
  heartbeatMs: number
  /** Maximum number of open streams per user. */
  streamsPerHost: number
  /** Runs a store call within the relay's deadline. */
  withinDeadline<T>(work: () => Awaitable<T>): Promise<T>
  onError: (error: unknown) => void
}

interface OpenApplication {
  client: Instance
  body: ApplicationBody
  request: { readonly signal: AbortSignal }
}

interface Application {
  stream: CommandStream
  client: Instance
  connection_id: string
}

/** Reports a heartbeat for an application that reads, and ends the stream if the registry no longer has it. */
async function beat(
  { connections, withinDeadline, onError }: ApplicationsOptions,
  { stream, client, connection_id }: Application,
): Promise<void> {
  if (!stream.isRead) return
  stream.beat()
  try {
    if (await withinDeadline(() => connections.heartbeat(connection_id))) return
    const current = await withinDeadline(() => connections.currentInstance(client))
    stream.end(current === null ? 'expired' : current === client.instance_id ? 'replaced' : 'superseded')
  } catch (error) {
    onError(error)
  }
}

/** Connects an application, and never takes over from another instance where it comes back. */
async function connect(
  { connections, withinDeadline }: ApplicationsOptions,
  { client, body }: OpenApplication,
): Promise<Connection> {
  const { client_type = 'console', actions = [], metadata = {}, reconnect = false } = body
  const holder = reconnect ? await withinDeadline(() => connections.currentInstance(client)) : null
  if (holder !== null && holder !== client.instance_id) throw new Refusal('stale_instance')
  return withinDeadline(() => connections.connect({ ...client, client_type, actions, metadata }))
}

export type Applications = ReturnType<typeof createApplications>

/** Without connected applications it keeps no timer. */
export function createApplications(options: ApplicationsOptions) {
  const { connections, dispatcher, connector, heartbeatMs, streamsPerHost, withinDeadline, onError } = options
  const shares = createShares(streamsPerHost, 'applications of the user are connected')
  const open = new Set<Application>()
  const leaving = new Set<Promise<unknown>>()
  // A connected application keeps the process alive.
  const ticker = createTicker(tick, heartbeatMs, true)
  let closed = false

  async function tick(): Promise<void> {
    await Promise.all([...open].map((application) => beat(options, application)))
  }

  /** Runs in the background what takes an application out of the stores again; `close` waits for it. */
  function undo(work: () => Promise<unknown>): void {
    const undone = withinDeadline(work)
      .catch(onError)
      .finally(() => leaving.delete(undone))
    leaving.add(undone)
  }

  /** Connects and attaches an application. A connection that cannot be attached is ended. */
  async function openStream(asked: OpenApplication, free: () => void): Promise<Chunks> {
    const { client, request } = asked
    const { connection_id } = await connect(options, asked)
    let attaching: Promise<Waiter> | undefined
    let forget = () => {}
    const stream = createCommandStream((reason) => {
      free()
      forget()
      open.delete(application)
      if (open.size === 0) ticker.stop()
      undo(async () => {
        const detached = attaching?.then((waiter) => waiter.detach())
        await Promise.all([detached, connections.disconnect(connection_id, reason ?? 'stream_closed')])
      })
    })
    const application = { stream, client, connection_id }
    try {
      attaching = dispatcher.attach(client, stream.deliver)
      await withinDeadline(() => attaching as Promise<Waiter>)
    } catch (error) {
      // One that is attached too late is detached then.
      attaching = attaching?.catch(() => ({ detach: async () => {} }))
      stream.leave()
      throw error
    }
    stream.start({ connection_id, ...client, heartbeat_ms: heartbeatMs })
    open.add(application)
    ticker.start()
    forget = onAbort(request.signal, stream.leave)
    if (closed) stream.end('shutdown')
    return stream.frames
  }

  return {
    /** Connected applications. */
    get size() {
      return open.size
    },
    async open(asked: OpenApplication): Promise<Chunks> {
      const free = shares.take(asked.client.user_id)
      try {
        return await openStream(asked, free)
      } catch (error) {
        free()
        throw error
      }
    },
    /** Takes an acknowledgement or, with an outcome, a reply. @returns whether it counted. */
    async reply(client: Instance, command_id: string, outcome: CommandReplyBody['outcome']): Promise<boolean> {
      const counted = await withinDeadline(() =>
        outcome === undefined
          ? connector.acknowledge({ ...client, command_id })
          : connector.reply({ ...client, correlation_id: command_id, outcome }),
      )
      return counted === true
    },
    /** Ends every stream with `shutdown`. @returns what still takes applications out of the stores. */
    close(): Iterable<Promise<unknown>> {
      closed = true
      for (const { stream } of [...open]) stream.end('shutdown')
      return leaving
    },
  }
}
