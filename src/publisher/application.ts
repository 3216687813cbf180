/** Connects an application in a process of its own to a relay: it publishes events of its site and runs its actions. */
import { onAbort } from '../internal/async/abort.js'
import { guardErrorHook } from '../internal/async/hook.js'
import type { CommandReplyBody } from '../internal/contract/applications.js'
import {
  ANYTHING,
  checkOptions,
  checkParts,
  FUNCTION,
  HOOK,
  OBJECT,
  required,
  type Shape,
  TEXT,
  withMethods,
} from '../internal/contract/checks.js'
import type { SiteMessageAnswer } from '../internal/contract/ingest.js'
import type { Json, JsonObject } from '../internal/contract/json.js'
import type { SiteInput } from '../internal/contract/sites.js'
import { BASE_URL, type ClientHeaders, toBase, toSegment } from '../internal/relay-client/wire.js'
import {
  type ApplicationActions,
  createConnectedState,
  createLink,
  createRunner,
  keepConnected,
  openCommands,
} from './application-link.js'
import {
  createCooperativeSitePublisher,
  createRemoteSiteRegistry,
  type PublishOptions,
  RelayError,
  request,
  toError,
} from './publisher.js'

/** The site of an application. What is left out follows from `actions`. */
export interface ApplicationSite extends Omit<SiteInput, 'owner' | 'mode'> {
  /** Whether actions may be invoked. @default 'cooperative' if there are actions, else 'observe' */
  mode?: SiteInput['mode'] | undefined
}

/** Options of `connectApplication`. */
export interface ApplicationOptions {
  /** Id of this application among the clients of its user. A later process with the same id takes over from this one. */
  clientId: string
  /** The site, which is declared at each connection; or the id of a site that the relay already has. */
  site: ApplicationSite | string
  /** Actions that viewers may invoke. @default none */
  actions?: ApplicationActions | undefined
  /** Headers for every request, with the application's credentials. A function is called before each request. */
  headers?: ClientHeaders | undefined
  /** Metadata, shown with the connection. @default {} */
  metadata?: JsonObject | undefined
  /** Closes the application when it aborts, also while it connects. */
  signal?: AbortSignal | undefined
  /**
   * Called with each failed connection, which is tried again, and with each reply that could not be sent. `null` disables it.
   * @default console.error
   */
  onError?: ((error: unknown) => void) | null | undefined
  /** @default the platform's */
  fetch?: typeof globalThis.fetch | undefined
}

const OPTIONS: Shape<ApplicationOptions> = {
  clientId: required(TEXT),
  site: required({ expected: 'a site id or a site', test: (value) => TEXT.test(value) || OBJECT.test(value) }),
  actions: withMethods('execute'),
  headers: ANYTHING,
  metadata: OBJECT,
  signal: ANYTHING,
  onError: HOOK,
  fetch: FUNCTION,
}

const SITE: Shape<ApplicationSite> = {
  site_id: required(TEXT),
  mode: TEXT,
  title: ANYTHING,
  event_names: ANYTHING,
  action_names: ANYTHING,
  capability_profile: ANYTHING,
}

/** A connected application. */
export interface Application {
  /** Id of this instance: a new one for each `connectApplication`, kept over reconnects. */
  readonly instanceId: string
  /** Whether the relay has it connected now, as far as is known here. */
  readonly connected: boolean
  /**
   * Resolves when the application was closed. Rejects with a `RelayError` if the relay refuses it for good: `superseded`,
   * `stale_instance`, `unauthenticated`, `owner_mismatch` and other refusals that a retry would not change. It may be
   * ignored: `onError` receives the error too.
   */
  readonly closed: Promise<void>
  /**
   * Publishes an event of the site. While it reconnects, the call waits up to 10 s, and at most 1,000 calls wait.
   *
   * @returns the relay's response; `published: false` says why no viewer received it.
   * @throws RelayError with the relay's code; `not_connected`, `closed`, or `unreachable` and `timeout` after 3 attempts;
   * the reason of `signal`.
   */
  publish(name: string, data?: Json, options?: PublishOptions): Promise<SiteMessageAnswer>
  /** Disconnects, and waits up to 5 s for running actions to end; then it aborts their signals. */
  close(): Promise<void>
}

// How long a call waits for a connection.
const CONNECT_MS = 10_000

function siteOf(site: ApplicationOptions['site'], names: readonly string[]): Omit<SiteInput, 'owner'> | undefined {
  if (typeof site === 'string') return undefined
  const isCooperative = names.length > 0
  return {
    mode: isCooperative ? 'cooperative' : 'observe',
    action_names: [...names],
    capability_profile: { action_invocation: isCooperative },
    ...site,
  } as Omit<SiteInput, 'owner'>
}

const NO_ACTIONS: ApplicationActions = {
  names: [],
  execute: async () => ({ ok: false, error: { code: 'unknown_action', message: null } }),
}

/**
 * Connects an application to the relay at `url`, where the relay's routes begin. It keeps the connection, reconnects with
 * jittered backoff from 1 to 30 s, declares its site at each connection, and runs the actions that viewers invoke.
 *
 * @returns the application, once it is connected and its site is declared. While the relay is unreachable, it tries again.
 * @throws RelayError if the relay refuses it; the reason of `signal`; TypeError for an invalid option.
 *
 * @example
 * ```ts
 * import { connectApplication } from 'relayscope/publisher'
 *
 * const application = await connectApplication('https://relay.example/relay', {
 *   clientId: 'notes-app',
 *   site: { site_id: 'notes', event_names: ['note_changed'] },
 *   headers: { authorization: 'Bearer …' },
 * })
 * await application.publish('note_changed', { id: 7 })
 * ```
 */
export async function connectApplication(url: string, options: ApplicationOptions): Promise<Application> {
  checkParts({ url }, { url: required(BASE_URL) })
  checkOptions(options, OPTIONS)
  const { clientId, site, actions = NO_ACTIONS, headers = {}, metadata = {}, signal, fetch } = options
  if (typeof site === 'object') checkOptions(site, SITE, 'site.')
  const siteId = typeof site === 'string' ? site : site.site_id
  const path = `/clients/${toSegment('option "clientId"', clientId)}/commands`
  const onError = guardErrorHook(options.onError)
  const instance_id = crypto.randomUUID()
  const authorize = async () => (typeof headers === 'function' ? headers() : headers)
  const runtime = { identity: () => ({ client_id: clientId, instance_id }), baseUrl: url, authorize, fetch }
  const publisher = createCooperativeSitePublisher({ runtime })
  const sites = createRemoteSiteRegistry({ runtime })
  const stop = new AbortController()
  const forget = onAbort(signal, () => stop.abort())
  const connected = createConnectedState()
  const failures = { count: 0 }
  let wasConnected = false

  const runner = createRunner(
    actions,
    async (command_id, outcome, until) => {
      const body: CommandReplyBody = { instance_id, ...(outcome === undefined ? {} : { outcome }) }
      const answer = await request(runtime, 'POST', `${path}/${toSegment('command id', command_id)}`, body, until)
      if (answer.status !== 200) throw toError(answer)
    },
    { stop: stop.signal, onError },
  )
  const link = createLink({
    async open(until) {
      const body = { instance_id, actions: [...actions.names], metadata, reconnect: wasConnected }
      return openCommands({ fetch, headers: await authorize(), url: toBase(url) + path }, body, until)
    },
    async declare({ user_id }) {
      const declaration = siteOf(site, actions.names)
      if (declaration) await sites.put({ ...declaration, owner: user_id })
    },
    runner,
    connected() {
      failures.count = 0
      wasConnected = true
      connected.set('connected')
    },
  })

  async function live(): Promise<void> {
    try {
      await keepConnected({ link, connected, failures, onError }, stop.signal)
      connected.set({ error: signal?.aborted ? signal.reason : new RelayError('closed', null) })
    } catch (error) {
      connected.set({ error })
      throw error
    } finally {
      forget()
      await runner.end()
    }
  }

  const closed = live()
  // Callers that only use `onError` must not get an unhandled rejection.
  closed.catch(() => {})
  await connected.wait(undefined)

  return {
    instanceId: instance_id,
    get connected() {
      return connected.isConnected
    },
    closed,
    async publish(name, data, publishOptions) {
      await connected.wait(publishOptions?.signal, CONNECT_MS)
      return publisher.publish(siteId, name, data, publishOptions)
    },
    async close() {
      stop.abort()
      await closed.catch(() => {})
    },
  }
}
