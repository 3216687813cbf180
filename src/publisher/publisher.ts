/** Publishes events of a site to the relay, for the application that owns the site. */
import { runWithin } from '../internal/async/deadline.js'
import { sleep } from '../internal/async/timer.js'
import {
  ANYTHING,
  checkOptions,
  checkParts,
  FUNCTION,
  OBJECT,
  required,
  type Shape,
  TEXT,
} from '../internal/contract/checks.js'
import type { FirstAccepted, NotPublishedReason, SiteMessage, SiteMessageAnswer } from '../internal/contract/ingest.js'
import type { Json } from '../internal/contract/json.js'
import type { Awaitable } from '../internal/contract/page.js'
import type { Site, SiteInput } from '../internal/contract/sites.js'
import type { HeaderFields } from '../internal/relay-client/wire.js'
import {
  BASE_URL,
  codeOf,
  type FieldError,
  fieldErrorsOf,
  isFlag,
  isListOf,
  isName,
  isOneOf,
  isRecordOf,
  isRedirect,
  isText,
  messageOf,
  nullable,
  readObject,
  toBase,
  toSegment,
} from '../internal/relay-client/wire.js'

// The one error of the application's end: what the relay refused, or that it did not answer.

/** The error of all publisher calls: the relay refused the request or did not respond. */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /**
   * The relay's problem code, e.g. `stale_instance`, `unauthenticated`, `owner_mismatch`; or `unreachable` and
   * `timeout` (no response), `redirected` (redirects are never followed), `unexpected_answer` (not a relay response).
   * From `connectApplication` also `superseded` (another instance took over), `not_connected` and `closed`.
   */
  readonly code: string
  /** The HTTP status, or `null` without a response: the relay may or may not have accepted the message. */
  readonly status: number | null
  /** Invalid request fields, at most eight, if the relay named them. The error message contains the first. */
  readonly errors: readonly FieldError[] | undefined

  constructor(code: string, status: number | null, options?: ErrorOptions, errors?: readonly FieldError[]) {
    super(messageOf(code, status, errors), options)
    this.code = code
    this.status = status
    this.errors = errors
  }
}

/** The error for a relay that did not respond in time. */
export const late = () => new RelayError('timeout', null)

/** Converts a response other than the expected one to an error. */
export function toError(
  answer: { status: number; body: Record<string, unknown> | undefined },
  fallback?: string,
): RelayError {
  const { status, body } = answer
  const code = isRedirect(answer) ? 'redirected' : codeOf(body, fallback)
  return new RelayError(code, status || null, {}, fieldErrorsOf(body))
}

// The connected runtime of an application, and how its requests reach the relay.

/**
 * The one client that the application already is. A second identity would be a stale or unrelated instance and defeat
 * instance fencing, so nothing here ever makes one.
 */
export interface PublisherRuntime {
  /** Returns the current identity. Called for each attempt, because a reconnect changes `instance_id`. */
  identity(): Awaitable<{ client_id: string; instance_id: string }>
  /** Where the relay's routes begin, with its prefix: an http(s) URL. */
  baseUrl: string
  /** Adds the runtime's credentials to the request headers, or returns headers to add. */
  // biome-ignore lint/suspicious/noConfusingVoidType: `headers.set` returns nothing, and that is the usual body
  authorize(headers: Headers): Awaitable<HeaderFields | void>
  /** @default the platform's */
  fetch?: typeof globalThis.fetch | undefined
}

const RUNTIME: Shape<PublisherRuntime> = {
  identity: required(FUNCTION),
  baseUrl: required(BASE_URL),
  authorize: required(FUNCTION),
  fetch: FUNCTION,
}

/** Validates the runtime. Extra members are allowed. */
function checkRuntime(options: { runtime: PublisherRuntime }): void {
  checkOptions(options, { runtime: required(OBJECT) })
  checkParts(options.runtime, RUNTIME, 'runtime.')
}

/** A site record is at most 64 KiB and a problem 2 KiB; anything larger is not a relay response. */
export const ANSWER_BYTES = 131_072

/** A response of the relay; `body` is `undefined` unless it is a JSON object. */
interface RelayAnswer {
  status: number
  body: Record<string, unknown> | undefined
}

/**
 * One request to the relay, with the runtime's credentials.
 *
 * @throws RelayError `unreachable`; whatever `authorize` throws.
 */
export async function request(
  runtime: PublisherRuntime,
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<RelayAnswer> {
  const headers = new Headers({ accept: 'application/json' })
  if (body !== undefined) headers.set('content-type', 'application/json')
  const returned = await runtime.authorize(headers)
  const more = returned !== null && typeof returned === 'object' ? new Headers(returned) : []
  // Assigned like fields of a plain object they would be lost in silence.
  for (const [name, value] of [...Object.entries(headers), ...more]) headers.set(name, value)
  const url = `${toBase(runtime.baseUrl)}${path}`
  const send = runtime.fetch ?? globalThis.fetch
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  try {
    // Followed, a redirect would take the credentials along.
    const response = await send(url, { method, headers, redirect: 'manual', signal, ...sent })
    return { status: response.status, body: await readObject(response, ANSWER_BYTES) }
  } catch (cause) {
    throw new RelayError('unreachable', null, { cause })
  }
}

const ATTEMPTS = 3
// Three attempts and the longest waits between them take 9.9 s, within the documented 10 s.
const ATTEMPT_MS = 3_000
const BACKOFF_MS = 200
// Applications that lost one relay at one moment come back over half as much time again.
const JITTER = 0.5

/** Options of one `publish()`. */
export interface PublishOptions {
  /** The identity of this message: the relay takes it in once, however often it is sent. @default a random UUID */
  messageId?: string | undefined
  /** W3C `traceparent` of your trace: the relay retains it with the message, and viewers get it. @default none */
  trace?: string | undefined
  /** Cancels the call. */
  signal?: AbortSignal | undefined
}

const PUBLISH: Shape<PublishOptions> = { messageId: TEXT, trace: TEXT, signal: ANYTHING }

/** Publishes events of sites to a relay. */
export interface CooperativeSitePublisher {
  /**
   * Publishes one event of a site. Transport errors and 503 are retried, 3 attempts within 10 s, with the same
   * `message_id` and the runtime's identity at that moment.
   *
   * @returns the relay's response. The message is retained; `published: false` says why it reached no event bus. After
   * a lost reply the result may be `duplicate`: an earlier attempt was accepted.
   * @throws RelayError with the relay's code (`stale_instance` immediately), or `unreachable` or `timeout` without a
   * response; the reason of `signal`; errors thrown by the runtime's own functions.
   */
  publish(siteId: string, name: string, data?: Json, options?: PublishOptions): Promise<SiteMessageAnswer>
}

/** Options of `createCooperativeSitePublisher`. */
export interface CooperativeSitePublisherOptions {
  /** The relay, and the identity of this host. */
  runtime: PublisherRuntime
}

const isFirst = nullable(isRecordOf<FirstAccepted>({ client_id: isText, at: isText }))

const isMessageAnswer = isRecordOf<SiteMessageAnswer>({
  accepted: isFlag,
  duplicate: isFlag,
  first: (value): value is FirstAccepted | null | undefined => value === undefined || isFirst(value),
  message_id: isText,
  stream: isText,
  published: nullable(isFlag),
  not_published_reason: nullable(isName<NotPublishedReason>),
})

const isPassing = (error: unknown) =>
  error instanceof RelayError && (error.status === 503 || error.code === 'unreachable' || error.code === 'timeout')

/**
 * Creates a publisher for a connected runtime. It uses the runtime's identity and connection.
 *
 * @example
 * ```ts
 * import { createCooperativeSitePublisher } from 'relayscope/publisher'
 *
 * const publisher = createCooperativeSitePublisher({
 *   runtime: {
 *     identity: () => ({ client_id: 'notes', instance_id: 'boot-7' }),
 *     baseUrl: 'http://127.0.0.1:8080/relay',
 *     authorize: (headers) => headers.set('authorization', 'Bearer …'),
 *   },
 * })
 * await publisher.publish('notes', 'note_changed', { id: 7 })
 * ```
 */
export function createCooperativeSitePublisher(options: CooperativeSitePublisherOptions): CooperativeSitePublisher {
  checkRuntime(options)
  const { runtime } = options
  async function send(message: Omit<SiteMessage, 'client_id' | 'instance_id'>, signal: AbortSignal) {
    const { client_id, instance_id } = await runtime.identity()
    const answer = await request(runtime, 'POST', '/messages', { ...message, client_id, instance_id }, signal)
    if (answer.status === 409) throw toError(answer, 'stale_instance')
    if (answer.status !== 202 || !isMessageAnswer(answer.body)) throw toError(answer)
    return answer.body
  }

  return {
    async publish(siteId, name, data, publishOptions = {}) {
      checkOptions(publishOptions, PUBLISH)
      const { messageId = crypto.randomUUID(), trace, signal } = publishOptions
      const message = {
        message_id: messageId,
        kind: 'event' as const,
        stream: `sites/${toSegment('the site id', siteId)}/events`,
        payload: data === undefined ? { name } : { name, data },
        ...(trace === undefined ? {} : { trace }),
      }
      for (let attempt = 1; ; attempt++) {
        try {
          return await runWithin((own) => send(message, own), { ms: ATTEMPT_MS, late, signal })
        } catch (error) {
          if (attempt === ATTEMPTS || !isPassing(error)) throw error
        }
        await sleep(BACKOFF_MS * 2 ** (attempt - 1) * (1 + JITTER * Math.random()), signal)
      }
    },
  }
}

// A site registry whose sites are stored at the relay, for a control server.

// One attempt only: a repeated DELETE could not tell whether the site existed.
const REGISTER_MS = 10_000

const isSite = isRecordOf<Site>({
  site_id: isText,
  owner: isText,
  mode: isOneOf('cooperative', 'observe'),
  title: nullable(isText),
  event_names: isListOf(isText),
  action_names: isListOf(isText),
  capability_profile: isRecordOf<Site['capability_profile']>({ action_invocation: isFlag }),
  created_at: isText,
  updated_at: isText,
})

/** Whether the relay has no such site. Any other 404 comes from an unknown route or another server. */
const isNoSite = ({ status, body }: RelayAnswer) => status === 404 && codeOf(body) === 'not_found'

/** A `SiteRegistry` over HTTP. The owner is the host that the relay authenticates, never a field of the request. */
export interface RemoteSiteRegistry {
  /** Returns a site of this host, or `null` if it is unknown. */
  get(siteId: string): Promise<Site | null>
  /**
   * Creates the site, or replaces its declaration.
   *
   * @throws RelayError with the relay's code, e.g. `owner_mismatch` or `generic_action_name`.
   */
  put(site: SiteInput): Promise<{ created: boolean; site: Site }>
  /** Whether it was there, as a site of this host. */
  delete(siteId: string): Promise<boolean>
}

/** Options of `createRemoteSiteRegistry`. */
export interface RemoteSiteRegistryOptions {
  /** The relay, and the identity of this host. */
  runtime: PublisherRuntime
}

/**
 * Creates a registry for the sites of the runtime's host at its relay (`GET`, `PUT`, `DELETE /sites/{site_id}`). Each
 * call is one request of at most 10 s. All methods reject with `RelayError`.
 */
export function createRemoteSiteRegistry(options: RemoteSiteRegistryOptions): RemoteSiteRegistry {
  checkRuntime(options)
  const { runtime } = options
  async function send(method: string, siteId: string, body?: unknown) {
    const path = `/sites/${toSegment('the site id', siteId)}`
    return runWithin((signal) => request(runtime, method, path, body, signal), { ms: REGISTER_MS, late })
  }

  return {
    async get(siteId) {
      const answer = await send('GET', siteId)
      if (isNoSite(answer)) return null
      if (answer.status !== 200 || !isSite(answer.body)) throw toError(answer)
      return answer.body
    },
    async put({ site_id, owner: _decidedByTheRelay, ...definition }) {
      const answer = await send('PUT', site_id, definition)
      if ((answer.status !== 200 && answer.status !== 201) || !isSite(answer.body)) throw toError(answer)
      return { created: answer.status === 201, site: answer.body }
    },
    async delete(siteId) {
      const answer = await send('DELETE', siteId)
      if (isNoSite(answer)) return false
      if (answer.status !== 204) throw toError(answer)
      return true
    },
  }
}
